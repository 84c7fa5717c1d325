"""Request bodies of old routes. Each has the fields of the current route, and fields that name the buckets."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from svc_daemon.wire.batches import BatchFields, Manifest, ManifestItem
from svc_daemon.wire.requests import RequestBody
from svc_daemon.wire.sessions import UploadCreate
from svc_daemon.wire.sources import UrlImport

#: The id or slug of a bucket.
Text = Annotated[str, Field(max_length=255)]


class DestinationFields(RequestBody):
    """The buckets to upload to. Exactly one of the first three fields must be set."""

    bucket_ids: list[Text] = Field(default_factory=list)
    bucket_slugs: list[Text] = Field(default_factory=list)
    #: An id or a slug.
    bucket: Text = ""
    #: Create missing buckets from their slugs.
    create_missing_buckets: bool = False


class LegacyUploadCreate(UploadCreate, DestinationFields):
    """Body of `POST /v1/knowledge/files/upload-session`."""


class LegacyUrlImport(UrlImport, DestinationFields):
    """Body of `POST /v1/knowledge/websites`."""


class LegacyManifestItem(ManifestItem, DestinationFields):
    """One file of a batch. The item names the file's buckets, unless the manifest names the buckets for all files."""


class LegacyManifest(Manifest, DestinationFields):
    """The files of a batch. Either the manifest names the buckets, or each file does."""

    items: Sequence[LegacyManifestItem]


class LegacyBatchCreate(BatchFields):
    """Body of `POST /v1/knowledge/files:batch/upload-session`."""

    manifest: LegacyManifest
