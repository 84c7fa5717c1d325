"""A file as it is described to the service, and the idempotency keys that are derived from that."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a file is to be, apart from its bytes."""

    filename: str
    title: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Hex digest of the bytes; the service refuses others.
    sha256: str | None = None
    #: Id of the source whose place this one takes when it is ready.
    replaces: str | None = None
    #: The sync mapping that owns the source.
    mapping: str | None = None

    def body(self) -> dict[str, Any]:
        """The fields of a JSON body; what is not set is not sent."""
        fields = {
            "filename": self.filename,
            "title": self.title,
            "tags": list(self.tags),
            "metadata": self.metadata,
            "sha256": self.sha256,
            "replaces": self.replaces,
            "mapping": self.mapping,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, kw_only=True)
class NewFile(Description):
    """One file as it is sent in one call. `data` is what was hashed, so that what arrives is what was judged."""

    data: bytes

    def form(self) -> dict[str, str]:
        """The text fields of the multipart body; what is not set is not sent."""
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
    """The key of an upload: the same for the same request, so that a run that was killed goes on where it was.

    `epoch` counts how often the source that the key once made has been removed since; without it a removed file could
    not come back while the service still remembers the key. `upload.sha256` must be set.
    """
    fields = asdict(upload)
    del fields["data"]  # the hash is in its place
    return f"svc-{_digest([bucket_id, epoch, fields])}"


def session_key(bucket_id: str, description: Description, size_bytes: int, epoch: int) -> str:
    """The key of an upload session, derived as that of an upload: the next run goes on with the same session."""
    return f"svc-session-{_digest([bucket_id, epoch, size_bytes, description.body()])}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
