"""Vectors of documents and queries, from whatever server speaks OpenAI's `/v1/embeddings`."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any

import httpx

from svc_daemon.provider.contract import QueryVector, SearchProvider

BATCH = 32
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class VectorServer:
    """A server and its model."""

    #: As in SVC_EMBED_BASE_URL, such as `http://127.0.0.1:8080/v1`.
    base_url: str
    model: str

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Of length 1 each, in order, as providers take them."""
        body = {"model": self.model, "input": list(texts)}
        answer = httpx.post(f"{self.base_url.rstrip('/')}/embeddings", json=body, timeout=TIMEOUT_S, trust_env=False)
        rows: list[dict[str, Any]] = answer.raise_for_status().json()["data"]
        return [_pack(row["embedding"]) for row in sorted(rows, key=lambda row: row["index"])]

    def embed_query(self, text: str) -> QueryVector:
        return QueryVector(model=self.model, values=self.embed([text])[0])

    def fill(self, provider: SearchProvider, team_id: str) -> None:
        """Give every chunk of the team its vector."""
        while waiting := provider.list_unembedded(team_id, self.model, BATCH):
            vectors = self.embed([chunk.text for chunk in waiting])
            ids = [chunk.chunk_id for chunk in waiting]
            provider.put_vectors(team_id, self.model, list(zip(ids, vectors, strict=True)))


def _pack(numbers: Sequence[float]) -> bytes:
    length = hypot(*numbers)
    return struct.pack(f"<{len(numbers)}f", *(number / length for number in numbers))
