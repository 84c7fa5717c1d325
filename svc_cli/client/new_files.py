"""The files to upload: their metadata, idempotency keys, and content readable from any offset."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO, Protocol

#: Maximum depth of JSON that the service accepts.
MOST_LEVELS = 32
#: Maximum depth of metadata in a request for one source, where the metadata is a field of the body.
FIELD_LEVELS = MOST_LEVELS - 1
#: Maximum depth of metadata in a request for a batch, where the metadata is four levels deep in the body.
BATCH_LEVELS = MOST_LEVELS - 4


def count_levels(value: Any) -> int:
    """Count the levels of objects and lists in a JSON value; 0 for a plain value."""
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(count_levels, value.values() if isinstance(value, dict) else value), default=0)


@dataclass(frozen=True, kw_only=True)
class Description:
    """The fields of a source to be created, without its bytes."""

    filename: str
    title: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Hex digest of the bytes, which the service checks.
    sha256: str | None = None
    #: Id of the source that the new source replaces when it is ready.
    replaces: str | None = None
    #: Name of the sync mapping (a folder kept in a bucket) that owns the source.
    mapping: str | None = None
    #: The media type; None to detect it.
    content_type: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the fields for a JSON body, without unset fields."""
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
    """A file sent in a single request. `sha256` must be the hash of `data`."""

    data: bytes

    def form(self) -> dict[str, str]:
        """Return the text fields of the form, without unset fields."""
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
    """Derive the idempotency key of an upload, so that a repeated run creates no duplicate.

    `epoch` counts how often the source was removed after an upload. The key changes with each removal, because for the
    old key, the service would repeat its old answer. `upload.sha256` must be set.
    """
    fields = asdict(upload)
    # `sha256` is enough to identify the bytes.
    del fields["data"]
    return f"svc-{_digest([bucket_id, epoch, fields])}"


def session_key(bucket_id: str, description: Description, size_bytes: int, epoch: int) -> str:
    """Derive the idempotency key of an upload session, so that the next run continues the session.

    See `idempotency_key` for `epoch`.
    """
    return f"svc-session-{_digest([bucket_id, epoch, size_bytes, description.body()])}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


#: Block size for reading files.
BLOCK_BYTES = 1024 * 1024


class Content(Protocol):
    """Bytes of known length that can be read again."""

    @property
    def size_bytes(self) -> int: ...

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` to the end, in blocks."""
        ...


class BytesContent:
    """Content held in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` to the end as one block."""
        yield self._data[offset:] if offset else self._data


class OpenFileContent:
    """The content of an open file. The service refuses the file if its content changes after hashing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size_bytes = os.fstat(file.fileno()).st_size

    def sha256(self) -> str:
        """Return the SHA-256 in hexadecimal."""
        digest = hashlib.sha256()
        for block in self.blocks(0):
            digest.update(block)
        return digest.hexdigest()

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` up to the size that the file had when opened."""
        self._file.seek(offset)
        left_bytes = self.size_bytes - offset
        while block := self._file.read(min(BLOCK_BYTES, left_bytes)):
            left_bytes -= len(block)
            yield block
