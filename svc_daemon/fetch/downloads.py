"""The parameters and results of a fetch."""

from dataclasses import dataclass
from typing import Protocol

from svc_daemon.settings import Limits


class Sink(Protocol):
    """A destination for the downloaded bytes, such as a staged file."""

    async def append(self, data: bytes) -> None: ...

    async def discard(self) -> None:
        """Discard the bytes appended so far. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of one request."""

    #: Maximum size of the body, both on the wire and decoded (specification, Limits).
    file_bytes: int = Limits.file_bytes
    #: Timeout for a whole fetch, from the name lookup to the last byte, including all redirects.
    fetch_s: float = Limits.fetch_seconds
    #: Timeout for a whole POST request.
    post_s: float = Limits.webhook_seconds
    #: Timeout for connecting to one address, so that an unreachable address leaves time to try the next one.
    connect_s: float = 5
    #: Maximum number of redirects to follow.
    redirects: int = Limits.redirects


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """The cache validators of an earlier fetch, so that the host can answer 304 Not Modified."""

    #: The final URL of the earlier fetch. The validators are sent only there: another page may use the same ETag.
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
    """The result of a complete download: the body is in the sink, and these are its properties."""

    #: Canonical URL after all redirects.
    final_url: str
    http_status: int
    #: `Content-Type` as the host sent it; empty if the header is missing.
    content_type: str
    etag: str | None
    last_modified: str | None
    #: Size of the decoded body in the sink.
    size_bytes: int
    #: The name from `Content-Disposition`, else the last segment of the URL's path, else the host.
    file_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The content has not changed since the earlier fetch; nothing was written to the sink."""

    final_url: str
    etag: str | None
    last_modified: str | None
