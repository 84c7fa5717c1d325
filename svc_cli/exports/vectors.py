"""Sends the vectors of an export to the service, just before the files are sent.

The service computes all vectors that it doesn't get, so an import continues after errors here.
"""

import base64
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from svc_cli.client.api import Client
from svc_cli.errors import FileRefused, SvcError
from svc_cli.exports.manifests import HASH_BYTES, ExportedModel
from svc_cli.uploads.contents import FileContent

if TYPE_CHECKING:
    from svc_cli.client.types import OfferedVectorDict

T = TypeVar("T")

#: Maximum size of the vectors in one request. Encoded in base64, they must stay below 1 MB.
MOST_BYTES = 512 * 1024
#: Maximum number of vectors in one request.
MOST_ROWS = 2000
#: Maximum number of files whose vectors are sent in one request.
FILES_AT_ONCE = 100


class VectorSender:
    """Sends the vectors of an export to the service, unless the service uses another embedding model."""

    def __init__(self, client: Client, bucket_id: str, model: ExportedModel | None) -> None:
        """`model` is the export's embedding model. If it is None, no vectors are sent."""
        self._client = client
        self._bucket_id = bucket_id
        self._model = model
        #: Number of vectors that the export has for the files to send.
        self.found = 0
        #: Number of vectors that the service kept.
        self.kept = 0
        #: Whether the service refuses the vectors, or uses another model.
        self.is_refused = False

    def offer_before(self, entries: "Iterable[tuple[T, FileContent | None]]") -> Iterator[T]:
        """Yield the entries, each after its vectors were sent."""
        waiting: list[T] = []
        rows: list[OfferedVectorDict] = []
        most_rows = max(1, min(MOST_ROWS, MOST_BYTES // self._model.row_bytes)) if self._model else 0
        for entry, content in entries:
            waiting.append(entry)
            for row in self._read(content):
                rows.append(row)
                if len(rows) == most_rows:
                    self._offer(rows)
                    rows = []
            if not rows or len(waiting) == FILES_AT_ONCE:
                self._offer(rows)
                yield from waiting
                waiting, rows = [], []
        self._offer(rows)
        yield from waiting

    def _read(self, content: FileContent | None) -> "Iterator[OfferedVectorDict]":
        """Yield the vectors of one file. Stops early if they can't be read."""
        if content is None or self._model is None:
            return
        size_bytes, rest = self._model.row_bytes, b""
        with suppress(FileRefused):
            for block in content.blocks(0):
                rest += block
                whole_bytes = len(rest) - len(rest) % size_bytes
                for start in range(0, whole_bytes, size_bytes):
                    text, vector = rest[start : start + HASH_BYTES], rest[start + HASH_BYTES : start + size_bytes]
                    self.found += 1
                    yield {"text_sha256": text.hex(), "vector": base64.b64encode(vector).decode()}
                rest = rest[whole_bytes:]

    def _offer(self, rows: "list[OfferedVectorDict]") -> None:
        if not rows or self._model is None or self.is_refused:
            return
        try:
            answer = self._client.offer_vectors(self._bucket_id, self._model.name, rows)
        except SvcError as error:
            # Go on without vectors. An error such as a revoked key occurs again when the files are sent, and then
            # ends the import.
            self.is_refused = not error.retryable
            return
        self.kept += answer["kept"]
        self.is_refused = not answer["kept"] and answer["model"] != self._model.name
