"""`svc config …`: shows settings and their origins, and changes the user's configuration file."""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.credentials import ServiceAddress, find_key, origin_of
from svc_cli.daemon.process import Installation
from svc_cli.errors import PathMissing, SvcError, UsageError
from svc_cli.given_files import PROJECT_FILE
from svc_cli.private_files import replace
from svc_cli.render import fields, table
from svc_cli.settings import (
    RULES,
    WIDENING,
    SettingsFile,
    SettingValue,
    Trust,
    TrustedFiles,
    check,
    find_project_file,
    place_of,
    sha256_of,
    user_file,
)
from svc_daemon import paths

app = new_app("Show and change settings.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The setting, such as bucket or upload.jobs.")]


@command(app, "path")
def path(call: Invocation) -> None:
    """Show the paths of the configuration files, and of the folders for data and state."""
    environ = call.settings.environ
    project = find_project_file(Path.cwd())
    value = {
        "user": str(user_file(environ)),
        "project": str(project) if project else None,
        "config_dir": str(paths.config_dir(environ)),
        "state_dir": str(paths.state_dir(environ)),
        "data_dir": str(paths.data_dir(environ)),
    }
    call.console.show(value, lambda: table(call.console, ("what", "path"), list(value.items())))


@command(app, "get")
def get(call: Invocation, name: NameArgument) -> None:
    """Print the value of one setting."""
    found = call.settings.find(_known(name))
    call.console.show(_as_json(found), lambda: "" if found.value is None else _shown(found.value))


@command(app, "set", "svc config set bucket handbook", "svc config set upload.jobs 8", "svc config set bucket --unset")
def set_(
    call: Invocation,
    name: NameArgument,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="The new value.")] = None,
    unset: Annotated[
        bool, typer.Option("--unset", help="Remove the setting from the user's configuration file.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")] = False,
) -> None:
    """Change a setting in the user's configuration file."""
    if unset == (value is not None):
        raise UsageError("Give a value, or --unset.")
    file = user_file(call.settings.environ)
    values = dict(SettingsFile.read(file).values) if os.path.lexists(file) else {}
    if value is None:
        values.pop(_known(name), None)
    else:
        kind = RULES[_known(name)].kind
        parsed: Any = value
        if kind is int and re.fullmatch("-?[0-9]{1,18}", value):
            parsed = int(value)
        elif kind is bool:
            parsed = {"true": True, "false": False}.get(value.lower(), value)
        elif kind is list:
            parsed = [part.strip() for part in value.split(",")]
        check(name, parsed, "svc config set")
        values[name] = parsed
    if not dry_run:
        write_file(file, values)
    said = f"{'would ' if dry_run else ''}{'unset' if unset else 'set'} {name} in {file}"
    call.console.show({"name": name, "value": values.get(name), "file": str(file), "dry_run": dry_run}, lambda: said)


@command(app, "trust", "svc config trust", "svc config trust handbook/svc.toml", "svc config trust --unset")
def trust(
    call: Invocation,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="The file.  [default: svc.toml in this folder or the nearest one above]"),
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Trust the file no longer.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Trust the file without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")] = False,
) -> None:
    """Trust a project's svc.toml, so that the address, the pruning and the folders in it count.

    Shows what the file asks for, and asks on a terminal. A changed file has to be trusted again.
    """
    path = Path(file) if file is not None else find_project_file(Path.cwd()) or Path(PROJECT_FILE)
    if path.name != PROJECT_FILE:
        raise UsageError(f"{path} is not a project's file.", hint=f"a project's settings are in a file {PROJECT_FILE}.")
    path, trusted = Path(place_of(path)), TrustedFiles(call.settings.environ)
    if unset:
        if not dry_run:
            trusted.remove(path)
        value: dict[str, Any] = {"file": str(path), "trusted": False, "dry_run": dry_run}
        call.console.show(value, lambda: f"{'would be ' if dry_run else ''}no longer trusted: {path}")
        return
    if not os.path.lexists(path):
        raise PathMissing(f"{path}: there is no such file.", details={"path": str(path)})
    value, seen = _wishes(call, SettingsFile.read(path))
    asks = not (dry_run or force) and call.may_ask()
    if asks:
        call.console.err.write(f"{_render_wishes(call, value)}\n")
        call.confirm("trust this file?")
    if not dry_run:
        trusted.add(path, seen)
    said = f"{'would be ' if dry_run else ''}trusted: {path}"
    value |= {"trusted": not dry_run, "dry_run": dry_run}
    call.console.show(value, lambda: said if asks else f"{_render_wishes(call, value)}\n{said}")


