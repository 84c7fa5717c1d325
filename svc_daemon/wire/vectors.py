"""Models of the vectors of passages."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.requests import NoDryRunBody, RequestBody
from svc_daemon.wire.sources import Location


class BucketVectors(TypedDict):
    """How many passages of a bucket have a vector of the current embedding model."""

    object: Literal["bucket.vectors"]
    bucket_id: str
    #: Whether the embedding model works, as in `/healthz`.
    state: Literal["off", "loading", "ready", "failing"]
    #: Null if no embedding model is in use.
    model: str | None
    passages: int
    #: Number of passages without a vector yet.
    missing: int
    request_id: str


class OfferedVector(RequestBody):
    """A vector that a client offers for all passages whose text has the given hash."""

    #: SHA-256, in hexadecimal, of the embedded text: title, headings and text.
    text_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    #: 32-bit floats, little-endian, in base64.
    vector: str


class VectorOffers(NoDryRunBody):
    """Body of `POST /v1/buckets/{bucket}/vectors`."""

    model: Annotated[str, Field(min_length=1, max_length=1024)]
    vectors: list[OfferedVector]


class OffersKept(TypedDict):
    """How many of the offered vectors the service has stored (`kept`), and how many it has ignored (`left_out`)."""

    object: Literal["vector_offers"]
    kept: int
    left_out: int
    #: The embedding model in use, if any.
    model: str | None
    request_id: str


class EmbeddedChunk(TypedDict):
    """A chunk with its vector."""

    chunk_id: str
    text: str
    location: Location
    #: SHA-256, in hexadecimal, of the embedded text: title, headings and text.
    text_sha256: str
    #: 32-bit floats, little-endian, in base64; null if there is no vector yet.
    vector: str | None


class SourceVectors(TypedDict):
    """The extracted text, and its chunks with vectors."""

    id: str
    object: Literal["source_vectors"]
    text: str
    #: The embedding model in use, if any.
    model: str | None
    chunks: list[EmbeddedChunk]
    request_id: str
