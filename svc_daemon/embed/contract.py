"""The interface of embedding models to the rest of the daemon.

Vectors are encoded as 32-bit floats, little-endian, and normalized to length 1.
"""

from collections.abc import Sequence
from typing import Protocol


class EmbedFailed(Exception):
    """The model could not be used, or returned no vectors; the message has the reason and, if known, what to do."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        self.retryable = retryable
        super().__init__(message)


class Embedder(Protocol):
    """An embedding model. Its methods are thread-safe and blocking, so don't call them on the event loop's thread."""

    #: Identifier of the model that computes the vectors; vectors of different models are never compared.
    model: str
    #: Number of components of a vector.
    dimension: int

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors of these texts, in order. Raises EmbedFailed."""
        ...

    def embed_query(self, text: str, deadline_s: float | None) -> bytes:
        """Return the vector of a query.

        Raises EmbedFailed if it does not arrive before the monotonic time `deadline_s`.
        """
        ...
