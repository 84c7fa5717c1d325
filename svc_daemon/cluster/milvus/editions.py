"""The editions of a document: its versions in the index, and which of them searches see.

Milvus has no transactions, so each change writes a new edition:

- First, a row for the edition is written, marked as hidden. Then the edition's chunks are written, and the row is
  marked as shown.
- If several editions are shown, the last one of the highest generation counts. So a late writer of an earlier
  generation has no effect.
- The node that shows an edition removes the earlier ones.
- A killed writer leaves a hidden edition, which the document's next writer removes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from svc_daemon.cluster.milvus.schema import Row, among, differs, equals, every
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.provider.contract import ListedDocument

#: Maximum number of source ids in one filter.
SOURCES_PER_CALL = 1000
_FIELDS = (
    *(
        "source_id",
        "edition",
        "title",
        "language",
        "generation",
        "chunks",
        "pieces",
        "stamped_ms",
        "is_shown",
        "bucket_ids",
    ),
)
_LISTED = ("source_id", "edition", "generation", "chunks", "bucket_ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """One version of a document in the index."""

    source_id: str
    #: The edition's unique name. The names of later editions sort after it.
    edition: str
    generation: int
    title: str
    #: The language whose stems the chunks are found by; "" for none.
    language: str
    #: The document's buckets, sorted and without duplicates.
    bucket_ids: tuple[str, ...]
    #: Number of chunks.
    chunks: int
    #: When the row was written, in milliseconds by the writer's clock.
    stamped_ms: int
    #: Number of further rows, each with another piece of the compressed text.
    pieces: int
    #: The first piece of the compressed text between the chunks. `find` and `list_all` don't read it.
    body: str = ""
    is_shown: bool = False


def find(
    server: MilvusServer, team_id: str, source_ids: Iterable[str], *, deadline_s: float | None = None
) -> dict[str, list[Edition]]:
    """Map each source id to all editions of its document, oldest first."""
    found: dict[str, list[Edition]] = {}
    wanted = sorted(set(source_ids))
    for start in range(0, len(wanted), SOURCES_PER_CALL):
        named = among("source_id", wanted[start : start + SOURCES_PER_CALL])
        of_team = every(equals("team_id", team_id), named, equals("piece", 0))
        for row in server.query(server.collections.documents, of_team, _FIELDS, deadline_s=deadline_s):
            found.setdefault(row["source_id"], []).append(_from_row(row))
    return {source_id: sorted(editions, key=lambda each: each.edition) for source_id, editions in found.items()}


def find_shown(
    server: MilvusServer, team_id: str, source_ids: Iterable[str], *, deadline_s: float | None = None
) -> dict[str, Edition]:
    """Map each source id to the edition that searches see. Sources without one are left out."""
    found = find(server, team_id, source_ids, deadline_s=deadline_s)
    return {source_id: shown for source_id, editions in found.items() if (shown := last_shown(editions)) is not None}


def last_shown(editions: Iterable[Edition]) -> Edition | None:
    """Choose the edition that searches see: the last one shown, or None."""
    return max((each for each in editions if each.is_shown), key=lambda each: each.edition, default=None)


def list_shown(server: MilvusServer, team_id: str) -> Iterator[ListedDocument]:
    """List the team's documents that searches see, in the order of their source ids."""
    wanted = every(equals("team_id", team_id), equals("is_shown", True))
    rows = server.list_sorted(server.collections.documents, wanted, _LISTED)
    for _, of_source in groupby(rows, key=lambda row: str(row["source_id"])):
        row = max(of_source, key=lambda row: str(row["edition"]))
        yield ListedDocument(row["source_id"], row["generation"], tuple(row["bucket_ids"]), row["chunks"])


def list_all(server: MilvusServer, team_id: str) -> Iterator[Edition]:
    """List all editions of the team's documents, including hidden ones, by source id, oldest first."""
    wanted = every(equals("team_id", team_id), equals("piece", 0), differs("source_id", ""))
    return map(_from_row, server.list_sorted(server.collections.documents, wanted, _FIELDS))


