"""A one-call upload: its fields, and the idempotency key that is derived from them."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One file as it is sent. `data` is what was hashed, so that what arrives is what was judged."""

    filename: str
    data: bytes
    title: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Hex digest of `data`; the service refuses bytes that don't match it.
    sha256: str | None = None
    #: Id of the source whose place this one takes when it is ready.
    replaces: str | None = None

    def form(self) -> dict[str, str]:
        """The text fields of the multipart body; what is not set is not sent."""
        fields = {
            "title": self.title,
            "tags": ",".join(self.tags),
            "metadata": json.dumps(self.metadata, ensure_ascii=False, sort_keys=True) if self.metadata else "",
            "sha256": self.sha256 or "",
            "replaces": self.replaces or "",
        }
        return {name: value for name, value in fields.items() if value}


def idempotency_key(bucket_id: str, upload: Upload, epoch: int) -> str:
    """The key of an upload: the same for the same request, so that a run that was killed goes on where it was.

    `epoch` counts how often the source that the key once made has been removed since; without it a removed file could
    not come back while the service still remembers the key. `upload.sha256` must be set.
    """
    fields = asdict(upload)
    del fields["data"]  # the hash stands for it
    text = json.dumps([bucket_id, epoch, fields], sort_keys=True, ensure_ascii=True)
    return f"svc-{hashlib.sha256(text.encode()).hexdigest()}"
