"""What a fetch takes and what it returns."""

from dataclasses import dataclass
from typing import Protocol

from svc_daemon.settings import Limits


class Sink(Protocol):
    """Where the bytes go, such as a staged file."""

    async def append(self, data: bytes) -> None: ...

    async def discard(self) -> None:
        """Forget the bytes. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """What one request may take."""

    #: Largest body, on the wire and decoded (specification, Limits).
    file_bytes: int = Limits.file_bytes
    #: Whole time of a fetch, from the name to the last byte, every redirect included.
    fetch_s: float = Limits.fetch_seconds
    #: Whole time of a post.
    post_s: float = Limits.webhook_seconds
    #: Time for a connection to one address, so that a dead one leaves time for the next.
    connect_s: float = 5
    #: Redirects followed.
    redirects: int = Limits.redirects


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """The version of an earlier fetch, so that the host can answer that nothing changed."""

    #: The final URL of the earlier fetch. They are sent to no other: another page may use the same tag.
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
    """A body that is complete in the sink, and the facts about it from the response's headers."""

    #: Canonical URL of the response, after all redirects.
    final_url: str
    http_status: int
    #: `Content-Type` as it was sent, empty without one.
    content_type: str
    etag: str | None
    last_modified: str | None
    #: Bytes in the sink.
    size_bytes: int
    #: The name in `Content-Disposition`, or the URL's last part, or the host.
    file_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The version of the validators is the current one; the sink got nothing."""

    final_url: str
    etag: str | None
    last_modified: str | None
