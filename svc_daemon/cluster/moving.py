"""Moves an installation from a data directory into a cluster, or back.

The source is the installation to move, and the target is its new place. A move has four steps:

mark     Marks both databases with the id of the move. No service serves a marked database.
bytes    Copies and checks the stored files, and the bytes of open upload sessions.
rows     Copies all tables. Each transaction records how far the copy has come.
finish   Copies the facts (single values about the installation), queues the rebuild of each index, and removes the
         target's mark.

After a crash, run the move again: it continues where it stopped. The source's data is never removed.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from svc_daemon.cluster.marks import MARK_FACTS
from svc_daemon.core import readiness
from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock, to_text
from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.databases.contract import Connection, Database
from svc_daemon.errors import StorageError
from svc_daemon.operations.index.rebuilding import queue_rebuild
from svc_daemon.operations.installations import INSTALLATION_ID, SHARED_SECRET
from svc_daemon.store import checks
from svc_daemon.store.files.contract import ByteStores, gather
from svc_daemon.store.migrations import list_tables
from svc_daemon.store.rows import moves, sessions, tasks, teams
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.teams import find_fact, list_facts, put_fact
from svc_daemon.store.tables import Table, Values, count_rows, delete_rows, insert_rows, key_of, list_rows
from svc_daemon.wire.light.error_codes import SourceErrorCode

T = TypeVar("T")

#: Number of rows read or written in one step.
PAGE_ROWS = 500
#: The column with the time when a lease ends. The target's clock differs, so the move ends all leases.
LEASE = "lease_until_s"
FACTS = "facts"
EVENTS = "events"
#: The column with an event's sequence number. The target assigns new numbers.
EVENT_NUMBER = "seq"


class MoveRefused(Exception):
    """The installation can't be moved now; `hint` says what to do.

    Either nothing was changed, or the move can be continued later.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BytesDamaged(MoveRefused):
    """Some bytes of the installation are missing or wrong. It is unchanged, and a daemon can still use it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            f"Nothing was moved: the bytes of {len(problems)} sources are missing or wrong, such as: {problems[0]}.",
            "Run `svc-daemon verify --read-data --repair` there, which gives up these sources; then move it again.",
        )
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The source or the target of a move."""

    #: The name of the source or target in messages.
    name: str
    state: Database
    stores: ByteStores
    #: Read and replace the installation's secret.
    read_secret: Callable[[], bytes]
    write_secret: Callable[[bytes], object]
    #: Whether stored blobs are complete even after a power failure.
    is_atomic: bool
    #: Raises MoveRefused if a service is using the installation.
    check_unused: Callable[[], object] = lambda: None
    #: Leaves the mark of the installation with this id in the engines of a target. Raises StorageError or MoveRefused.
    leave_marks: Callable[[str], object] = lambda _installation_id: None


@dataclass(slots=True)
class MoveReport:
    """The progress of a move."""

    installation_id: str = ""
    sources: int = 0
    #: Number of blobs copied by this run.
    copied: int = 0
    #: Number of blobs that the target already had.
    kept: int = 0
    copied_bytes: int = 0
    #: Number of upload sessions whose bytes were copied.
    sessions: int = 0
    rows: int = 0
    #: Whether the move was already finished by an earlier run of the command.
    was_done: bool = False
    #: Called with each line of progress.
    note: Callable[[str], object] = field(default=lambda _: None, repr=False)


async def move(source: Place, target: Place, clock: Clock, make_ids: Ids, report: MoveReport) -> None:
    """Move the installation, or continue an interrupted move. Raises MoveRefused or StorageError."""
    departure, arrival = await _begin(source, target, clock)
    report.installation_id = await _read(source, _get_installation_id)
    if arrival is None:
        report.was_done = True
    else:
        await _move_bytes(source, target, report)
        arrival = await _copy_rows(source, target, arrival, report)
        await _finish(source, target, arrival, make_ids)
    await _write(source, partial(moves.put_departure, departure=replace(departure, is_done=True)))


async def cancel_move(source: Place) -> moves.Departure:
    """Cancel the move: delete the record that keeps daemons from using the installation that was to be moved.

    Returns the deleted record. Raises MoveRefused if there is none.
    """
    departure = await _read(source, moves.find_departure)
    if departure is None:
        raise MoveRefused(f"{source.name} is not being moved.")
    await _write(source, moves.delete_departure)
    return departure


