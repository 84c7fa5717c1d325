"""`svc doctor`: checks an installation, with a hint for each problem."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from svc_cli.commands.daily.status import count_members
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.daemon import disks
from svc_cli.daemon.connections import connected
from svc_cli.daemon.probes import DaemonHealth
from svc_cli.daemon.process import Installation
from svc_cli.errors import ApiError, NotAuthenticated, SvcError
from svc_cli.exits import Exit
from svc_cli.render import counted, size, table
from svc_cli.settings import VARIABLES
from svc_daemon import paths
from svc_daemon.wire.light.local_daemons import FREE_DISK_BYTES, least_free_bytes
from svc_daemon.wire.light.versions import API_RANGE, VERSION

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app()

#: The limit that sets how much of the disk stays free.
RESERVE = "SVC_LIMIT_FREE_DISK_BYTES"
#: A certificate that expires sooner is reported: its renewal has probably failed.
RENEW_BEFORE = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    #: `ok`, `warning` or `failed`.
    state: str
    text: str
    hint: str | None = None


Check = Callable[[Invocation], Iterator[Finding]]
#: The checks by name, in the order of the report.
CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Register a check of `svc doctor`."""

    def register(function: Check) -> Check:
        CHECKS[name] = function
        return function

    return register


@command(app, "doctor")
def doctor(call: Invocation) -> Exit:
    """Check the whole installation, and report problems and how to fix them.

    Exits with code 3 if a check fails.
    """
    findings = []
    for name, check in CHECKS.items():
        try:
            findings += list(check(call))
        except SvcError as error:
            # A node of a cluster serves others although nobody has put a key for `svc` there.
            is_fine = isinstance(error, NotAuthenticated) and error.details.get("on_node")
            findings.append(Finding(name, "warning" if is_fine else "failed", error.message, error.hint))
    code = Exit.FAILED if any(finding.state == "failed" for finding in findings) else Exit.DONE
    value = {"v": 1, "type": "doctor", "checks": [asdict(finding) for finding in findings], "exit_code": int(code)}
    rows = [(finding.check, finding.state, finding.text) for finding in findings]
    hints = [f"hint: {finding.check}: {finding.hint}" for finding in findings if finding.hint]
    call.console.show(
        value, lambda: "\n".join([table(call.console, ("", "", ""), rows, fold=True).lstrip("\n"), *hints])
    )
    return code


@check("program")
def check_program(_call: Invocation) -> Iterator[Finding]:
    yield Finding(
        "program", "ok", f"svc {VERSION}, API {API_RANGE}, Python {platform.python_version()}, {sys.platform}"
    )


@check("settings")
def check_settings(call: Invocation) -> Iterator[Finding]:
    changed = [found for found in call.settings.all() if found.source != "default"]
    environ = call.settings.environ
    others = [name for name in sorted(environ) if name.startswith("SVC_") and environ[name]]
    others = [name for name in others if name not in VARIABLES.values()]
    texts = [f"{found.name} from {found.source}" for found in changed]
    text = ", ".join([*texts, *([f"{', '.join(others)} from the environment"] if others else [])])
    yield Finding("settings", "ok", text or "all at their defaults")


@check("folders")
def check_folders(call: Invocation) -> Iterator[Finding]:
    environ = call.settings.environ
    for name, folder in (("data", paths.data_dir(environ)), ("config", paths.config_dir(environ))):
        owner = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if not os.access(owner, os.W_OK):
            yield Finding(
                f"{name} folder",
                "failed",
                f"{folder} can't be written",
                f"change the owner or the permissions of {owner}.",
            )
            continue
        usage = shutil.disk_usage(owner)
        reserve = environ.get(RESERVE, "")
        reserve_bytes = int(reserve) if reserve.isascii() and reserve.isdigit() else FREE_DISK_BYTES
        least = least_free_bytes(reserve_bytes, usage.total)
        state = "ok" if usage.free > least else "failed"
        hint = None if state == "ok" else f"free some disk space: uploads are refused below {size(least)}."
        yield Finding(f"{name} folder", state, f"{folder}, {size(usage.free)} free", hint)


@check("disk")
def check_disk(call: Invocation) -> Iterator[Finding]:
    folder = paths.data_dir(call.settings.environ)
    owner = next(parent for parent in (folder, *folder.parents) if parent.exists())
    kind, sync_s = disks.find_kind(owner, disks.read_mounts()), disks.time_sync(folder) if folder.is_dir() else None
    doubt = disks.find_doubt(kind, sync_s)
    took = "" if sync_s is None else f", a sync takes {sync_s * 1000:.3g} ms"
    text = f"{kind or 'a file system of unknown type'}{took}{f'; {doubt.reason}' if doubt else ''}"
    yield Finding("disk", "warning" if doubt else "ok", text, doubt.hint if doubt else None)


