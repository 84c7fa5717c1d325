"""The files to upload: their metadata, idempotency keys, whether a bucket has them, and content from any offset."""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

from svc_cli.errors import TitleConflict
from svc_daemon.wire import JsonMapping

#: Maximum depth of JSON that the service accepts.
MOST_LEVELS = 32
#: Maximum depth of metadata in a request for one source, where the metadata is a field of the body.
FIELD_LEVELS = MOST_LEVELS - 1
#: Maximum depth of metadata in a request for a batch, where the metadata is four levels deep in the body.
BATCH_LEVELS = MOST_LEVELS - 4
#: What to do if the bucket has other content under a file's title.
OnConflict = Literal["ask", "replace", "as_new"]


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
        described = {each.name: getattr(self, each.name) for each in fields(Description)} | {"tags": [*self.tags]}
        return {name: value for name, value in described.items() if value}


@dataclass(frozen=True, kw_only=True)
class NewFile(Description):
    """A file sent in a single request. `sha256` must be the hash of `data`."""

    data: bytes

    def form(self) -> dict[str, str]:
        """Return the text fields of the form, without unset fields."""
        texts = {name: value for name, value in self.body().items() if name not in ("filename", "content_type")}
        if self.tags:
            texts["tags"] = ",".join(self.tags)
        if self.metadata:
            texts["metadata"] = json.dumps(self.metadata, ensure_ascii=False, sort_keys=True)
        return texts


def idempotency_key(bucket_id: str, upload: NewFile, epoch: int) -> str:
    """Derive the idempotency key of an upload, so that a repeated run creates no duplicate.

    `epoch` counts how often the source was removed after an upload. The key changes with each removal, because for the
    old key, the service would repeat its old answer. `upload.sha256` must be set.
    """
    described = asdict(upload)
    # `sha256` is enough to identify the bytes.
    del described["data"]
    return f"svc-{_digest([bucket_id, epoch, described])}"


def session_key(bucket_id: str, description: Description, size_bytes: int, epoch: int) -> str:
    """Derive the idempotency key of an upload session, so that the next run continues the session.

    See `idempotency_key` for `epoch`.
    """
    return f"svc-session-{_digest([bucket_id, epoch, size_bytes, description.body()])}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class Decision(NamedTuple):
    """What to do with a file, and which existing source it concerns, if any.

    created     send it as a new source
    replaced    send it to replace the source
    unchanged   the source has the same bytes
    retried     the source has the same bytes but failed; index it again
    conflict    the source has other bytes; send nothing
    """

    action: Literal["created", "replaced", "unchanged", "retried", "conflict"]
    source: JsonMapping | None = None


def decide(known: Sequence[JsonMapping], sha256: str, on_conflict: OnConflict) -> Decision:
    """Decide what to do with one file. `known` are the sources with the file's title, oldest first."""
    leaving = {source["replaces"] for source in known if source.get("replaces") and source["status"] != "failed"}
    staying = [source for source in known if source["id"] not in leaving]
    same = [source for source in staying if source["sha256"] == sha256]
    if same:
        # Prefer ready to pending, and pending to failed.
        best = max(same, key=lambda source: (bool(source["ready"]), source["status"] != "failed"))
        return Decision("retried" if best["status"] == "failed" else "unchanged", best)
    if not known or on_conflict == "as_new":
        return Decision("created")
    if on_conflict == "replace":
        # Replace the newest source that is not itself waiting to replace another.
        ids = {source["id"] for source in known}
        settled = [source for source in known if source.get("replaces") not in ids]
        return Decision("replaced", (settled or known)[-1])
    return Decision("conflict", (staying or known)[-1])


def find_twin(title: str, sha256: str, same: Sequence[JsonMapping]) -> Decision | None:
    """Decide about a file that is in the bucket under a longer or shorter path; None if it is not.

    `same` are sources with the file's bytes. What a synced folder owns is left to its sync.
    """
    for source in same:
        other = f"/{source['title']}"
        is_tail = other.endswith(f"/{title}") or f"/{title}".endswith(other)
        if (
            is_tail
            and source["title"] != title
            and not source.get("mapping")
            and (found := decide([source], sha256, "ask")).action != "conflict"
        ):
            return found
    return None


def title_conflict(source: JsonMapping, hint: str) -> TitleConflict:
    """Return the error for a file that was not sent because of a conflict."""
    return TitleConflict(
        f"the bucket has different content under this title ({source['id']}); nothing was sent.",
        hint=hint,
        details={"source_id": source["id"], "sha256": source["sha256"]},
    )


def lacks(source: JsonMapping, tags: Collection[str], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that add tags and metadata to a source; empty if it has them."""
    has_tags, has_metadata = source.get("tags", []), source.get("metadata", {})
    changes: dict[str, Any] = {}
    if not set(tags) <= set(has_tags):
        changes["tags"] = list(dict.fromkeys((*has_tags, *tags)))
    if {**has_metadata, **metadata} != has_metadata:
        changes["metadata"] = {**has_metadata, **metadata}
    return changes


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
