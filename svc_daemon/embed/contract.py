"""The interface of embedding models. Vectors are little-endian 32-bit floats of length 1."""

from collections.abc import Sequence
from typing import Protocol


class EmbedFailed(Exception):
    """The model could not be used or returned no vectors. The message says why and, if known, what to do."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        self.retryable = retryable
        super().__init__(message)


class Embedder(Protocol):
    """An embedding model. Thread-safe. Its methods block, so don't call them on the event loop's thread."""

    #: Identifies the model's vectors. Vectors of different models are never compared.
    model: str
    #: Number of a vector's components.
    dimension: int

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the texts' vectors, in order. Raises EmbedFailed."""
        ...

    def embed_query(self, text: str, deadline_s: float | None) -> bytes:
        """Return a query's vector. Raises EmbedFailed, at the latest at the monotonic time `deadline_s`."""
        ...
