"""The refreshing worker: fetches sources again whose schedule says so, and has their new text take the old one's place.

    due  ->  fetch  ->  the same bytes, or a page with the same text: note it (one row)
                    ->  an error: count it
                    ->  new: extract (one child)  ->  begin (one transaction)  ->  put (provider)  ->  finish (one more)

`operations.ingest.refreshing` has the steps, and says what happens after a kill. A source that was not begun is still
due, so it is fetched again.

In a cluster, a lock for each host keeps two nodes from fetching the same, and is free again when its node dies.
"""

import asyncio
import logging
from functools import partial

from svc_daemon.core.refreshes import LONGEST_PAUSE_S
from svc_daemon.errors import ServiceError, StorageError
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.extractors import Extractor
from svc_daemon.fetch.contract import Fetched
from svc_daemon.operations.index.extraction import SourceReading
from svc_daemon.operations.ingest import files, refreshing
from svc_daemon.operations.shared.leases import UNREADABLE
from svc_daemon.process.contexts import Context
from svc_daemon.store.files.contract import discarding
from svc_daemon.store.rows.sources.refreshes import DueRefresh, list_due_refreshes, next_refresh_due
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.workers.runners import LONGEST_S, Worker

log = logging.getLogger(__name__)

#: Maximum number of hosts that are asked at the same time.
SLOTS = 4
#: Delay in seconds before checking again on a host that another node is asking.
HELD_PAUSE_S = 2.0


class RefreshingWorker(Worker):
    """Fetches sources that are due, one at a time from each host."""

    doing = "looking for refreshes"

    def __init__(self, context: Context, extractor: Extractor) -> None:
        super().__init__(context, context.wakes.refreshing)
        self._extractor = extractor

    async def work(self) -> float:
        now, busy = self.context.clock.timestamp(), list(self.running.values())
        if self.context.shortages.now is not None:
            await self.context.shortages.passed()
        for due in self.context.read(lambda rows: list_due_refreshes(rows, now, busy, SLOTS - len(busy))):
            self.start(due.host, self._refresh(due))
        busy = list(self.running.values())
        if len(busy) >= SLOTS:
            # The worker is woken when one of them ends.
            return LONGEST_S
        return self.seconds_until(self.context.read(lambda rows: next_refresh_due(rows, busy)))

    async def _refresh(self, due: DueRefresh) -> None:
        try:
            async with self.context.locks.hold_free(f"refresh {due.host}") as held:
                if held:
                    await self._try(due)
                else:
                    # Another node asks this host. Check again later, in case that node dies.
                    await asyncio.sleep(HELD_PAUSE_S)
        except UNREADABLE:
            log.exception("the row of %s can't be read", due.source_id)
            pause_s = LONGEST_PAUSE_S
            await self.context.shortages.get_through(partial(refreshing.postpone, self.context, due.source_id, pause_s))
        except Exception as error:
            # Nothing is wrong with the source, so no failure is counted. Don't ask its host again right away.
            await self.context.shortages.get_through(partial(refreshing.postpone, self.context, due.source_id))
            await self.outlast(error, f"refreshing {due.source_id}")

    async def _try(self, due: DueRefresh) -> None:
        reading = self.context.read(partial(refreshing.find_due, context=self.context, due=due))
        if reading is None:
            return
        if reading.source.refresh is None:
            # The schedule in the row is damaged.
            await refreshing.postpone(self.context, due.source_id, None)
            return
        try:
            await self._fetch(reading)
        except (ServiceError, ExtractionFailed) as error:
            shortages = self.context.shortages
            if isinstance(error, StorageError) or await shortages.is_cause_of(error, kinds=refreshing.SHORT_OF):
                raise
            if isinstance(error, ServiceError) and error.code == ErrorCode.REQUEST_IN_PROGRESS:
                await refreshing.postpone(self.context, due.source_id)
                return
            log.info("refreshing %s failed: %s", due.source_id, error)
            await refreshing.note_failed(self.context, reading.source, error)

    async def _fetch(self, reading: SourceReading) -> None:
        source = reading.source
        files.check_room(self.context)
        async with discarding(self.context.blobs.stage()) as staged:
            got, is_changed = await refreshing.fetch_again(self.context, source, staged, force=False)
            if not is_changed or not isinstance(got, Fetched):
                await refreshing.note_unchanged(self.context, source, got)
                return
            fresh = await refreshing.keep(self.context, source, staged, got)
        await refreshing.take_in(self.context, self._extractor, reading, fresh, got)