async def _begin(source: Place, target: Place, clock: Clock) -> tuple[moves.Departure, moves.Arrival | None]:
    """Mark both sides of the move, and return the marks. The target's mark is None if the move is already complete."""
    await _read(source, _get_installation_id)
    departure, arrival = await _read(source, moves.find_departure), await _read(target, moves.find_arrival)
    if departure is not None and await _read(target, moves.find_arrived) == departure.move_id:
        return departure, None
    if departure is not None and (departure.is_done or departure.to != target.name):
        raise MoveRefused(
            f"{source.name} {'was' if departure.is_done else 'is being'} moved to {departure.to}.",
            "To move it elsewhere all the same, run the command for that place with --cancel first.",
        )
    await _check_target(source, target, arrival)
    if departure is None:
        departure = moves.Departure(move_id=secrets.token_hex(8), to=target.name, began_at=clock.timestamp())
        await _write(source, partial(moves.put_departure, departure=departure))
    await _check_unused(source)
    if arrival is None or arrival.move_id != departure.move_id:
        installation_id = await _read(source, _get_installation_id)
        arrival = moves.Arrival(move_id=departure.move_id, installation_id=installation_id)
        await _write(target, partial(_arrive, arrival=arrival))
        # Delete upload bytes that an earlier move has copied: the upload sessions may have received more bytes since.
        await target.stores.parts.delete(*await asyncio.to_thread(target.stores.parts.list_ids))
    await asyncio.to_thread(target.leave_marks, arrival.installation_id)
    return departure, arrival


async def _check_target(source: Place, target: Place, arrival: moves.Arrival | None) -> None:
    """Raise MoveRefused unless the target is empty, or an unfinished move has copied a part of the source to it."""
    if arrival is not None:
        if arrival.installation_id != await _read(source, _get_installation_id):
            raise MoveRefused(f"{target.name} has a part of another installation, whose move was not finished.")
        return
    has_rows = await _read(target, lambda connection: any(count_rows(connection, table) for table in list_tables()))
    stores = target.stores
    if has_rows or await asyncio.to_thread(lambda: bool(stores.blobs.list_ids() or stores.parts.list_ids())):
        raise MoveRefused(f"{target.name} is not empty.", "An installation is moved only to where there is none.")


async def _check_unused(source: Place) -> None:
    try:
        await asyncio.to_thread(source.check_unused)
    except MoveRefused:
        # A service may change the installation now, so the next move must copy everything again.
        await _write(source, moves.delete_departure)
        raise


def _get_installation_id(connection: Connection) -> str:
    found = find_fact(connection, INSTALLATION_ID)
    if found is None:
        half = moves.find_arrival(connection) is not None
        raise MoveRefused("Only a part of an installation is there." if half else "There is no installation to move.")
    return found


def _arrive(connection: Connection, *, arrival: moves.Arrival) -> None:
    """Mark the target's database as part of this move, and delete the rows that an earlier move has copied."""
    if find_fact(connection, INSTALLATION_ID) is not None:
        raise MoveRefused("A service was started on the target in the meantime.")
    for table in reversed(list_tables()):
        if table.name != FACTS:
            delete_rows(connection, table)
    moves.put_arrival(connection, arrival)


async def _move_bytes(source: Place, target: Place, report: MoveReport) -> None:
    """Copy all bytes. Raises BytesDamaged at the end if some are missing or wrong."""
    there = set(await asyncio.to_thread(target.stores.blobs.list_ids))
    total = await _read(source, checks.count_every_source)
    problems: list[str] = []
    after = ""
    while page := await _read(source, partial(checks.list_every_source, after_id=after, limit=PAGE_ROWS)):
        copies = [_copy_blob(source, target, row, row.blob_name in there) for row in page]
        for row, outcome in zip(page, await gather(copies), strict=True):
            report.kept += outcome is None
            report.copied += outcome == ""
            report.copied_bytes += row.size_bytes if outcome == "" else 0
            problems.extend([outcome] if outcome else [])
        report.sources += len(page)
        report.note(f"bytes: {report.sources} of {total} sources")
        after = page[-1].id
    if problems:
        await _write(source, moves.delete_departure)
        raise BytesDamaged(problems)
    open_ids = sorted(await _read(source, sessions.list_open_ids))
    sizes = await source.stores.parts.measure(*open_ids) if open_ids else []
    sent = [(session_id, size) for session_id, size in zip(open_ids, sizes, strict=True) if size]
    await gather(_copy_session(source, target, session_id, size) for session_id, size in sent)
    report.sessions = len(sent)


