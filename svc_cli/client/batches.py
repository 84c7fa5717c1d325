"""Uploads up to 100 files as one batch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from svc_cli.client.calls import Calls, part
from svc_cli.client.new_files import Description
from svc_cli.client.transport import Reply
from svc_cli.errors import BadAnswer

if TYPE_CHECKING:
    from svc_cli.client.types import (
        BatchDict,
        BatchFinalizedDict,
        BatchStatusDict,
    )

#: Maximum number of files in a batch.
MOST_FILES = 100

FinalizeMode = Literal["finalize_uploaded", "abandon_pending"]


@dataclass(frozen=True)
class Member:
    """One file of a batch. `description.sha256` must be set."""

    description: Description
    size_bytes: int

    @cached_property
    def client_file_id(self) -> str:
        """Return the file's id within its batch, derived from title and content."""
        text = json.dumps([self.description.title, self.description.sha256])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class BatchCalls(Calls):
    """The client's methods for batches. The bytes of the files are sent with `send_bytes`."""

    def open_batch(
        self, bucket: str, members: Sequence[Member], idempotency_key: str, *, pack: bool = False
    ) -> "Reply[BatchDict]":
        """Open a batch, or return its sessions again if the call is repeated.

        `items` has an upload session for each accepted file, and `rejected` an error for each refused one. With `pack`,
        the response also has `pack` if the files are small enough: an `upload_url` for the bytes of all files at once.
        The bytes of each file begin there at the `offset` of its item.

        Raises ApiError `invalid_request` if no file is accepted.
        """
        body = manifest_of(members, idempotency_key) | ({"pack": True} if pack else {})
        opened: Reply[BatchDict] = self._create(f"/v1/buckets/{part(bucket)}/batches", body, idempotency_key)
        answered = {item["client_file_id"] for item in (*opened.body["items"], *opened.body["rejected"])}
        if answered != {member.client_file_id for member in members}:
            raise BadAnswer("The service opened a batch of other files; the answer does not come from svc.")
        return opened

    def finalize_batch(
        self, bucket: str, batch_id: str, mode: FinalizeMode = "finalize_uploaded"
    ) -> "BatchFinalizedDict":
        """Create sources from the files of the batch whose bytes are complete."""
        path = f"/v1/buckets/{part(bucket)}/batches/{part(batch_id)}/finalize"
        return self._call("POST", path, json={"mode": mode})

    def batch(self, batch_id: str, *, items: bool = False) -> "BatchStatusDict":
        """Return the state of a batch; with `items`, of each file too."""
        params = {"include_items": "true"} if items else None
        return self._get(f"/v1/knowledge/batches/{part(batch_id)}", params)


def manifest_of(members: Sequence[Member], key: str) -> dict[str, Any]:
    """Return the request body that opens a batch."""
    return {
        "manifest": {
            "version": 1,
            "batch_idempotency_key": key,
            "items": [{"client_file_id": each.client_file_id, **each.description.body()} for each in members],
        },
        "files": [
            {
                "client_file_id": each.client_file_id,
                "filename": each.description.filename,
                "size_bytes": each.size_bytes,
                **({"content_type": each.description.content_type} if each.description.content_type else {}),
            }
            for each in members
        ],
    }


def batch_key(bucket_id: str, members: Sequence[Member], epoch: int) -> str:
    """Derive the idempotency key of a batch from its files, so that the next run continues the batch.

    `new_files.idempotency_key` explains `epoch`.
    """
    text = json.dumps([bucket_id, epoch, manifest_of(members, "")], sort_keys=True)
    return f"svc-batch-{hashlib.sha256(text.encode()).hexdigest()}"
