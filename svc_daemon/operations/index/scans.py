"""Reads scans: recognises the text of pages that are pictures, one after another, in the lane `scan`.

    a child reads the document -> it says which pages are pictures -> the task moves to the lane `scan`
    -> a child recognises page after page, each is stored in a transaction of its own
    -> a child reads the document again, with the stored pages

What is stored stays: a daemon that was killed goes on with the page that it was at. An attempt that has stored a page
isn't counted, nor are those before it. A document that was being read when the daemon was killed, and had stored no
page, is a suspect: it goes back to the lane `scan` as soon as one page is read.
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from svc_daemon.core import lanes
from svc_daemon.core.text.chunking import Extraction, RecognizedPage
from svc_daemon.databases.contract import Connection
from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.index import extraction as extracting
from svc_daemon.operations.index.indexing import IndexingClaim, park_indexing
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.process.contexts import Context
from svc_daemon.settings.limits import variable
from svc_daemon.store.rows.sources.recognized_pages import list_pages, note_scan, store_page
from svc_daemon.store.rows.tasks import list_waiting_teams
from svc_daemon.wire.events import EventType
from svc_daemon.wire.tasks import INDEXING

#: After so many pages, a scan of another team may go first.
TURN_PAGES = 20


async def read_scan(
    context: Context, extractor: Extractor, claim: IndexingClaim, pages: Sequence[int]
) -> Extraction | None:
    """Recognise these pages, then extract the document's text.

    Returns None if the worker lost its claim, or if the task was queued again: to wait for its turn, or because the
    daemon lacks a resource. Raises the errors of `extracting.read`.
    """
    source, most = claim.source, context.limits.ocr_pages
    stored = context.read(lambda connection: list_pages(connection, source.id, source.sha256))
    wanted, left_out = pages[: max(0, most - len(stored))], pages[max(0, most - len(stored)) :]
    over = over_limit(left_out, most)
    if wanted:
        total = len(stored) + len(wanted)
        await context.write(lambda connection: note_scan(connection, claim.task, len(stored), total, is_progress=False))
        if claim.task.lane not in (lanes.SCAN, lanes.SUSPECT):
            await park_indexing(context, [claim], lane=lanes.SCAN)
            return None
        if not await _recognize(context, extractor, claim, wanted, total):
            return None
    # Its pages were numbered by the same bytes, so none is missing now.
    return await extracting.read(context, extractor, claim.reading, unread=over)


def over_limit(numbers: Sequence[int], most: int) -> list[RecognizedPage]:
    """Return pages that are not read because the document has more than the limit."""
    problem = f"the limit is {most} scanned pages a document ({variable('ocr_pages')})"
    return [RecognizedPage(number, "", problem=problem) for number in numbers]


async def _recognize(
    context: Context, extractor: Extractor, claim: IndexingClaim, wanted: Sequence[int], total: int
) -> bool:
    """Recognise and store the pages. Returns False if the claim was lost, or given back before the last page."""
    begun_s = context.clock.monotonic()
    document = replace(extracting.stored_document(context, claim.reading), recognized={})
    async with aclosing(extractor.recognize(document, wanted)) as recognized:
        done = total - len(wanted)
        async for page in recognized:
            done += 1
            now_s = context.clock.monotonic()
            context.scan_pace.add(now_s - begun_s)
            begun_s = now_s
            if not await context.write(partial(store_recognized, context, claim, page, (done, total))):
                return False
            is_over = claim.task.lane == lanes.SUSPECT or context.shortages.now is not None
            if done % TURN_PAGES == 0 and not is_over:
                waiting = context.read(lambda connection: list_waiting_teams(connection, INDEXING, [lanes.SCAN]))
                is_over = any(team_id != claim.task.team_id for team_id in waiting.get(lanes.SCAN, ()))
            if is_over and done < total:
                await park_indexing(context, [claim], lane=lanes.SCAN)
                return False
    return True


def store_recognized(
    context: Context, claim: IndexingClaim, page: RecognizedPage, counts: tuple[int, int], connection: Connection
) -> bool:
    """Store a page, how many of all are read, and an event. Returns False if the worker has lost its claim."""
    (done, total), source = counts, claim.source
    is_held = store_page(connection, claim.task, source.sha256, page, done, total)
    if is_held:
        left_s = context.scan_pace.seconds_left(total - done)
        event = source_event(EventType.SOURCE_SCANNING, source, pages_done=done, pages_total=total, seconds_left=left_s)
        record_events(connection, context.ids, source.team_id, [event])
    return is_held
