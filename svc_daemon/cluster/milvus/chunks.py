"""Reads the chunks of complete documents from Milvus, and counts them and their words.

Milvus counts slowly. A count is cached for up to `MOST_AGE_S`, or until this node writes to the team's index. So other
nodes' writes may be missing from a count.

A search reads chunks, then the editions (versions of documents) to which they belong. Only chunks of editions that are
marked as shown count. If an edition was marked recently, the search is repeated, because it may have missed chunks.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from svc_daemon.cluster.milvus import editions
from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.packing import unpack_chunk, unpack_text
from svc_daemon.cluster.milvus.schema import Row, among, equals, every
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.provider.contract import StoredChunk, StoredText, chunk_id

#: Fields of a chunk's row that a hit shows.
HIT_FIELDS = (
    *("source_id", "edition", "ordinal", "char_start", "char_end", "page", "line_start", "line_end"),
    *("headings", "text", "terms"),
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


#: Maximum age of a cached count, in seconds.
MOST_AGE_S = 30.0
#: When a team has this many cached counts, all of them are dropped.
MOST_COUNTS = 20_000
#: Maximum number of teams with cached counts.
MOST_TEAMS = 1_000


@dataclass(slots=True)
class TeamCounts:
    """A cache of one team's counts. It is dropped when this node writes to the team's index."""

    _known: dict[str, tuple[float, int]] = field(default_factory=dict)

    def get(self, name: str, now_s: float, count: Callable[[], int]) -> int:
        """Return the count with this name; call `count` if it isn't cached or is too old. Thread-safe."""
        known = self._known.get(name)
        if known is not None and now_s - known[0] < MOST_AGE_S:
            return known[1]
        if len(self._known) >= MOST_COUNTS:
            self._known.clear()
        counted = count()
        if counted:
            # Don't cache a 0: another node may soon write the first chunks.
            self._known[name] = now_s, counted
        return counted


class TeamCountsCache:
    """The cached counts of all teams. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_teams: dict[str, TeamCounts] = {}

    def of_team(self, team_id: str) -> TeamCounts:
        """Return the team's cached counts."""
        with self._lock:
            if len(self._of_teams) >= MOST_TEAMS:
                self._of_teams.clear()
            return self._of_teams.setdefault(team_id, TeamCounts())

    def forget(self, team_id: str) -> None:
        with self._lock:
            self._of_teams.pop(team_id, None)


#: An edition is recent for this many milliseconds after it was marked as shown. The clocks of the nodes must not differ
#: by more than this.
RECENT_MS = 10_000
#: Maximum number of times that a search is run. Documents that still change in the last run are left out of its result.
ROUNDS = 8

#: A search. It leaves out the given editions, and returns the best rows with their scores.
Ask = Callable[[Sequence[str]], Sequence[tuple[float, Row]]]


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of a search: the rows found, best first. Only rows of editions that searches see are included."""

    rows: list[tuple[float, Row]]
    #: The edition that searches see, by source id.
    shown: Mapping[str, Edition]


def settle(
    server: MilvusServer, team_id: str, ask: Ask, limit: int, now_ms: Callable[[], int], deadline_s: float | None
) -> Settled:
    """Run the search `ask` for up to `limit` rows.

    As long as a document in the result is being changed, the search is run again, at most `ROUNDS` times in all.
    """
    passed_over: set[str] = set()
    seen: dict[str, Edition] = {}
    for attempt in range(ROUNDS):
        started_ms = now_ms()
        found = ask(sorted(passed_over))
        shown = editions.find_shown(server, team_id, {row["source_id"] for _, row in found}, deadline_s=deadline_s)
        moving = {
            source_id
            for source_id, edition in shown.items()
            if edition.stamped_ms > started_ms - RECENT_MS
            and (source_id not in seen or seen[source_id].edition != edition.edition)
        }
        current = {edition.edition for edition in shown.values()}
        others = {row["edition"] for _, row in found} - current
        is_crowded = bool(others) and len(found) >= limit
        is_last = attempt == ROUNDS - 1
        if is_last or not (moving or is_crowded):
            rows = [(score, row) for score, row in found if row["edition"] in current]
            return Settled([each for each in rows if each[1]["source_id"] not in moving], shown)
        passed_over = (passed_over | others) - current
        seen |= shown
    raise AssertionError("unreachable")
