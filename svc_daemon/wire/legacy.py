"""Bodies of the legacy doors (specification, Legacy aliases): those of the other doors, and a destination."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from svc_daemon.wire.batches import BatchCreate, Manifest, ManifestItem
from svc_daemon.wire.imports import UrlImport
from svc_daemon.wire.requests import RequestBody
from svc_daemon.wire.uploads import UploadCreate

#: Longer ones name nothing.
Text = Annotated[str, Field(max_length=255)]


class DestinationFields(RequestBody):
    """Where it goes: exactly one of the first three."""

    bucket_ids: list[Text] = Field(default_factory=list)
    bucket_slugs: list[Text] = Field(default_factory=list)
    #: An id or a slug.
    bucket: Text = ""
    #: Makes buckets for slugs that the team doesn't have yet.
    create_missing_buckets: bool = False


class LegacyUploadCreate(UploadCreate, DestinationFields):
    """Body of `POST /v1/knowledge/files/upload-session`."""


class LegacyUrlImport(UrlImport, DestinationFields):
    """Body of `POST /v1/knowledge/websites`."""


class LegacyManifestItem(ManifestItem, DestinationFields):
    """One file; its destination is here or at the manifest's root."""


class LegacyManifest(Manifest, DestinationFields):
    """The destination of all files, unless each item has its own."""

    items: Sequence[LegacyManifestItem]


class LegacyBatchCreate(BatchCreate):
    """Body of `POST /v1/knowledge/files:batch/upload-session`."""

    manifest: LegacyManifest
