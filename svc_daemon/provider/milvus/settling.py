"""Finds chunks of whole documents only.

A search reads the chunks first, then the rows that name the editions. A chunk counts if its edition is shown then. But
if that edition was shown after the chunks were read, only some of its chunks may have been there to be read. So where
an edition is that recent, the search is repeated: of an edition that was shown before the chunks were read and is shown
still, all chunks were there. Chunks of other editions, which are being written or removed, are left out by the
repetition if they took up room.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from svc_daemon.provider.milvus import editions
from svc_daemon.provider.milvus.editions import Edition
from svc_daemon.provider.milvus.schema import Row
from svc_daemon.provider.milvus.server import MilvusServer

#: How long an edition counts as recent after it was shown, in milliseconds; the nodes share a clock.
RECENT_MS = 10_000
#: How often a search is repeated while documents that it finds are changed. Then those that still change are left out.
ROUNDS = 8

#: Returns the best rows that are not of these editions, each with its score.
Ask = Callable[[Sequence[str]], Sequence[tuple[float, Row]]]


@dataclass(frozen=True, slots=True)
class Settled:
    """Found rows, best first, all of them of shown editions."""

    rows: list[tuple[float, Row]]
    #: The shown editions by source.
    shown: Mapping[str, Edition]


def settle(
    server: MilvusServer, team_id: str, ask: Ask, limit: int, now_ms: Callable[[], int], deadline_s: float | None
) -> Settled:
    """Repeat `ask`, which returns up to `limit` rows, until what it finds is whole."""
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
