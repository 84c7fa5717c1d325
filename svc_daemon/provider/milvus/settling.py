"""Finds chunks of complete documents only.

A search reads chunks first, and then the rows of their editions (versions of documents). A chunk counts only if its
edition is shown at that time. But if that edition was shown only after the chunks were read, some of its chunks may
have been missing. So if an edition was shown recently, the search is repeated: if the same edition is still shown then,
it was complete. Chunks of other editions, which are being written or removed, are excluded from the repeated search if
they used up places in the result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from svc_daemon.provider.milvus import editions
from svc_daemon.provider.milvus.editions import Edition
from svc_daemon.provider.milvus.schema import Row
from svc_daemon.provider.milvus.server import MilvusServer

#: A version of a document counts as recent for this many milliseconds after it was shown. The clocks of the nodes must
#: differ by less.
RECENT_MS = 10_000
#: How many times a search is run while documents that it finds are changing. After that, these documents are left out.
ROUNDS = 8

#: A function that returns the best rows, except those of the given editions, each with its score.
Ask = Callable[[Sequence[str]], Sequence[tuple[float, Row]]]


@dataclass(frozen=True, slots=True)
class Settled:
    """The rows that a search has found, best first, all from versions of documents that searches see."""

    rows: list[tuple[float, Row]]
    #: For each source id, the edition (version of the document) that searches see.
    shown: Mapping[str, Edition]


def settle(
    server: MilvusServer, team_id: str, ask: Ask, limit: int, now_ms: Callable[[], int], deadline_s: float | None
) -> Settled:
    """Repeat the search `ask`, which returns up to `limit` rows, until all documents that it finds are complete."""
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
