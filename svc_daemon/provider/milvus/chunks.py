"""Reads the chunks of documents from Milvus."""

from collections.abc import Iterator, Mapping, Sequence

from svc_daemon.provider.contract import StoredChunk, StoredText, chunk_id
from svc_daemon.provider.milvus import editions
from svc_daemon.provider.milvus.editions import Edition
from svc_daemon.provider.milvus.packing import unpack_chunk, unpack_text
from svc_daemon.provider.milvus.schema import Row, among, equals, every
from svc_daemon.provider.milvus.server import MilvusServer

#: Fields of a chunk's row that a hit shows.
HIT_FIELDS = (
    *("source_id", "edition", "ordinal", "char_start", "char_end", "page", "line_start", "line_end"),
    *("headings", "text", "stems"),
)
#: Number of rows that are read per call.
PAGE = 1000


def read_edition(
    server: MilvusServer, collection: str, team_id: str, edition: Edition, fields: Sequence[str]
) -> Iterator[list[Row]]:
    """Read the rows of an edition (a version of a document) page by page, ordered by ordinal."""
    of_edition = every(equals("team_id", team_id), equals("edition", edition.edition))
    for start in range(0, edition.chunks, PAGE):
        wanted = every(of_edition, f"ordinal >= {start}", f"ordinal < {start + PAGE}")
        yield sorted(server.query(collection, wanted, fields), key=lambda row: int(row["ordinal"]))


def read_rows(
    server: MilvusServer,
    collection: str,
    team_id: str,
    row_ids: Sequence[str],
    fields: Sequence[str],
    deadline_s: float | None = None,
) -> Mapping[str, Row]:
    """Read the rows with these ids. Returns those that exist, by id."""
    found: dict[str, Row] = {}
    for start in range(0, len(row_ids), PAGE):
        # The team's id limits the look-up to its partition.
        wanted = every(equals("team_id", team_id), among("id", row_ids[start : start + PAGE]))
        rows = server.query(collection, wanted, ("id", *fields), deadline_s=deadline_s)
        found |= {row["id"]: row for row in rows}
    return found


def find_text(server: MilvusServer, team_id: str, source_id: str) -> StoredText | None:
    """Read the source's text and chunks; None if the document isn't in the index."""
    while (shown := editions.find_shown(server, team_id, [source_id]).get(source_id)) is not None:
        pages = read_edition(server, server.collections.chunks, team_id, shown, HIT_FIELDS)
        chunks = [unpack_chunk(row) for page in pages for row in page]
        pieces = editions.read_pieces(server, team_id, shown)
        # Rows are missing if another node has replaced this edition: read the new one.
        if len(chunks) == shown.chunks and len(pieces) == shown.pieces + 1:
            return StoredText(
                generation=shown.generation,
                title=shown.title,
                text=unpack_text(pieces, chunks),
                chunks=tuple(
                    StoredChunk(chunk_id=chunk_id(source_id, shown.generation, chunk.ordinal), chunk=chunk)
                    for chunk in chunks
                ),
            )
    return None
