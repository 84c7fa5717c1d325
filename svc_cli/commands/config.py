"""`svc config …`: shows settings and their origins, and changes the user's configuration file."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.credentials import ServiceAddress, find_key
from svc_cli.daemon_process import Installation
from svc_cli.errors import SvcError, UsageError
from svc_cli.render import table
from svc_cli.settings import RULES, SettingValue, check, find_project_file, read_file, user_file
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
    values = read_file(file) if file.is_file() else {}
    if value is None:
        values.pop(_known(name), None)
    else:
        kind = RULES[_known(name)].kind
        parsed: Any = value
        if kind is int and value.lstrip("-").isdigit():
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
    address = call.settings.find("base_url", call.flags.base_url)
    installation = Installation(environ)
    local = (installation.record() or {}).get("base_url") or installation.fixed_url or "http://127.0.0.1:7820"
    admin_key = installation.files.admin_key if address.value is None else None
    try:
        key = find_key(environ, ServiceAddress(address.value or local, address.from_project, admin_key))
        found.append(SettingValue("api_key", key.masked, key.source))
    except SvcError as error:
        found.append(SettingValue("api_key", None, error.message))
    heads = ("setting", "value", "from") if explain else ("setting", "value")
    rows = [(each.name, _shown(each.value), each.source)[: len(heads)] for each in found]
    call.console.show({"settings": [_as_json(each) for each in found]}, lambda: table(call.console, heads, rows))


def write_file(file: Path, values: dict[str, Any]) -> None:
    """Write settings as TOML, with a table for each prefix, such as `[upload]`."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if "." not in name]
    tables = sorted({name.partition(".")[0] for name in values if "." in name})
    for head in tables:
        lines += ["", f"[{head}]"]
        lines += [
            f"{name.partition('.')[2]} = {_toml(value)}"
            for name, value in values.items()
            if name.startswith(f"{head}.")
        ]
    draft = file.with_suffix(f".{os.getpid()}.new")
    draft.write_text("\n".join(lines).lstrip("\n") + "\n", "utf-8")
    draft.replace(file)


def _known(name: str) -> str:
    if name not in RULES:
        raise UsageError(f"There is no setting `{name}`.", hint=f"known settings: {', '.join(RULES)}.")
    return name


def _toml(value: Any) -> str:
    """Convert a value to TOML, which here has the syntax of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _as_json(found: SettingValue) -> dict[str, Any]:
    value = list(found.value) if isinstance(found.value, tuple) else found.value
    return {"name": found.name, "value": value, "source": found.source}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list | tuple) else "" if value is None else str(value)
