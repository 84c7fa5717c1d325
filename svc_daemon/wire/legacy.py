"""Bodies of the legacy routes (specification, Legacy aliases): those of the current routes, plus a destination."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from svc_daemon.wire.batches import BatchFields, Manifest, ManifestItem
from svc_daemon.wire.imports import UrlImport
from svc_daemon.wire.requests import RequestBody
from svc_daemon.wire.uploads import UploadCreate

#: An id or slug; no valid one is longer than 255 characters.
Text = Annotated[str, Field(max_length=255)]


class DestinationFields(RequestBody):
    """The buckets to upload to, in exactly one of the first three fields."""

    bucket_ids: list[Text] = Field(default_factory=list)
    bucket_slugs: list[Text] = Field(default_factory=list)
    #: An id or a slug.
    bucket: Text = ""
    #: Create the buckets whose slugs don't exist yet.
    create_missing_buckets: bool = False


class LegacyUploadCreate(UploadCreate, DestinationFields):
    """Body of `POST /v1/knowledge/files/upload-session`."""


class LegacyUrlImport(UrlImport, DestinationFields):
    """Body of `POST /v1/knowledge/websites`."""


class LegacyManifestItem(ManifestItem, DestinationFields):
    """One file of a batch. It needs a destination unless the manifest has one for all files."""


class LegacyManifest(Manifest, DestinationFields):
    """The files of a batch, with one destination for all of them, unless each file has a destination."""

    items: Sequence[LegacyManifestItem]


class LegacyBatchCreate(BatchFields):
    """Body of `POST /v1/knowledge/files:batch/upload-session`."""

    manifest: LegacyManifest
