"""The metadata of a file to upload, and the idempotency keys derived from it."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

#: Maximum nesting depth of JSON that the service accepts.
MOST_LEVELS = 32
#: Maximum nesting depth of metadata in the request for one source, where it is a field of the body.
FIELD_LEVELS = MOST_LEVELS - 1
#: Maximum nesting depth of metadata in the request that opens a batch, where it is four levels deep: a field of an
#: object in the list `items` in the object `manifest` in the body.
BATCH_LEVELS = MOST_LEVELS - 4


def count_levels(value: Any) -> int:
    """Count the levels of objects and lists of a JSON value; 0 for a string, a number, true, false or null."""
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(count_levels, value.values() if isinstance(value, dict) else value), default=0)


@dataclass(frozen=True, kw_only=True)
class Description:
    """The fields of a source to be created, apart from its bytes."""

    filename: str
    title: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Hex digest of the bytes; the service refuses bytes that don't match it.
    sha256: str | None = None
    #: Id of the source that the new source replaces when it is ready.
    replaces: str | None = None
    #: Name of the sync mapping that owns the source.
    mapping: str | None = None
    #: The media type. The service uses it unless the bytes contradict it; if it is None, the service detects the type.
    content_type: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the fields of the source for a JSON body, without unset fields."""
        fields = {
            "filename": self.filename,
            "title": self.title,
            "tags": list(self.tags),
            "metadata": self.metadata,
            "sha256": self.sha256,
            "replaces": self.replaces,
            "mapping": self.mapping,
            "content_type": self.content_type,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, kw_only=True)
class NewFile(Description):
    """A file that is sent in a single request. `data` must be the bytes whose hash is `sha256`."""

    data: bytes

    def form(self) -> dict[str, str]:
        """Return the text fields of the multipart form, without unset fields."""
        fields = {
            "title": self.title,
            "tags": ",".join(self.tags),
            "metadata": json.dumps(self.metadata, ensure_ascii=False, sort_keys=True) if self.metadata else "",
            "sha256": self.sha256 or "",
            "replaces": self.replaces or "",
            "mapping": self.mapping or "",
        }
        return {name: value for name, value in fields.items() if value}


def idempotency_key(bucket_id: str, upload: NewFile, epoch: int) -> str:
    """Derive the idempotency key of an upload from its request, so that a repeated run creates no duplicate.

    `epoch` counts how often the source that was created from this request has been removed, so that the key is a new
    one after each removal. With the old key, the service would only repeat its answer about the removed source.

    `upload.sha256` must be set.
    """
    fields = asdict(upload)
    # Leave out the bytes, because `sha256` identifies them.
    del fields["data"]
    return f"svc-{_digest([bucket_id, epoch, fields])}"


def session_key(bucket_id: str, description: Description, size_bytes: int, epoch: int) -> str:
    """Derive the idempotency key of an upload session from its request, so that the next run continues the session.

    `idempotency_key` explains `epoch`.
    """
    return f"svc-session-{_digest([bucket_id, epoch, size_bytes, description.body()])}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
