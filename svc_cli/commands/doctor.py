"""`svc doctor`: looks at everything an installation needs, one line each, and says what to do."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svc_cli.commands.options import Invocation, command, new_app
from svc_cli.connections import connected
from svc_cli.daemon_process import Installation
from svc_cli.errors import ApiError, SvcError
from svc_cli.exits import Exit
from svc_cli.render import size, table
from svc_daemon import paths
from svc_daemon.wire.versions import API_RANGE, VERSION

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app()

#: The daemon refuses creates below this much free disk, or below 2 % of it, 1 GB at most, where that is more.
LEAST_FREE_BYTES = 256 * 1024**2
MOST_RESERVED_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found."""

    check: str
    #: `ok`, `warning` or `failed`.
    state: str
    text: str
    hint: str | None = None


@command(app, "doctor")
def doctor(call: Invocation) -> Exit:
    """Check the whole installation, and report what is wrong and how to fix it.

    Exits with code 3 if something is wrong.
    """
    findings = [finding for look in LOOKS for finding in _looked(look, call)]
    code = Exit.FAILED if any(finding.state == "failed" for finding in findings) else Exit.DONE
    value = {"v": 1, "type": "doctor", "checks": [asdict(finding) for finding in findings], "exit_code": int(code)}
    call.console.show(value, lambda: _report(call, findings))
    return code


def _looked(look: Callable[[Invocation], Iterator[Finding]], call: Invocation) -> list[Finding]:
    try:
        return list(look(call))
    except SvcError as error:
        return [Finding(look.__name__.strip("_"), "failed", error.message, error.hint)]


def _program(_call: Invocation) -> Iterator[Finding]:
    yield Finding(
        "program", "ok", f"svc {VERSION}, API {API_RANGE}, Python {platform.python_version()}, {sys.platform}"
    )


def _settings(call: Invocation) -> Iterator[Finding]:
    changed = [found for found in call.settings.all() if found.source != "default"]
    text = ", ".join(f"{found.name} from {found.source}" for found in changed)
    yield Finding("settings", "ok", text or "all as they come")


def _folders(call: Invocation) -> Iterator[Finding]:
    environ = call.settings.environ
    for name, folder in (("data", paths.data_dir(environ)), ("config", paths.config_dir(environ))):
        owner = _existing(folder)
        if not os.access(owner, os.W_OK):
            yield Finding(f"{name} folder", "failed", f"{folder} can't be written", f"make {owner} yours.")
            continue
        usage = shutil.disk_usage(owner)
        least = least_free_bytes(usage.total)
        state = "ok" if usage.free > least else "failed"
        hint = None if state == "ok" else f"free some disk space: uploads are refused below {size(least)}."
        yield Finding(f"{name} folder", state, f"{folder}, {size(usage.free)} free", hint)


def least_free_bytes(total_bytes: int) -> int:
    """What the daemon keeps free of a disk of this size, unless its own limit says otherwise."""
    return max(LEAST_FREE_BYTES, min(total_bytes // 50, MOST_RESERVED_BYTES))


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


def _daemon(call: Invocation) -> Iterator[Finding]:
    if call.settings.get("base_url", call.flags.base_url):
        yield Finding("daemon", "ok", "another service is used (base_url)")
        return
    daemon = Installation(call.settings.environ).find()
    if daemon is None:
        yield Finding("daemon", "warning", "none runs", "it starts with the first command, or by `svc daemon start`.")
    else:
        yield Finding("daemon", "ok", f"version {daemon.health.version} at {daemon.base_url}, process {daemon.pid}")
        if shortage := daemon.health.answer.get("shortage"):
            hint = "what was accepted waits and goes on by itself once there is enough again."
            yield Finding("shortage", "warning", f"{shortage['message']} Since {shortage['since']}.", hint)
        yield from _model(daemon.health.answer.get("embedding") or {})
        if lost := (daemon.health.answer.get("set_aside") or {}).get("message"):
            yield Finding("stored files", "warning", lost, "docs/how-to/restore.md explains it.")


def _model(embedding: dict[str, Any]) -> Iterator[Finding]:
    """Whether searches go by meaning, too."""
    state = embedding.get("state")
    if state == "off":
        hint = "`svc-daemon model install` brings one; without it searches go by words alone."
        yield Finding("model", "ok", "none is installed", hint)
    elif state == "failing":
        yield Finding("model", "warning", str(embedding["message"]), "searches go by words until it works again.")
    elif state is not None:
        yield Finding("model", "ok", f"{state}, {embedding['model']}" if embedding.get("model") else state)


def _service(call: Invocation) -> Iterator[Finding]:
    if not call.settings.get("base_url", call.flags.base_url) and not Installation(call.settings.environ).find():
        return  # the daemon's own line has said so; a look must not start one
    with connected(call.settings, call.console, base_url=call.flags.base_url, autostart=False) as (client, connection):
        buckets = client.buckets(members=False)["buckets"]
        formats = client.limits()["formats"]
        agents = _agents(client)
        writing = client.version(verify="writing").get("writing")
    yield Finding("key", "ok", f"{connection.credential.masked} from {connection.credential.source}")
    yield Finding(
        "service", "ok", f"{_count(len(buckets), 'bucket')}, reads {', '.join(form['name'] for form in formats)}"
    )
    yield from agents
    if writing:
        yield _writing(writing)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _writing(writing: dict[str, Any]) -> Finding:
    """What writes the answers. A model whose server is away fails each of them: nothing is quoted in its place."""
    if writing["state"] == "off":
        return Finding("answers", "ok", "quoted from the sources; no model writes them (SVC_LLM_BASE_URL)")
    if writing["state"] == "failing":
        hint = "`svc daemon restart` takes over settings that were changed."
        return Finding("answers", "failed", f"{writing['model']} can't write them. {writing['message']}", hint)
    return Finding("answers", "ok", f"{writing['model']} writes them, and its server answers")


def _agents(client: "Client") -> list[Finding]:
    """Whose stored policy is broken: these retrieve nothing. A key that may not look at agents says so."""
    try:
        agents = client.agents()["agents"]
    except ApiError as error:
        return [Finding("agents", "warning", error.message, error.hint)]
    broken = [
        Finding(
            "agents",
            "failed",
            f"{agent['id']} finds nothing. {agent['policy_error']}",
            f"`svc agent set {agent['id']}` with --bucket, --source or --scope writes a new one.",
        )
        for agent in agents
        if agent["policy_error"]
    ]
    return broken or [Finding("agents", "ok", f"{len(agents)}, each with a whole policy")]


#: In the order of the report.
LOOKS = (_program, _settings, _folders, _daemon, _service)


def _report(call: Invocation, findings: list[Finding]) -> str:
    rows = [(finding.check, finding.state, finding.text) for finding in findings]
    hints = [f"hint: {finding.check}: {finding.hint}" for finding in findings if finding.hint]
    return "\n".join([table(call.console, ("", "", ""), rows, fold=True).lstrip("\n"), *hints])
