"""The indexing worker: claims tasks, has their documents read in the cage, gives the text to the provider.

    claim (one transaction)  ->  extract (child process)  ->  put (provider, durable)  ->  complete (one transaction)

At any kill the state says `running`; the next start puts the task back. Putting the same document twice is harmless: it
is keyed by source and generation. Teams take turns, so that one team's thousand files don't starve another's one.
"""

import asyncio
import logging
import random
from collections import deque
from functools import partial

from svc_daemon.core.chunking import ChunkingOptions
from svc_daemon.core.documents import Extraction
from svc_daemon.extract.cages import Extractor
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.indexing import (
    Failure,
    IndexingClaim,
    claim_indexing,
    complete_indexing,
    extend_claim,
    fail_indexing,
    note_progress,
    park_claimed,
    park_indexing,
)
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import ProviderError, ProviderFailed
from svc_daemon.store.sources import Source, find_source
from svc_daemon.store.tasks import next_attempt_due
from svc_daemon.store.teams import list_team_ids
from svc_daemon.wire.codes import SourceErrorCode
from svc_daemon.wire.tasks import INDEXING
from svc_daemon.workers.waiting import wait

log = logging.getLogger(__name__)

#: A lease is extended three times before it would run out.
BEATS_PER_LEASE = 3
#: After an error of ours the loop waits this long, so that it can't spin.
PAUSE_AFTER_ERROR_S = 1.0


class IndexingWorker:
    """Runs until it is cancelled; what is in flight then is parked."""

    def __init__(self, context: Context, extractor: Extractor) -> None:
        self._context = context
        self._extractor = extractor
        self._slots = asyncio.Semaphore(context.limits.extract_children)
        self._running: set[asyncio.Task[None]] = set()
        self._turns: deque[str] = deque()

    async def run(self) -> None:
        try:
            while True:
                await self._slots.acquire()
                # A burst is taken in at full speed; reading its documents can wait a moment.
                await self._context.gates.let_uploads_go_first()
                self._start(await self._next_claim())
        finally:
            await self._park_all()
            # A claim that was being made when the stop came is nobody's now.
            await park_claimed(self._context)

    def _start(self, claim: IndexingClaim) -> None:
        running = asyncio.create_task(self._index_in_slot(claim))
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _next_claim(self) -> IndexingClaim:
        """Wait for work, team by team in turn."""
        while True:
            self._context.wakes.indexing.clear()
            try:
                claim = await self._claim()
                due_at = None if claim else self._context.read(partial(next_attempt_due, task_type=INDEXING))
            except Exception:
                # A full disk, say: it must not end the worker.
                log.exception("claiming went wrong")
                await asyncio.sleep(PAUSE_AFTER_ERROR_S)
                continue
            if claim is not None:
                return claim
            await wait(self._context.wakes.indexing, due_at, self._context.clock)

    async def _claim(self) -> IndexingClaim | None:
        claim = await claim_indexing(self._context, self._teams_in_turn())
        if claim is not None:
            self._pass_turn(claim.task.team_id)
        return claim

    def _teams_in_turn(self) -> list[str]:
        known = self._context.read(list_team_ids)
        self._turns.extend(team_id for team_id in known if team_id not in self._turns)
        return list(self._turns)

    def _pass_turn(self, team_id: str) -> None:
        self._turns.remove(team_id)
        self._turns.append(team_id)

    async def _index_in_slot(self, claim: IndexingClaim) -> None:
        beat = asyncio.create_task(self._keep_lease(claim))
        try:
            await self._index(claim)
        except asyncio.CancelledError:
            await park_indexing(self._context, claim)
            raise
        except Exception:
            # A bug of ours costs this source an attempt, never the worker.
            log.exception("indexing of %s went wrong", claim.source.id)
            failure = Failure(SourceErrorCode.EXTRACTION_CRASHED, "Something unexpected went wrong.", retryable=True)
            await self._fail(claim, failure)
        finally:
            beat.cancel()
            self._slots.release()

    async def _index(self, claim: IndexingClaim) -> None:
        try:
            extraction = await self._extract(claim)
            self._check_room()
            await note_progress(self._context, claim, "index", len(extraction.chunks))
            await asyncio.to_thread(self._put, claim, extraction)
        except ExtractionFailed as error:
            await self._fail(claim, Failure(error.code, error.message, error.retryable))
        except ProviderError as error:
            await self._fail(claim, Failure(SourceErrorCode.PROVIDER_FAILED, str(error), error.retryable))
        else:
            if not await complete_indexing(self._context, claim, extraction):
                await asyncio.to_thread(self._undo, claim)

    async def _extract(self, claim: IndexingClaim) -> Extraction:
        source = claim.source
        path = self._context.blobs.path(source.blob_name)
        if not path.exists():
            # Trying again would not bring them back.
            raise ExtractionFailed(
                SourceErrorCode.STORED_BYTES_LOST, "The stored bytes are gone; upload the file again."
            )
        return await self._extractor.extract(
            path,
            filename=source.filename,
            content_type=source.content_type,
            chunking=ChunkingOptions(**claim.chunking) if claim.chunking else ChunkingOptions(),
        )

    def _check_room(self) -> None:
        """An index grows several times as much as the bytes it is made of; a disk that it fills takes no delete."""
        if not self._context.blobs.has_room(self._context.limits.free_disk_bytes):
            raise ProviderFailed("The disk is nearly full; make room and retry.", retryable=True)

    def _put(self, claim: IndexingClaim, extraction: Extraction) -> None:
        source = claim.source
        document = IndexDocument(
            source_id=source.id,
            generation=source.generation,
            title=source.title,
            text=extraction.text,
            chunks=extraction.chunks,
        )
        provider = self._context.provider
        provider.put_document(source.team_id, document, source.searched_places)
        now = self._find(source)
        if now is not None:
            # It may have changed since the claim, or since an earlier one whose document a kill has left there.
            provider.set_title(source.team_id, source.id, now.title)

    def _undo(self, claim: IndexingClaim) -> None:
        """The claim went stale: if that was a delete, what was put must not stay."""
        source = claim.source
        if self._find(source) is None:
            self._context.provider.delete_document(source.team_id, source.id)

    def _find(self, source: Source) -> Source | None:
        """The source as it stands now."""
        return self._context.read(lambda connection: find_source(connection, source.team_id, source.id))

    async def _fail(self, claim: IndexingClaim, failure: Failure) -> None:
        log.info("indexing of %s failed: %s %s", claim.source.id, failure.code, failure.message)
        await fail_indexing(self._context, claim, failure, jitter=random.random())  # noqa: S311 - spreads retries only

    async def _keep_lease(self, claim: IndexingClaim) -> None:
        while True:
            await asyncio.sleep(self._context.limits.lease_seconds / BEATS_PER_LEASE)
            await extend_claim(self._context, claim)

    async def _park_all(self) -> None:
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
