"""Why a fetch failed: the error that operations catch, to return a code of their own where they have one."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import httpcore

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode


class Reason(StrEnum):
    """`details.reason` of a failed fetch."""

    #: The host's name has no address.
    UNRESOLVED = "name_not_resolved"
    #: No address takes a connection.
    UNREACHABLE = "unreachable"
    #: No TLS, or a certificate that is not for this name.
    TLS = "tls"
    #: Not done within the time for all of it.
    TIMEOUT = "timeout"
    #: A response other than success; `details.http_status` has its status.
    STATUS = "http_status"
    REDIRECTS = "too_many_redirects"
    #: Broken off, or not HTTP.
    BROKEN = "broken_off"
    #: A content coding that was not asked for, or a body that isn't in the one it claims.
    ENCODING = "content_encoding"


class FetchFailed(ServiceError):
    """A 502 `url_fetch_failed`: the remote host could not be reached, or did not answer properly."""

    def __init__(self, reason: Reason, message: str, **details: Any) -> None:
        super().__init__(ErrorCode.URL_FETCH_FAILED, message, reason=reason.value, **details)
        self.reason = reason


@contextmanager
def translated() -> Iterator[None]:
    """Turn the library's errors into FetchFailed, without their text: it holds addresses and the other side's bytes."""
    try:
        yield
    except ssl.SSLError as error:
        raise _tls_failed() from error
    except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
        # The library has one error for the connection and the handshake; only the cause distinguishes them.
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError):
            raise FetchFailed(Reason.UNREACHABLE, "The remote host takes no connection.") from error
        raise _tls_failed() from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        raise FetchFailed(Reason.BROKEN, "The remote host broke off, or did not answer in HTTP.") from error


def _tls_failed() -> FetchFailed:
    return FetchFailed(Reason.TLS, "The remote host does not speak TLS, or has no valid certificate for its name.")
