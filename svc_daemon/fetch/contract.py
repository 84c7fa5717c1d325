"""The interface of downloads: limits, parameters and results."""

from dataclasses import dataclass
from typing import Protocol

from svc_daemon.settings.limits import Limits


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
    """Headers of an earlier response, such as ETag, by which the host can tell whether its content has changed."""

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
