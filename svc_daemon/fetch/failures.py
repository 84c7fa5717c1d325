"""The errors of a request to a URL."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import httpcore

from svc_daemon.errors import ServiceError
from svc_daemon.wire.error_codes import ErrorCode


class Reason(StrEnum):
    """Why a request failed (`details.reason`)."""

    #: The host name has no address.
    UNRESOLVED = "name_not_resolved"
    #: No address accepts a connection.
    UNREACHABLE = "unreachable"
    #: The TLS handshake failed, for example because of an invalid certificate.
    TLS = "tls"
    #: The request exceeded its time limit.
    TIMEOUT = "timeout"
    #: The response's status is not a success (`details.http_status`).
    STATUS = "http_status"
    REDIRECTS = "too_many_redirects"
    #: The connection was lost, or the response is not HTTP.
    BROKEN = "broken_off"
    #: The body's content coding was not requested, or is invalid.
    ENCODING = "content_encoding"


class FetchFailed(ServiceError):
    """A 502 `url_fetch_failed`: the remote host can't be reached, or its response can't be used."""

    def __init__(self, reason: Reason, message: str, **details: Any) -> None:
        super().__init__(ErrorCode.URL_FETCH_FAILED, message, reason=reason.value, **details)
        self.reason = reason


@contextmanager
def translated() -> Iterator[None]:
    """Turn httpcore's errors into FetchFailed, without their text, which may contain the host's data."""
    try:
        yield
    except ssl.SSLError as error:
        raise _tls_failed() from error
    except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
        # httpcore raises the same exceptions for a failed connection and a failed TLS handshake.
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError):
            raise FetchFailed(Reason.UNREACHABLE, "The remote host does not accept connections.") from error
        raise _tls_failed() from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        raise FetchFailed(Reason.BROKEN, "The remote host broke off, or did not answer in HTTP.") from error


def _tls_failed() -> FetchFailed:
    return FetchFailed(Reason.TLS, "The remote host does not speak TLS, or has no valid certificate for its name.")
