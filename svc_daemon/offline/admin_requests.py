"""Runs operator commands such as `svc-daemon team`: in the data directory, or through the running daemon.

Without a daemon, the command locks the data directory and runs in one transaction. Otherwise, the command is sent to
the daemon's `/admin` API. The daemon must first prove that it knows the installation's secret, because another program
may listen on the port of a killed daemon.
"""

import http.client
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hmac import compare_digest
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from svc_daemon.core.ids import Ids
from svc_daemon.data_directory import (
    DirectoryLocked,
    DirectoryRefused,
    NoDirectory,
    hand_over,
    has_state,
    lock_directory,
    make_folders,
)
from svc_daemon.operations.installations import prepare_installation, prepare_secret, refuse_lost_state
from svc_daemon.operations.keys import Verb
from svc_daemon.paths import DataFiles, read_own
from svc_daemon.server.engines import choose_engines
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.local_daemons import parse_secret, pin, prove
from svc_daemon.wire.light.parsing import parse_json

#: Seconds to retry on a locked directory: a daemon that starts or stops holds the lock but doesn't answer.
PATIENCE_S = 10.0
#: Seconds between two tries on a locked directory.
PAUSE_S = 0.1
#: Seconds to wait for the daemon's response.
ANSWER_TIMEOUT_S = 10.0
#: Maximum size of a response; no actual response is nearly as large.
MAX_ANSWER_BYTES = 64 * 1024 * 1024

RESTART = "Restart the daemon, which creates that file again."


class Unreachable(DirectoryRefused):
    """Another process locks the data directory, but no daemon answers."""

    code = "svc_daemon_unreachable"
    retryable = True


class Refused(Exception):
    """The daemon returned an error: a status, and the API's `code`, `message`, `retryable` and `details`."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self.status = status
        self.error = error


@dataclass(frozen=True, slots=True)
class _DaemonAddress:
    """Where the daemon listens, and the certificate that it must show (PEM, None without TLS)."""

    base_url: str
    certificate: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """An operator's command: the request to send to a running daemon, and the transaction to run if there is none."""

    method: str
    path: str
    body: BaseModel | None
    verb: Verb
    #: Called before a new installation is created; None if the command must not create one.
    on_install: Callable[[DataFiles], None] | None = None


def run_errand(files: DataFiles, errand: Errand, patience_s: float = PATIENCE_S) -> JsonMapping:
    """Run the command, and return its result.

    Raises NoDirectory, Unreachable, Refused, SettingError or ServiceError.
    """
    cluster = ClusterSettings.from_environ(os.environ)
    if errand.on_install is not None or cluster is not None:
        make_folders(files)
    elif not files.root.is_dir():
        # An existing but empty directory is accepted here: a daemon may be about to create an installation in it.
        raise NoDirectory(files)
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            with lock_directory(files):
                return _run_offline(files, errand, cluster)
        except DirectoryLocked:
            daemon = _find_daemon(files)
        if daemon is not None:
            return _ask(daemon, files, errand.method, errand.path, errand.body)
        if time.monotonic() > deadline_s:
            raise Unreachable(
                f"Another process is using {files.root}, but no daemon answers within {patience_s:g} s.",
                "Stop it, then try again.",
            )
        time.sleep(PAUSE_S)


def notify_daemon(files: DataFiles, path: str) -> bool:
    """Send an empty POST to the directory's daemon; False if none is running. Raises Unreachable or Refused."""
    daemon = _find_daemon(files)
    if daemon is not None:
        _ask(daemon, files, "POST", path, None)
    return daemon is not None


def _run_offline(files: DataFiles, errand: Errand, cluster: ClusterSettings | None) -> JsonMapping:
    if cluster is None:
        refuse_lost_state(files)
    if cluster is None and not has_state(files):
        if errand.on_install is None:
            raise NoDirectory(files)
        errand.on_install(files)
        # Otherwise a backup from before the first start would lack it.
        prepare_secret(files, os.urandom)
    make_ids = Ids(now=lambda: datetime.now(UTC), random=os.urandom)
    database = choose_engines(cluster, os.environ).open_state(files, lambda _: None)
    try:
        prepare_installation(files, database, make_ids)
        return database.write(lambda connection: errand.verb(connection, make_ids))
    finally:
        database.close()
        hand_over(files)


def _find_daemon(files: DataFiles) -> _DaemonAddress | None:
    """Return where this directory's daemon listens; None if no daemon answers and proves that it has the secret."""
    try:
        record = parse_json(read_own(files.daemon))
        secret = parse_secret(read_own(files.secret))
        installation_id = str(record["installation_id"])
        daemon = _DaemonAddress(str(record["base_url"]), (record.get("certificate") or {}).get("pem"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if secret is None:
        return None
    nonce = secrets.token_hex(16)
    try:
        _, health = _exchange(daemon, "GET", f"/healthz?nonce={nonce}")
    except (OSError, http.client.HTTPException, ValueError):
        return None
    proof = prove(secret, installation_id, urlsplit(daemon.base_url).port, nonce)
    return daemon if compare_digest(str(health.get("proof")).encode(), proof.encode()) else None


def _ask(daemon: _DaemonAddress, files: DataFiles, method: str, path: str, fields: BaseModel | None) -> dict[str, Any]:
    try:
        token = read_own(files.operator_token).strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token.isascii() or not token.isalnum():
        raise Unreachable(f"{files.operator_token} is missing or damaged.", RESTART)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = None if fields is None else fields.model_dump_json().encode()
    try:
        status, answer = _exchange(daemon, method, path, body, headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        message = f"The daemon at {daemon.base_url} did not answer: {type(error).__name__}: {error}."
        raise Unreachable(message, "`svc daemon logs` shows more.") from error
    if status == http.client.UNAUTHORIZED:
        where = daemon.base_url
        raise Unreachable(f"The daemon at {where} does not accept the token in {files.operator_token}.", RESTART)
    if status != http.client.OK:
        raise Refused(status, answer.get("error") or {})
    # Omit the request id, so that the result is the same as without a daemon.
    return {name: value for name, value in answer.items() if name != "request_id"}


def _exchange(
    daemon: _DaemonAddress,
    method: str,
    target: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Send a request, and return status and JSON object. Raises OSError, HTTPException or ValueError."""
    parts = urlsplit(daemon.base_url)
    host, port = parts.hostname or "", parts.port
    if daemon.certificate is None:
        connection = http.client.HTTPConnection(host, port, timeout=ANSWER_TIMEOUT_S)
    else:
        tls = pin(daemon.certificate)
        connection = http.client.HTTPSConnection(host, port, timeout=ANSWER_TIMEOUT_S, context=tls)
    try:
        connection.request(method, target, body=body, headers=dict(headers or {}))
        response = connection.getresponse()
        answer = parse_json(response.read(MAX_ANSWER_BYTES))
    finally:
        connection.close()
    if not isinstance(answer, dict):
        raise ValueError("the answer is no JSON object")  # noqa: TRY004 - what was sent is wrong, not what we were given
    return response.status, answer
