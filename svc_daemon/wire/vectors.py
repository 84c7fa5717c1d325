"""Vectors of passages: how many a bucket has, and those that an import offers."""

from typing import Annotated, Literal

from pydantic import Field

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import NoDryRunBody, RequestBody
from svc_daemon.wire.sources import Location


class BucketVectors(WireModel):
    """How many passages of a bucket have a vector of the model in use."""

    object: Literal["bucket.vectors"] = "bucket.vectors"
    bucket_id: str
    #: The state of the embedding model, as in `/healthz`.
    state: Literal["off", "loading", "ready", "failing"]
    #: Null if no model is in use.
    model: str | None
    passages: int
    #: Number of passages that have no vector of the model yet.
    missing: int
    request_id: str


class OfferedVector(RequestBody):
    """A vector for all passages with one text."""

    #: SHA-256, in hexadecimal, of the text that is embedded: title, headings and text of the passage.
    text_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    #: 32-bit floats, little-endian, in base64.
    vector: str


class VectorOffers(NoDryRunBody):
    """Body of `POST /v1/buckets/{bucket}/vectors`."""

    model: Annotated[str, Field(min_length=1, max_length=1024)]
    vectors: list[OfferedVector]


class OffersKept(WireModel):
    """The result of offering vectors: how many the service keeps for later use, and how many it leaves out.

    For texts whose vectors are left out, the service computes the vectors itself.
    """

    object: Literal["vector_offers"] = "vector_offers"
    kept: int
    left_out: int
    #: The model in use; null if there is none.
    model: str | None
    request_id: str


class EmbeddedChunk(WireModel):
    """A chunk with its vector."""

    chunk_id: str
    text: str
    location: Location
    #: SHA-256, in hexadecimal, of the text that is embedded: title, headings and text of the passage.
    text_sha256: str
    #: 32-bit floats, little-endian, in base64; null if the chunk has no vector of the model in use yet.
    vector: str | None


class SourceVectors(WireModel):
    """The extracted text, and its chunks with their vectors."""

    id: str
    object: Literal["source_vectors"] = "source_vectors"
    text: str
    #: The model in use; null if there is none.
    model: str | None
    chunks: list[EmbeddedChunk]
    request_id: str
