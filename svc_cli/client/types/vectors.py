"""Types of vectors. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.sources import LocationDict


class BucketVectorsDict(TypedDict):
    """How many passages of a bucket have a vector of the current embedding model."""

    object: Literal["bucket.vectors"]
    bucket_id: str
    state: Literal["off", "loading", "ready", "failing"]
    """Whether the embedding model works, as in `/healthz`."""
    model: str | None
    """Null if no embedding model is in use."""
    passages: int
    missing: int
    """Number of passages without a vector yet."""
    request_id: str


class OfferedVectorDict(TypedDict):
    """A vector that a client offers for all passages whose text has the given hash."""

    text_sha256: str
    """SHA-256, in hexadecimal, of the embedded text: title, headings and text."""
    vector: str
    """32-bit floats, little-endian, in base64."""


class OffersKeptDict(TypedDict):
    """How many of the offered vectors the service has stored (`kept`), and how many it has ignored (`left_out`)."""

    object: Literal["vector_offers"]
    kept: int
    left_out: int
    model: str | None
    """The embedding model in use, if any."""
    request_id: str


class EmbeddedChunkDict(TypedDict):
    """A chunk with its vector."""

    chunk_id: str
    text: str
    location: LocationDict
    text_sha256: str
    """SHA-256, in hexadecimal, of the embedded text: title, headings and text."""
    vector: str | None
    """32-bit floats, little-endian, in base64; null if there is no vector yet."""


class SourceVectorsDict(TypedDict):
    """The extracted text, and its chunks with vectors."""

    id: str
    object: Literal["source_vectors"]
    text: str
    model: str | None
    """The embedding model in use, if any."""
    chunks: list[EmbeddedChunkDict]
    request_id: str
