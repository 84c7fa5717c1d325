"""Cutting documents anew after their bucket's chunking has changed, while the old pieces answer.

    mark (with the change)  ->  read (child)  ->  begin  ->  put (index)  ->  finish

Theory of operation. The bytes are the same, so the old pieces and the new ones are both right: `begin` gives the source
its next generation and keeps the earlier ones valid, the index swaps one for the other in one step, and `finish` takes
the mark away. So a search finds the source at any moment, it stays ready, and a kill anywhere leaves the mark, with
which the next start begins again. Whatever else makes a new generation meanwhile (new bytes, a retry) wins: it comes
later, and its own reading goes by the new chunking. Nothing begins while the index is being told of a bucket.
"""

from dataclasses import replace
from sqlite3 import Connection

from svc_daemon.core import readiness
from svc_daemon.core.documents import Extraction
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.indexing import Reading, find_reading, indexed, is_cut_right
from svc_daemon.store.buckets import touch_buckets_of
from svc_daemon.store.detachments import create_detachment
from svc_daemon.store.rechunks import find_next_rechunk
from svc_daemon.store.sources import Source, find_source, update_state


def next_reading(context: Context, after_id: str) -> Reading | None:
    """The next marked source behind `after_id`, as it is to be read."""

    def work(connection: Connection) -> Reading | None:
        found = find_next_rechunk(connection, after_id)
        return find_reading(connection, *found) if found else None

    return context.read(work)


async def begin_rechunk(context: Context, reading: Reading) -> Reading | None:
    """Give the source its next generation; None where something else is going on with it."""

    def work(connection: Connection) -> Reading | None:
        source = _unchanged(connection, reading)
        if source is None or source.in_maintenance or _is_being_told(source):
            return None
        moved = replace(source, generation=source.generation + 1, valid_from=source.generations.start)
        update_state(connection, moved)
        return replace(reading, source=moved)

    return await context.write(work)


async def finish_rechunk(context: Context, reading: Reading, extraction: Extraction) -> None:
    """The index holds the new pieces. The mark stays where the chunking has changed once more."""

    def work(connection: Connection) -> None:
        source = _unchanged(connection, reading)
        if source is None:
            return
        cut = replace(source, rechunk=not is_cut_right(connection, source, reading))
        update_state(connection, indexed(cut, extraction, source.updated_at))
        if set(source.places) != set(reading.source.places):
            # It left a bucket in the meantime, which the index was told in the place of the old document.
            create_detachment(connection, source.team_id, source.id)
        touch_buckets_of(connection, source.id)

    await context.write(work)
    context.wakes.syncing.set()
    # The new pieces have no vectors.
    context.wakes.tell_unembedded(reading.source.team_id)


async def give_up_rechunk(context: Context, reading: Reading, reason: str) -> None:
    """It can't be read now: the old pieces stay, and the source says so."""
    warning = f"The new chunking of its bucket could not be applied: {reason}"

    def work(connection: Connection) -> None:
        source = _unchanged(connection, reading)
        if source is not None:
            update_state(connection, replace(source, rechunk=False, warnings=(*source.warnings, warning)))
            touch_buckets_of(connection, source.id)

    await context.write(work)


def _unchanged(connection: Connection, reading: Reading) -> Source | None:
    source = find_source(connection, reading.source.team_id, reading.source.id)
    if source is None or source.status != readiness.ACTIVE or source.generation != reading.source.generation:
        return None
    return source


def _is_being_told(source: Source) -> bool:
    """Whether the index is hearing of a bucket right now: that names the generation as it was."""
    return readiness.SYNCING in source.places.values()
