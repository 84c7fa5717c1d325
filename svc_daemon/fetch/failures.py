"""The errors of a request to a URL. Operations catch FetchFailed if they report a more specific error code."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import httpcore

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode


class Reason(StrEnum):
    """Why a request failed; reported as `details.reason`."""

    #: The host name does not resolve to any address.
    UNRESOLVED = "name_not_resolved"
    #: None of the host's addresses accepts a connection.
    UNREACHABLE = "unreachable"
    #: The TLS handshake failed, or the certificate is not valid for this name.
    TLS = "tls"
    #: The request did not end within its time limit.
    TIMEOUT = "timeout"
    #: The status of the response is not a success; it is reported as `details.http_status`.
    STATUS = "http_status"
    REDIRECTS = "too_many_redirects"
    #: The connection was lost, or the response is not valid HTTP.
    BROKEN = "broken_off"
    #: The body is in a content coding that was not requested, or is not valid in its coding.
    ENCODING = "content_encoding"


class FetchFailed(ServiceError):
    """A 502 `url_fetch_failed`: the remote host could not be reached, or its response can't be used."""

    def __init__(self, reason: Reason, message: str, **details: Any) -> None:
        super().__init__(ErrorCode.URL_FETCH_FAILED, message, reason=reason.value, **details)
        self.reason = reason


@contextmanager
def translated() -> Iterator[None]:
    """Convert httpcore's errors to FetchFailed, without their text, which may contain addresses or data of the host."""
    try:
        yield
    except ssl.SSLError as error:
        raise _tls_failed() from error
    except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
        # httpcore raises the same error if the connection or the TLS handshake fails; only the cause differs.
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError):
            raise FetchFailed(Reason.UNREACHABLE, "The remote host does not accept connections.") from error
        raise _tls_failed() from error
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        raise FetchFailed(Reason.BROKEN, "The remote host broke off, or did not answer in HTTP.") from error


def _tls_failed() -> FetchFailed:
    return FetchFailed(Reason.TLS, "The remote host does not speak TLS, or has no valid certificate for its name.")
