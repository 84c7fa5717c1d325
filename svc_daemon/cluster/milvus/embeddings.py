"""The vectors of chunks.

A vector is written before its chunk's row names the model, so a chunk that names a model always has a vector.
"""

import struct
from collections.abc import Mapping, Sequence

from svc_daemon.cluster.milvus import chunks, editions
from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.packing import unpack_chunk
from svc_daemon.cluster.milvus.schema import Row, among, differs, equals, every, outside, within_buckets
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.cluster.milvus.writing import vector_row
from svc_daemon.provider.contract import ChunkText, VectorCount, chunk_id, parse_chunk_id
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.ranked_chunks import embeddable

#: Size of a 32-bit float in bytes.
FLOAT_BYTES = 4
#: Number of chunks whose vectors are removed per call.
DROPPED_ROWS = 1000
#: All fields of a chunk's row.
CHUNK_FIELDS = (*chunks.HIT_FIELDS, "id", "team_id", "bucket_ids", "model")


def list_missing(server: MilvusServer, team_id: str, model: str, limit: int) -> list[ChunkText]:
    """List up to `limit` chunks without a vector of this model, oldest sources first."""
    listed: list[ChunkText] = []
    hidden: set[str] = set()
    while True:
        passed_over = outside("edition", sorted(hidden)) if hidden else None
        wanted = every(equals("team_id", team_id), differs("model", model), passed_over)
        rows = server.query(server.collections.chunks, wanted, CHUNK_FIELDS, limit=limit)
        shown = editions.find_shown(server, team_id, (row["source_id"] for row in rows))
        current = {each.edition for each in shown.values()}
        listed = [
            _to_embed(shown[row["source_id"]], row)
            for row in sorted(rows, key=lambda row: str(row["id"]))
            if row["edition"] in current
        ]
        # Chunks that searches don't see aren't listed, but count towards `limit`. If `limit` was reached, query again
        # without them.
        newly_hidden = {row["edition"] for row in rows} - current
        if len(rows) < limit or not newly_hidden:
            return listed
        hidden |= newly_hidden


def find_vectors(server: MilvusServer, team_id: str, source_id: str, model: str) -> dict[str, bytes]:
    """Read this model's vectors of the source, by chunk id, from the edition that searches see."""
    shown = editions.find_shown(server, team_id, [source_id]).get(source_id)
    if shown is None:
        return {}
    rows = [
        row
        for collection in server.list_vector_collections()
        for page in chunks.read_edition(server, collection, team_id, shown, ("ordinal", "model", "vector"))
        for row in page
    ]
    return {
        chunk_id(source_id, shown.generation, row["ordinal"]): struct.pack(f"<{len(row['vector'])}f", *row["vector"])
        for row in rows
        if row["model"] == model
    }


def count_missing(
    server: MilvusServer,
    team_id: str,
    model: str,
    bucket_ids: Sequence[str] | None,
    source_ids: Sequence[str] | None = None,
    deadline_s: float | None = None,
) -> VectorCount:
    """Count the chunks in these buckets and sources (None: all), and those without a vector of this model."""
    if any(ids is not None and not ids for ids in (bucket_ids, source_ids)):
        return VectorCount(0, 0)
    scope = every(
        equals("team_id", team_id),
        None if bucket_ids is None else within_buckets(bucket_ids),
        None if source_ids is None else among("source_id", source_ids),
    )
    total = server.count(server.collections.chunks, scope, deadline_s=deadline_s)
    of_model = every(scope, equals("model", model))
    # Rows of chunks without a vector have an empty `model`. If `model` is empty, don't count these rows as embedded.
    embedded = server.count(server.collections.chunks, of_model, deadline_s=deadline_s) if model else 0
    return VectorCount(max(0, total - embedded), total)