async def _copy_blob(source: Place, target: Place, row: SourceRow, is_there: bool) -> str | None:
    """Copy the blob of one source.

    Returns "" after copying, None if there is nothing to copy, or a sentence about missing or wrong bytes.
    """
    name = row.blob_name
    if is_there:
        if target.is_atomic or await target.stores.blobs.blob(name).hash() == row.sha256:
            return None
        await target.stores.blobs.delete([name])
    staged = target.stores.blobs.stage()
    try:
        async for chunk in source.stores.blobs.blob(name).stream():
            await staged.append(chunk)
        if (staged.size_bytes, staged.sha256) != (row.size_bytes, row.sha256):
            return f"blob {name} of source {row.id} hashes to {staged.sha256}, its row has {row.sha256}"
        await staged.keep(name)
    except FileNotFoundError:
        is_lost = row.error is not None and row.error["code"] == SourceErrorCode.STORED_BYTES_LOST
        return None if is_lost and row.status == readiness.FAILED else f"source {row.id} has no blob"
    finally:
        await staged.discard()
    return ""


async def _copy_session(source: Place, target: Place, session_id: str, size_bytes: int) -> None:
    """Copy the bytes of an open upload session, and read them back to check them."""
    parts = target.stores.parts
    wanted = await _hash(source.stores.parts.stream(session_id))
    if await parts.measure(session_id) == [size_bytes] and await _hash(parts.stream(session_id)) == wanted:
        return
    await parts.delete(session_id)
    await parts.settle(session_id)
    item = PackItem(session_id, offset_bytes=0, size_bytes=size_bytes, held_bytes=0)
    with closing(parts.writer([item], 0, size_bytes)) as writer:
        async for chunk in source.stores.parts.stream(session_id):
            await writer.append(chunk)
        await writer.sync()
    if await _hash(parts.stream(session_id)) != wanted:
        raise StorageError(f"The bytes of the upload session {session_id} differ at the target; move it again.")


async def _copy_rows(source: Place, target: Place, arrival: moves.Arrival, report: MoveReport) -> moves.Arrival:
    """Copy the rows of all tables except `facts`. Returns the target's mark, which names the last row copied."""
    tables = [
        replace(table, key=("turn", EVENT_NUMBER)) if table.name == EVENTS else table
        for table in list_tables()
        if table.name != FACTS
    ]
    names = [table.name for table in tables]
    for table in tables[names.index(arrival.table) if arrival.table else 0 :]:
        after: Values = arrival.after if arrival.table == table.name else ()
        written = replace(table, columns=tuple(column for column in table.columns if column != EVENT_NUMBER))
        while page := await _read(source, partial(list_rows, table=table, after=after, limit=PAGE_ROWS)):
            after = key_of(table, page[-1])
            arrival = replace(arrival, table=table.name, after=tuple(after))
            put = partial(_put_page, table=table, written=written, page=page, arrival=arrival)
            await _write(target, put)
            report.rows += len(page)
            report.note(f"rows: {report.rows}, of {table.name} now")
    return arrival


def _put_page(
    connection: Connection, *, table: Table, written: Table, page: Sequence[Values], arrival: moves.Arrival
) -> None:
    """Insert a page of rows, with all leases ended, and record the progress."""
    rows = (dict(zip(table.columns, row, strict=True)) for row in page)
    ended = [{**row, LEASE: 0.0} if row.get(LEASE) is not None else row for row in rows]
    insert_rows(connection, written, [[row[column] for column in written.columns] for row in ended])
    moves.put_arrival(connection, arrival)


async def _finish(source: Place, target: Place, arrival: moves.Arrival, make_ids: Ids) -> None:
    await _check_unused(source)
    facts = await _read(source, list_facts)
    kept = {name: value for name, value in facts.items() if name not in {*moves.MARKS, *MARK_FACTS, SHARED_SECRET}}
    target.write_secret(source.read_secret())

    def work(connection: Connection) -> None:
        for name, value in kept.items():
            put_fact(connection, name, value)
        for team_id in teams.list_team_ids(connection):
            # Cancel a rebuild that began before the move, because it may be past the stage that clears the index.
            begun = tasks.find_open_rebuild(connection, team_id)
            if begun is not None:
                tasks.cancel_task(connection, begun.id, to_text(make_ids.now()))
            queue_rebuild(connection, make_ids, team_id)
        moves.finish_arrival(connection, arrival)

    await _write(target, work)


async def _hash(chunks: AsyncIterator[bytes]) -> str:
    hashed = hashlib.sha256()
    async for chunk in chunks:
        hashed.update(chunk)
    return hashed.hexdigest()


async def _read(place: Place, work: Callable[[Connection], T]) -> T:
    return await asyncio.to_thread(place.state.read, work)


async def _write(place: Place, work: Callable[[Connection], T]) -> T:
    return await asyncio.wrap_future(place.state.submit(work))
