"""What turns text into vectors, as the rest of the daemon uses it.

A vector is its numbers as 4 bytes each, little-endian, and has length 1.
"""

from collections.abc import Sequence
from typing import Protocol


class EmbedFailed(Exception):
    """The model could not be used or returned no vectors; the message has the reason and any remedy."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        self.retryable = retryable
        super().__init__(message)


class Embedder(Protocol):
    """One model. Thread-safe, and blocking: called on threads, never on the loop."""

    #: Names the model and its generation; vectors of two names are never compared.
    model: str
    #: Numbers in a vector.
    dimension: int

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of these texts, in order. Raises EmbedFailed."""
        ...

    def embed_query(self, text: str, deadline_s: float | None) -> bytes:
        """The vector of a query, by this instant of the monotonic clock, in seconds. Raises EmbedFailed."""
        ...
