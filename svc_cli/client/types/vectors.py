"""Types of vectors. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.sources import LocationDict


class BucketVectorsDict(TypedDict):
    """How many passages of a bucket have a vector of the model in use."""

    object: Literal["bucket.vectors"]
    bucket_id: str
    state: Literal["off", "loading", "ready", "failing"]
    """The state of the embedding model, as in `/healthz`."""
    model: str | None
    """Null if no model is in use."""
    passages: int
    missing: int
    """Number of passages that have no vector of the model yet."""
    request_id: str


class OfferedVectorDict(TypedDict):
    """A vector for all passages with one text."""

    text_sha256: str
    """SHA-256, in hexadecimal, of the text that is embedded: title, headings and text of the passage."""
    vector: str
    """32-bit floats, little-endian, in base64."""


class OffersKeptDict(TypedDict):
    """The result of offering vectors: how many the service keeps for later use, and how many it leaves out.

    For texts whose vectors are left out, the service computes the vectors itself.
    """

    object: Literal["vector_offers"]
    kept: int
    left_out: int
    model: str | None
    """The model in use; null if there is none."""
    request_id: str


class EmbeddedChunkDict(TypedDict):
    """A chunk with its vector."""

    chunk_id: str
    text: str
    location: LocationDict
    text_sha256: str
    """SHA-256, in hexadecimal, of the text that is embedded: title, headings and text of the passage."""
    vector: str | None
    """32-bit floats, little-endian, in base64; null if the chunk has no vector of the model in use yet."""


class SourceVectorsDict(TypedDict):
    """The extracted text, and its chunks with their vectors."""

    id: str
    object: Literal["source_vectors"]
    text: str
    model: str | None
    """The model in use; null if there is none."""
    chunks: list[EmbeddedChunkDict]
    request_id: str
