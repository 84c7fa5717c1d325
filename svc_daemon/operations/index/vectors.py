"""Checks vectors that an import offers for its passages, so that the daemon need not compute these vectors.

An offered vector is used only for exactly the same text and the same model. In each batch of passages, the daemon
computes a few vectors itself. If one of these differs from the offered vector, all offers for the batch are deleted.
"""

import base64
import binascii
import hashlib
import logging
import struct
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import hypot
from operator import mul

from svc_daemon.databases.contract import Connection
from svc_daemon.embed.contract import Embedder
from svc_daemon.embed.server_models import LEAST_COSINE
from svc_daemon.operations.retrieve.availability import ask_index
from svc_daemon.operations.shared.reachable_rows import get_lasting_bucket, get_usable_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.process.embedders import EmbeddingState
from svc_daemon.provider.contract import ChunkText, StoredText, VectorCount, parse_chunk_id
from svc_daemon.provider.ranked_chunks import embeddable
from svc_daemon.store.rows import vectors as store
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.vectors import OfferScope, PassageText, VectorOffer

log = logging.getLogger(__name__)

#: How much a vector's length may differ from 1.
LENGTH_TOLERANCE = 1e-3
#: Size of a 32-bit float in bytes.
FLOAT_BYTES = 4
#: Number of offered vectors per batch that the model computes as well, for comparison.
SAMPLES = 4
#: Maximum dimension of an offered vector while the model's dimension is unknown.
MOST_DIMENSIONS = 8192
#: Age in seconds at which unused offers are deleted.
OFFER_AGE_S = 86_400


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


async def offer_vectors(context: Context, key: KeyRow, bucket: str, model: str, offers: Sequence[VectorOffer]) -> int:
    """Store vectors that a client offers for sources of the bucket, and return how many were stored.

    Vectors that can't be used, such as those of another model, are left out.
    """
    found = context.read(lambda connection: get_usable_bucket(connection, key, bucket))
    embedding, dimension = context.embedding, None
    if embedding.embedder is not None:
        dimension = embedding.embedder.dimension if embedding.embedder.model == model else 0
    elif embedding.state is EmbeddingState.OFF:
        dimension = 0
    fitting = [offer for offer in offers if _decode(offer.vector, dimension) is not None]
    if not fitting or not context.blobs.has_room(context.limits.free_disk_bytes):
        return 0
    scope = OfferScope(team_id=found.team_id, bucket_id=found.id, model=model)
    now, most = context.clock.timestamp(), context.limits.offered_vectors
    return await context.write(lambda connection: store.create_offers(connection, scope, fitting, now, most))


async def count_vectors(context: Context, key: KeyRow, bucket: str) -> tuple[str, str | None, VectorCount]:
    """Return the bucket's id, the model in use, and how many passages have a vector of that model."""
    found = context.read(lambda connection: get_lasting_bucket(connection, key, bucket))
    model = context.embedding.embedder.model if context.embedding.embedder else None
    count = await ask_index(
        context, found.team_id, lambda: context.provider.count_unembedded(found.team_id, model or "", [found.id])
    )
    return found.id, model, count


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """The vectors of a source's chunks and the hashes of their texts, by chunk id."""

    #: The model in use, if any.
    model: str | None
    hashes: Mapping[str, str]
    vectors: Mapping[str, bytes]


async def read_vectors(context: Context, source: SourceRow, stored: StoredText) -> StoredVectors:
    """Read the current model's vectors for the chunks of this text."""
    model = context.embedding.embedder.model if context.embedding.embedder else None
    texts = {each.chunk_id: embeddable(stored.title, each.chunk.headings, each.chunk.text) for each in stored.chunks}
    hashes = {chunk_id: hash_text(text) for chunk_id, text in texts.items()}
    if model is None:
        return StoredVectors(None, hashes, {})
    vectors = await ask_index(
        context, source.team_id, lambda: context.provider.get_vectors(source.team_id, source.id, model)
    )
    return StoredVectors(model, hashes, vectors)


