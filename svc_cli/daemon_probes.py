"""Checks which service answers at an address, without sending it an API key.

Another user's program may listen on the daemon's port. So the local daemon must first prove that it knows the secret in
its data directory.
"""

import re
import secrets
from hmac import compare_digest
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLCertVerificationError, SSLError
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from svc_cli.certificates import tls_context
from svc_cli.errors import Incompatible
from svc_daemon.wire.daemon_proofs import prove
from svc_daemon.wire.parsing import parse_json
from svc_daemon.wire.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION

#: Seconds to wait for an answer, long enough for a busy daemon.
PROBE_TIMEOUT_S = 5.0


class DaemonHealth(NamedTuple):
    """The answer of an svc daemon to `/healthz`."""

    installation_id: str
    version: str
    api: str
    #: The whole JSON object of the answer.
    answer: dict[str, Any]
    #: Whether the daemon has proved that it knows the secret in the data directory.
    is_proven: bool = False


class Foreign(NamedTuple):
    """The result of `probe` if no svc daemon answered in time."""

    reason: str
    #: Whether the connection was accepted but no answer came; the daemon may hang.
    is_silent: bool = False
    #: Whether the TLS certificate is not trusted.
    is_untrusted: bool = False


def probe(
    base_url: str,
    timeout_s: float = PROBE_TIMEOUT_S,
    secret: bytes | None = None,
    certificate: str | None = None,
) -> DaemonHealth | Foreign | None:
    """Request `/healthz`, and check that the daemon knows `secret`, if given. Returns None if nothing listens there.

    If `certificate` is given, an https server must have exactly this certificate.
    """
    connection = _connect(base_url, timeout_s, certificate)
    if not isinstance(connection, HTTPConnection):
        return connection
    nonce = secrets.token_hex(16)
    try:
        query = f"?nonce={nonce}" if secret else ""
        path = urlsplit(base_url).path.rstrip("/")
        connection.request("GET", f"{path}/healthz{query}", headers={"Svc-Api": API_RANGE})
        response = connection.getresponse()
        seen = _read_health(response.status, response.read(65536))
        if secret is None or isinstance(seen, Foreign):
            return seen
        proof = prove(secret, seen.installation_id, urlsplit(base_url).port, nonce)
        return seen._replace(is_proven=compare_digest(str(seen.answer.get("proof")).encode(), proof.encode()))
    except TimeoutError:
        return Foreign("it does not answer", is_silent=True)
    except (HTTPException, OSError) as error:
        return Foreign(f"it does not speak HTTP ({type(error).__name__})")
    finally:
        connection.close()


def _connect(base_url: str, timeout_s: float, certificate: str | None) -> HTTPConnection | Foreign | None:
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port
    try:
        if parts.scheme == "https":
            tls = tls_context(certificate)
            connection: HTTPConnection = HTTPSConnection(host, port, timeout=timeout_s, context=tls)
        else:
            connection = HTTPConnection(host, port, timeout=timeout_s)
        connection.connect()
    except TimeoutError:
        return Foreign("it accepts no connection")
    except SSLCertVerificationError as error:
        return Foreign(error.verify_message, is_untrusted=True)
    except SSLError as error:
        return Foreign(f"it does not speak TLS ({error.reason})")
    except (OSError, UnicodeError):
        # UnicodeError: a part of the host name is empty or too long.
        return None
    return connection


def check_api(health: DaemonHealth, where: str) -> None:
    """Raise Incompatible if the daemon and this `svc` have no API version in common."""
    match = re.fullmatch(r"(\d+)-(\d+)", health.api)
    if match and int(match[1]) <= API_NEWEST and int(match[2]) >= API_OLDEST:
        return
    raise Incompatible(
        f"The daemon {health.version} at {where} speaks API {health.api}, this svc {VERSION} speaks {API_RANGE}.",
        hint="install the same release on both sides, then `svc daemon restart`.",
        details={"daemon_api": health.api, "client_api": API_RANGE, "daemon_version": health.version},
    )


def _read_health(status: int, body: bytes) -> DaemonHealth | Foreign:
    try:
        answer = parse_json(body)
    except ValueError:
        return Foreign(f"it answered {status} with something that is not JSON")
    if not isinstance(answer, dict) or not isinstance(answer.get("installation_id"), str):
        return Foreign(f"it answered {status} without an installation id")
    return DaemonHealth(answer["installation_id"], str(answer.get("version")), str(answer.get("api")), answer)