def list_teams(server: MilvusServer) -> list[str]:
    """List the teams that have an index."""
    rows = server.list_sorted(server.collections.documents, equals("source_id", ""), ("team_id",))
    return sorted({row["team_id"] for row in rows})


def announce(
    server: MilvusServer, team_id: str, drafts: Sequence[Edition], pieces: Mapping[str, Sequence[str]]
) -> None:
    """Write the rows of new, hidden editions. The caller then writes their chunks.

    `pieces` maps an edition's name to the pieces of its `body` after the first.
    """
    rows = [_to_row(team_id, draft) for draft in drafts]
    for draft in drafts:
        blank = replace(draft, bucket_ids=(), title="", language="")
        rows += [
            _to_row(team_id, replace(blank, body=body), piece)
            for piece, body in enumerate(pieces.get(draft.edition, ()), start=1)
        ]
    of_team = every(equals("team_id", team_id), equals("source_id", ""))
    if server.count(server.collections.documents, of_team, is_estimate=True) == 0:
        # A row without a source records that the team has an index.
        none = Edition(
            source_id="",
            edition="",
            generation=0,
            title="",
            language="",
            bucket_ids=(),
            chunks=0,
            stamped_ms=0,
            pieces=0,
        )
        rows.append(_to_row(team_id, none))
    server.insert(server.collections.documents, rows)


def set_shown(server: MilvusServer, team_id: str, editions: Sequence[Edition], is_shown: bool, now_ms: int) -> None:
    """Show or hide these editions, by replacing their rows. Before editions are shown, their `body` must be set."""
    rows = [_to_row(team_id, replace(each, is_shown=is_shown, stamped_ms=now_ms)) for each in editions]
    server.upsert(server.collections.documents, rows)


def remove(server: MilvusServer, team_id: str, editions: Collection[Edition]) -> None:
    """Remove editions that searches don't see.

    The rows in the collection of documents are deleted last, because after a crash, they show which editions are left.
    """
    if not editions:
        return
    wanted = every(equals("team_id", team_id), among("edition", (each.edition for each in editions)))
    for collection in (*server.list_vector_collections(), server.collections.chunks, server.collections.documents):
        server.delete(collection, wanted)


def remove_team(server: MilvusServer, team_id: str) -> None:
    """Remove all rows of the team.

    Documents go first, so that searches find nothing from then on.
    """
    for collection in (server.collections.documents, server.collections.chunks, *server.list_vector_collections()):
        server.delete(collection, equals("team_id", team_id))


def read_pieces(server: MilvusServer, team_id: str, edition: Edition) -> list[str]:
    """Read the compressed text that lies between an edition's chunks. Returns its pieces in order."""
    wanted = every(equals("team_id", team_id), equals("edition", edition.edition))
    rows = server.query(server.collections.documents, wanted, ("piece", "body"))
    return [row["body"] for row in sorted(rows, key=lambda row: int(row["piece"]))]


def _from_row(row: Row) -> Edition:
    values = {name: row[name] for name in _FIELDS}
    return Edition(**{**values, "bucket_ids": tuple(row["bucket_ids"])})


def _to_row(team_id: str, each: Edition, piece: int = 0) -> Row:
    return {
        # A space sorts before all characters of ids, so rows sort by source id.
        "id": f"{team_id} {each.source_id} {each.edition} {piece:05}",
        "team_id": team_id,
        "source_id": each.source_id,
        "edition": each.edition,
        "title": each.title,
        "language": each.language,
        "generation": each.generation,
        "bucket_ids": list(each.bucket_ids),
        "chunks": each.chunks,
        "piece": piece,
        "pieces": each.pieces,
        "stamped_ms": each.stamped_ms,
        "is_shown": each.is_shown,
        "body": each.body,
        "nothing": [0.0, 0.0],
    }