def _wishes(call: Invocation, file: SettingsFile) -> tuple[dict[str, Any], Trust]:
    """Return what a project's file asks for, as JSON, and the entry that trusts it."""
    from svc_cli.sync.mappings import read_mappings

    bucket = file.values.get("bucket") or call.settings.get("bucket") or "(no bucket)"
    mappings = read_mappings(file.tables, file.path, bucket)
    tables = [
        {
            "name": each.name,
            "dir": os.path.realpath(each.folder),
            "bucket": each.bucket,
            "prune": each.prune,
            "images": each.images,
        }
        for each in mappings
    ]
    seen = Trust(sha256_of(file.content), [str(table["dir"]) for table in tables])
    values = {name: file.values[name] for name in WIDENING if name in file.values}
    if "base_url" in values:
        # An address that would look like another one is never shown.
        origin_of(values["base_url"])
    return {"file": str(file.path), "sha256": seen.sha256, "values": values, "mappings": tables}, seen


def _render_wishes(call: Invocation, value: dict[str, Any]) -> str:
    # Not a table, which would shorten long values.
    pairs = [("file", value["file"]), *((name, _shown(each)) for name, each in value["values"].items())]
    for table_ in value["mappings"]:
        more = f", prune {table_['prune']}" if table_["prune"] else ""
        more += ", with pictures" if table_["images"] else ""
        pairs.append(("mapping", f"{table_['name']}: {table_['dir']} into {table_['bucket']}{more}"))
    return fields(call.console, pairs)


@command(app, "list", "svc config list --explain")
def list_(
    call: Invocation,
    explain: Annotated[bool, typer.Option("--explain", help="Show where each value comes from.")] = False,
) -> None:
    """List every setting with its value."""
    environ = call.settings.environ
    found = list(call.settings.all())
    for name, folder in (
        ("config_dir", paths.config_dir(environ)),
        ("state_dir", paths.state_dir(environ)),
        ("data_dir", paths.data_dir(environ)),
    ):
        variable = f"SVC_{name.upper()}"
        found.append(SettingValue(name, str(folder), f"environment {variable}" if environ.get(variable) else "default"))
    # Look up the key without a request to the service.
    installation = Installation(environ)
    local = (installation.record() or {}).get("base_url") or installation.fixed_url or "http://127.0.0.1:7820"
    try:
        address = call.settings.find("base_url", call.flags.base_url)
        admin_key = installation.files.admin_key if address.value is None else None
        key = find_key(environ, ServiceAddress(address.value or local, admin_key))
        found.append(SettingValue("api_key", key.masked, key.source))
    except SvcError as error:
        found.append(SettingValue("api_key", None, error.message))
    heads = ("setting", "value", "from") if explain else ("setting", "value")
    rows = []
    for each in found:
        project = call.settings.project_file
        withheld = "" if each.withheld is None else f"; {_shown(each.withheld)} in {project} is not trusted"
        rows.append((each.name, _shown(each.value), f"{each.source}{withheld}")[: len(heads)])
    call.console.show({"settings": [_as_json(each) for each in found]}, lambda: table(call.console, heads, rows))


def write_file(file: Path, values: dict[str, Any]) -> None:
    """Write settings as TOML, with a table for each prefix, such as `[upload]`."""
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if "." not in name]
    tables = sorted({name.partition(".")[0] for name in values if "." in name})
    for head in tables:
        lines += ["", f"[{head}]"]
        lines += [
            f"{name.partition('.')[2]} = {_toml(value)}"
            for name, value in values.items()
            if name.startswith(f"{head}.")
        ]
    replace(file, "\n".join(lines).lstrip("\n") + "\n")


def _known(name: str) -> str:
    if name not in RULES:
        raise UsageError(f"There is no setting `{name}`.", hint=f"known settings: {', '.join(RULES)}.")
    return name


def _toml(value: Any) -> str:
    """Convert a value to TOML, which here has the syntax of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _as_json(found: SettingValue) -> dict[str, Any]:
    value = list(found.value) if isinstance(found.value, tuple) else found.value
    withheld = {} if found.withheld is None else {"withheld": found.withheld}
    return {"name": found.name, "value": value, "source": found.source, **withheld}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list | tuple) else "" if value is None else str(value)
