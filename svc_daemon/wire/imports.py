"""URLs to take in, as files or as web pages (specification, Upload and Webhook registration)."""

from typing import Annotated, Any

from pydantic import Field

from svc_daemon.wire.requests import NoDryRunBody, RequestBody


class Webhook(RequestBody):
    """What to call when the source is ready or failed."""

    url: Annotated[str, Field(min_length=1)]
    #: Sent back unchanged in the call.
    metadata: dict[str, Any] = Field(default_factory=dict)


class UrlImport(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/files/import` and of `POST /v1/buckets/{bucket}/pages`."""

    url: Annotated[str, Field(min_length=1)]
    webhook: Webhook | None = None
    #: Take it whatever it turns out to be.
    force: bool = False
    title: str | None = None
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    sha256: str | None = None
    replaces: str | None = None
    mapping: str | None = None
    dry_run: bool = False


class Refresh(NoDryRunBody):
    """Body of `POST /v1/sources/{id}/refresh`, which may be missing."""

    #: Take it also when a page has become a file, or a file a page.
    force: bool = False