@dataclass(frozen=True, slots=True)
class OfferedBatch:
    """The vectors offered for one batch of chunks."""

    #: The offered vectors, by chunk id.
    vectors: Mapping[str, bytes]
    #: Ids of a few of these chunks. The model embeds them too, to check the offered vectors.
    samples: Set[str]

    def select_to_embed(self, chunks: Sequence[ChunkText]) -> list[ChunkText]:
        """Return the chunks to embed: chunks without an offered vector, and samples that check the offered vectors."""
        return [chunk for chunk in chunks if chunk.chunk_id not in self.vectors or chunk.chunk_id in self.samples]

    def find_wrong(self, computed: Sequence[tuple[str, bytes]]) -> list[str]:
        """Return the ids of the samples whose computed vector differs from the offered vector."""
        pairs = [(each, _read(vector), _read(self.vectors[each])) for each, vector in computed if each in self.samples]
        return [each for each, mine, theirs in pairs if sum(map(mul, mine, theirs)) < LEAST_COSINE]

    def add_to(self, computed: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        """Return the vectors to store: the computed vectors and, if the samples are right, the offered vectors.

        If a sample is right, its offered vector is returned, not the computed vector.
        """
        mine = dict(computed)
        is_checked = self.samples <= mine.keys() and not self.find_wrong(computed)
        return [*(mine | dict(self.vectors)).items()] if is_checked else [*computed]


def find_offers(context: Context, team_id: str, embedder: Embedder, chunks: Sequence[ChunkText]) -> OfferedBatch:
    """Find the vectors offered for these chunks, and choose some at random for checking."""
    passages = [_passage_of(chunk) for chunk in chunks]
    offered = context.read(lambda connection: store.find_offers(connection, team_id, embedder.model, passages))
    # Check the vectors again: when they were offered, the model's dimension may have been unknown.
    decoded = {passage: _decode(vector, embedder.dimension) for passage, vector in offered.items()}
    placed = {chunk.chunk_id: decoded.get(passage) for chunk, passage in zip(chunks, passages, strict=True)}
    vectors = {chunk_id: vector for chunk_id, vector in placed.items() if vector is not None}
    # Choose at random: if clients could predict the choice, they could offer wrong vectors for all other chunks.
    return OfferedBatch(vectors, {*sorted(vectors, key=lambda _: context.ids.random(8))[:SAMPLES]})


async def finish_offers(
    context: Context, team_id: str, chunks: Sequence[ChunkText], early: Sequence[PassageText], wrong: Sequence[str]
) -> list[PassageText]:
    """Delete the vectors offered for these chunks, except those that other passages with the same text still need.

    `wrong` names the samples whose offered vector is wrong. If there are any, all vectors offered for the chunks are
    deleted. Otherwise, vectors for sources that aren't active yet are kept. Returns the passages of these sources, to
    pass as `early` in the next call.
    """
    passages = [_passage_of(chunk) for chunk in chunks]

    def work(connection: Connection) -> list[PassageText]:
        if not wrong:
            return store.finish_offers(connection, team_id, [*early, *passages])
        store.refuse_offers(connection, team_id, passages)
        return store.finish_offers(connection, team_id, early)

    if wrong:
        log.warning("imported vectors are not used: the model has other ones for %s", ", ".join(wrong))
    return await context.write(work)


async def forget_offers(context: Context) -> int:
    """Delete the offers that are older than a day. Returns how many."""
    oldest = context.clock.timestamp(-OFFER_AGE_S)

    def work(connection: Connection) -> int:
        return store.delete_offers_before(connection, oldest)

    return await context.write(work)


def _passage_of(chunk: ChunkText) -> PassageText:
    source_id, generation, _ = parse_chunk_id(chunk.chunk_id)
    return PassageText(source_id, generation, hash_text(chunk.text))


def _decode(text: str, dimension: int | None) -> bytes | None:
    """Decode a vector from base64. Returns None unless the vector has this dimension and length 1.

    If `dimension` is None, any dimension up to `MOST_DIMENSIONS` is accepted.
    """
    try:
        values = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    count, rest = divmod(len(values), FLOAT_BYTES)
    is_sized = not rest and (0 < count <= MOST_DIMENSIONS if dimension is None else 0 < count == dimension)
    # The comparison is false if the length is infinite or not a number.
    return values if is_sized and abs(hypot(*_read(values)) - 1) <= LENGTH_TOLERANCE else None


def _read(values: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(values) // FLOAT_BYTES}f", values)
