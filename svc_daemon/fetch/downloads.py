"""The parameters and results of a download."""

from dataclasses import dataclass
from typing import Protocol

from svc_daemon.settings import Limits


class Sink(Protocol):
    """A destination for the downloaded bytes, such as a staged file."""

    async def append(self, data: bytes) -> None: ...

    async def discard(self) -> None:
        """Discard the bytes that were appended. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The limits of one request."""

    #: Maximum size of the body in bytes, both as it is sent and after decoding (specification, Limits).
    file_bytes: int = Limits.file_bytes
    #: Time limit of a whole download, from the name lookup to the last byte, including all redirects.
    fetch_s: float = Limits.fetch_seconds
    #: Time limit of a whole POST request.
    post_s: float = Limits.webhook_seconds
    #: Time limit for connecting to one address. It is short, so that there is time to try the next address.
    connect_s: float = 5
    #: Maximum number of redirects to follow.
    redirects: int = Limits.redirects


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """The headers of an earlier response, such as ETag, by which the host recognizes if its content has changed."""

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
    """The result of a complete download. The body is in the sink."""

    #: The canonical URL, after all redirects.
    final_url: str
    http_status: int
    #: The header `Content-Type` as the host sent it; empty if it is missing.
    content_type: str
    etag: str | None
    last_modified: str | None
    #: Size in bytes of the decoded body in the sink.
    size_bytes: int
    #: The file name from `Content-Disposition`, otherwise the last part of the URL's path, otherwise the host.
    file_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The content has not changed since the earlier download. Nothing was written to the sink."""

    final_url: str
    etag: str | None
    last_modified: str | None
