"""Imports files and web pages from URLs."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

from svc_cli.client.calls import Calls, part
from svc_cli.client.transport import Reply, Request

if TYPE_CHECKING:
    from svc_cli.client.types import (
        DryRunDict,
        RefreshChoiceDict,
        SourceAnswerDict,
        SourceRefreshedDict,
    )

#: `file` imports the document as it is, `page` the article of a web page.
ImportKind = Literal["file", "page"]

#: Read timeout of a refresh in seconds: the service fetches the URL, and reads what is there before it answers.
REFRESH_SILENCE_S = 180.0

_PATHS: dict[ImportKind, str] = {"file": "files/import", "page": "pages"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """A URL to import, and fields of the new source."""

    url: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Import the URL even if it is a web page where a file was expected, or the reverse.
    force: bool = False
    #: `{url, metadata}` of the webhook that is called when the source is ready or has failed.
    webhook: dict[str, Any] | None = None
    #: How often to fetch the URL again. For a page that the bucket has, only this is set.
    refresh: "RefreshChoiceDict | None" = None

    def body(self) -> dict[str, Any]:
        """Return the JSON body, without unset fields."""
        return {name: value for name, value in asdict(self).items() if value}


class ImportCalls(Calls):
    """The client's methods to import URLs and fetch them again."""

    @overload
    def import_url(
        self,
        bucket: str,
        wanted: ImportRequest,
        *,
        kind: ImportKind = "file",
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> "Reply[SourceAnswerDict]": ...

    @overload
    def import_url(
        self, bucket: str, wanted: ImportRequest, *, kind: ImportKind = "file", dry_run: bool
    ) -> "Reply[SourceAnswerDict | DryRunDict]": ...

    def import_url(
        self,
        bucket: str,
        wanted: ImportRequest,
        *,
        kind: ImportKind = "file",
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> "Reply[SourceAnswerDict] | Reply[SourceAnswerDict | DryRunDict]":
        """Fetch a URL, and return the new source, which is stored and queued.

        Raises ApiError `url_is_web_page` or `url_is_file` (see `details.suggested_endpoint`), `website_url_exists` (see
        `details.source_id`), `url_fetch_blocked` or `url_fetch_failed`. For a known idempotency key, the service
        repeats its first answer, even if the body differs.
        """
        path = f"/v1/buckets/{part(bucket)}/{_PATHS[kind]}"
        body = wanted.body()
        if dry_run:
            return self._transport.send(Request(method="POST", path=path, json={**body, "dry_run": True}))
        return self._create(path, body, idempotency_key)

    def refresh_source(self, source_id: str, *, force: bool = False) -> "SourceRefreshedDict":
        """Fetch a source's URL again. `changed` is true if its content has changed."""
        path, body = f"/v1/sources/{part(source_id)}/refresh", {"force": True} if force else {}
        return self._transport.send(Request(method="POST", path=path, json=body, silence_s=REFRESH_SILENCE_S)).body


def import_key(bucket_id: str, wanted: ImportRequest, kind: ImportKind, epoch: int) -> str:
    """Derive the idempotency key of an import, so that a repeated run creates no duplicates.

    `new_files.idempotency_key` explains `epoch`.
    """
    # Keys of earlier releases know no schedule.
    fields = {name: value for name, value in asdict(wanted).items() if name != "refresh" or value}
    text = json.dumps(["import", bucket_id, epoch, kind, fields], sort_keys=True)
    return f"svc-import-{hashlib.sha256(text.encode()).hexdigest()}"