def put(server: MilvusServer, team_id: str, model: str, vectors: Sequence[tuple[str, bytes]]) -> None:
    """Store vectors of this model, replacing earlier ones. Vectors of deleted chunks are skipped.

    Raises ProviderFailed unless all of the model's vectors have the same length.
    """
    named = {parse_chunk_id(name): values for name, values in vectors}
    shown = editions.find_shown(server, team_id, (source_id for source_id, _, _ in named))
    current = {
        (shown[source_id], ordinal): values
        for (source_id, generation, ordinal), values in named.items()
        if source_id in shown and shown[source_id].generation == generation and ordinal < shown[source_id].chunks
    }
    if not current:
        return
    lengths = sorted({len(values) for values in current.values()})
    check_length(server, team_id, model, lengths)
    _store(server, team_id, model, current, lengths[0] // FLOAT_BYTES)
    # Another node may have replaced an edition meanwhile: remove the replaced edition's new vectors.
    now_shown = editions.find_shown(server, team_id, shown)
    gone = [
        each
        for source_id, each in shown.items()
        if source_id not in now_shown or now_shown[source_id].edition != each.edition
    ]
    editions.remove(server, team_id, gone)


def check_length(server: MilvusServer, team_id: str, model: str, lengths: Sequence[int]) -> None:
    """Raise ProviderFailed unless all these lengths, in bytes, equal that of the model's stored vectors."""
    wanted = every(equals("team_id", team_id), equals("model", model))
    for collection in server.list_vector_collections():
        stored_bytes = (server.collections.find_dimension(collection) or 0) * FLOAT_BYTES
        if [stored_bytes] != [*lengths] and server.query(collection, wanted, ("id",), limit=1):
            raise ProviderFailed(
                f"Vectors of {model} have {stored_bytes} bytes; some have {', '.join(map(str, lengths))}.",
                retryable=False,
            )
    if len(lengths) > 1:
        raise ProviderFailed(f"Vectors of {model} have {' or '.join(map(str, lengths))} bytes.", retryable=False)


def drop(server: MilvusServer, team_id: str, keep_model: str | None) -> None:
    """Remove the team's vectors, except those of `keep_model`. After a crash, the next call removes the rest."""
    of_team = equals("team_id", team_id)
    others = outside("model", ["", *([keep_model] if keep_model is not None else [])])
    # Clear `model` in the chunks' rows before deleting vectors: a chunk that names a model must have a vector.
    while rows := server.query(server.collections.chunks, every(of_team, others), CHUNK_FIELDS, limit=DROPPED_ROWS):
        server.upsert(server.collections.chunks, [_named(row, "") for row in rows])
    for collection in server.list_vector_collections():
        server.delete(collection, every(of_team, others))


def read_vector(values: bytes) -> list[float]:
    """Convert a vector from bytes to the numbers that Milvus needs."""
    return list(struct.unpack(f"<{len(values) // FLOAT_BYTES}f", values))


def _store(
    server: MilvusServer,
    team_id: str,
    model: str,
    current: Mapping[tuple[Edition, int], bytes],
    dimension: int,
) -> None:
    """Write the vectors, then write the model's name to the rows of their chunks."""
    own = server.prepare_vectors(dimension)
    rows = [
        vector_row(team_id, edition, ordinal, model, read_vector(values))
        for (edition, ordinal), values in current.items()
    ]
    server.upsert(own, rows)
    row_ids = [row["id"] for row in rows]
    stored = chunks.read_rows(server, server.collections.chunks, team_id, row_ids, CHUNK_FIELDS)
    server.upsert(server.collections.chunks, [_named(row, model) for row in stored.values() if row["model"] != model])
    for collection in server.list_vector_collections():
        if collection != own:
            server.delete(collection, every(equals("team_id", team_id), among("id", row_ids)))


def _to_embed(edition: Edition, row: Row) -> ChunkText:
    chunk = unpack_chunk(row)
    name = chunk_id(edition.source_id, edition.generation, chunk.ordinal)
    return ChunkText(name, embeddable(edition.title, chunk.headings, chunk.text))


def _named(row: Row, model: str) -> Row:
    """Return a copy of the chunk's row that names this model."""
    return {**row, "bucket_ids": list(row["bucket_ids"]), "model": model}