@check("daemon")
def check_daemon(call: Invocation) -> Iterator[Finding]:
    if call.settings.get("base_url", call.flags.base_url):
        yield Finding("daemon", "ok", "another service is used (base_url)")
        return
    daemon = Installation(call.settings.environ).find()
    if daemon is None:
        yield Finding("daemon", "warning", "not running", "the next command starts it, and so does `svc daemon start`.")
    else:
        yield Finding("daemon", "ok", f"version {daemon.health.version} at {daemon.base_url}, process {daemon.pid}")
        yield from _judge_health(daemon.health)
        embedding = daemon.health.answer.get("embedding") or {}
        state = embedding.get("state")
        if state == "off":
            hint = "`svc-daemon model install` installs one; without it, searches match words only."
            yield Finding("model", "ok", "none is installed", hint)
        elif state == "failing":
            yield Finding(
                "model", "warning", str(embedding["message"]), "searches match words only until it works again."
            )
        elif state is not None:
            yield Finding("model", "ok", f"{state}, {embedding['model']}" if embedding.get("model") else state)
        if tls := daemon.record.get("certificate"):
            yield _judge_certificate(tls)
        if lost := (daemon.health.answer.get("set_aside") or {}).get("message"):
            yield Finding("stored files", "warning", lost, "docs/how-to/restore.md explains it.")


def _judge_health(health: DaemonHealth) -> Iterator[Finding]:
    """Report what the service lacks, and each engine of a cluster."""
    shortage = health.answer.get("shortage")
    # An engine that is away is reported below.
    if shortage and not any(shortage["message"] in each for each in health.away.values()):
        hint = "accepted work waits, and continues automatically when the shortage is over."
        yield Finding("shortage", "warning", f"{shortage['message']} Since {shortage['since']}.", hint)
    hint = "nothing is lost, and work continues when it is back; docs/cluster.md says what it needs."
    for engine in health.answer.get("engines") or ():
        name = {"postgresql": "PostgreSQL", "s3": "S3 store", "milvus": "Milvus"}.get(engine["name"], engine["name"])
        wrong = health.away.get(engine["name"])
        yield Finding(name, "failed" if wrong else "ok", wrong or "this node can use it", hint if wrong else None)


def _judge_certificate(tls: Mapping[str, Any]) -> Finding:
    left = datetime.fromisoformat(tls["expires_at"]) - datetime.now(UTC)
    state = "ok" if left > RENEW_BEFORE else "warning" if left > timedelta() else "failed"
    hint = None if state == "ok" else "renew it, then `svc daemon restart`."
    return Finding("certificate", state, f"{', '.join(tls['names'])}, until {tls['expires_at'][:10]}", hint)


def _judge_recognition(ocr: Mapping[str, Any], unread: str) -> Finding:
    """Report whether scans are read. `unread` says how many failed because they were not; empty if none did."""
    if ocr["state"] != "ready":
        text = f"scans and pictures are not read{f'; {unread} failed' if unread else ''}"
        return Finding("scans", "warning" if unread else "ok", text, ocr["message"])
    hint = "`svc source retry --ocr` reads them." if unread else None
    return Finding("scans", "ok", f"{unread} can be read now" if unread else "text in pictures is recognised", hint)


@check("service")
def check_service(call: Invocation) -> Iterator[Finding]:
    is_remote = bool(call.settings.get("base_url", call.flags.base_url))
    daemon = None if is_remote else Installation(call.settings.environ).find()
    if not is_remote and (daemon is None or "postgresql" in daemon.health.away):
        return  # no local daemon is running, or it can do nothing; `check_daemon` reports that
    with connected(call.settings, call.console, base_url=call.flags.base_url, autostart=False) as (client, connection):
        yield Finding("key", "ok", f"{connection.credential.masked} from {connection.credential.source}")
        if is_remote:
            yield from _judge_health(connection.health)
        try:
            listed = client.buckets(members=False)["buckets"]
            buckets = counted(len(listed), "bucket")
        except ApiError as error:
            if error.code != "forbidden_project_key":
                raise
            buckets, listed = "this key may not list buckets", []
        limits = client.limits()
        formats = [each["name"] for each in limits["formats"]]
        agents = _agents(client)
        writing = client.version(verify="writing").get("writing")
    yield Finding("service", "ok", f"{buckets}, reads {', '.join(formats)}")
    if older := count_members(listed, "older_reader_member_count"):
        hint = "they are read again in the background, unless SVC_REREAD is 0; searches find their old text until then."
        yield Finding("older text", "ok", f"{counted(older, 'source')} read by an older version of svc", hint)
    if ocr := limits.get("ocr"):
        unread = count_members(listed, "unread_scan_member_count")
        yield _judge_recognition(ocr, counted(unread, "scan") if unread else "")
    yield from agents
    if not writing:
        return
    if writing["state"] == "off":
        yield Finding("answers", "ok", "quoted from the sources; no model writes them (SVC_LLM_BASE_URL)")
    elif writing["state"] == "failing":
        # `failed`, not `warning`, since every question gets an error now.
        hint = "`svc daemon restart` applies changed settings."
        yield Finding("answers", "failed", f"{writing['model']} can't write them. {writing['message']}", hint)
    else:
        yield Finding("answers", "ok", f"{writing['model']} writes them, and its server answers")


def _agents(client: "Client") -> list[Finding]:
    """Return a finding for each agent with an invalid policy. If all policies are valid, a single finding says so."""
    try:
        agents = client.agents()["agents"]
    except ApiError as error:
        return [Finding("agents", "warning", error.message, error.hint)]
    broken = [
        Finding(
            "agents",
            "failed",
            f"{agent['id']} finds nothing. {agent['policy_error']}",
            f"`svc agent set {agent['id']}` with --bucket, --source or --scope sets a new policy.",
        )
        for agent in agents
        if agent["policy_error"]
    ]
    return broken or [Finding("agents", "ok", f"{len(agents)}, each with a valid policy")]
