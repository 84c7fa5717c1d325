"""Bodies of requests to import URLs, as files or as web pages (specification, Upload and Webhook registration)."""

from typing import Annotated, Any

from pydantic import Field

from svc_daemon.wire.requests import NoDryRunBody, RequestBody


class Webhook(RequestBody):
    """The URL to call when the source is ready or has failed."""

    url: Annotated[str, Field(min_length=1)]
    #: Any object; it is included unchanged in the call.
    metadata: dict[str, Any] = Field(default_factory=dict)


class UrlImport(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/files/import` and of `POST /v1/buckets/{bucket}/pages`."""

    url: Annotated[str, Field(min_length=1)]
    webhook: Webhook | None = None
    #: Import the URL even if its content is not of the requested kind (file or web page).
    force: bool = False
    title: str | None = None
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    sha256: str | None = None
    replaces: str | None = None
    mapping: str | None = None
    dry_run: bool = False


class Refresh(NoDryRunBody):
    """Body of `POST /v1/sources/{id}/refresh`; optional."""

    #: Refresh the source even if a web page has become a file, or a file has become a web page.
    force: bool = False
