"""Finds chunks of complete documents only.

A search reads chunks, then the editions (versions of documents) to which they belong. Only chunks of editions that are
marked as shown count. If an edition was marked recently, the search is repeated, because it may have missed chunks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from svc_daemon.provider.milvus import editions
from svc_daemon.provider.milvus.editions import Edition
from svc_daemon.provider.milvus.schema import Row
from svc_daemon.provider.milvus.server import MilvusServer

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
