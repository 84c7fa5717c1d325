"""Bodies of requests to import URLs, as files or web pages."""

from typing import Annotated, Any

from pydantic import Field

from svc_daemon.wire.requests import NoDryRunBody, RequestBody


class Webhook(RequestBody):
    """The URL to call when the source is ready or has failed."""

    url: Annotated[str, Field(min_length=1)]
    #: Any JSON object. It is sent unchanged in the webhook call.
    metadata: dict[str, Any] = Field(default_factory=dict)


class UrlImport(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/files/import` and `…/pages`."""

    url: Annotated[str, Field(min_length=1)]
    webhook: Webhook | None = None
    #: Import the URL even if it leads to a web page instead of a file, or to a file instead of a web page.
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

    #: Refresh even if the URL now leads to a file instead of a web page, or to a web page instead of a file.
    force: bool = False
