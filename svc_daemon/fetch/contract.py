"""The interface of downloads: limits, parameters, results and errors."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import httpcore

from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode


class Sink(Protocol):
    """Where downloaded bytes go, such as a staged file."""

    async def append(self, data: bytes) -> None: ...

    async def discard(self) -> None:
        """Discard the appended bytes. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The limits of one request."""

    #: Maximum size of a body, both as sent and decoded (specification, Limits).
    file_bytes: int = Limits.file_bytes
    #: Time limit of a whole download with all redirects.
    fetch_s: float = Limits.fetch_seconds
    #: Time limit of a whole POST request.
    post_s: float = Limits.webhook_seconds
    #: Time limit for connecting to one address. After that, the next address is tried.
    connect_s: float = 5
    #: Maximum number of redirects to follow.
    redirects: int = Limits.redirects


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """Headers of an earlier response, such as ETag, by which the host can decide whether its content has changed."""

    #: The URL of the earlier response. These headers are sent only there.
    url: str
    etag: str | None = None
    last_modified: str | None = None

    def headers(self) -> dict[str, str]:
        return {
            name: value
            for name, value in (("If-None-Match", self.etag), ("If-Modified-Since", self.last_modified))
            if value
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A complete download. The body is in the sink."""

    #: The URL after all redirects.
    final_url: str
    http_status: int
    #: The header `Content-Type` as sent, or empty.
    content_type: str
    etag: str | None
    last_modified: str | None
    #: Size of the decoded body.
    size_bytes: int
    #: The file's name, taken from `Content-Disposition`, the URL's path, or the host.
    file_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The content has not changed. Nothing was written to the sink."""

    final_url: str
    etag: str | None
    last_modified: str | None


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
