"""The embedding worker: gives a vector to each chunk that has none, in the background.

    open the model  ->  team by team in turn: list chunks without a vector  ->  embed  ->  put  ->  until there are none

Nothing waits for it: a source is ready, and found by its words, before the first of its vectors is there. What is
missing the index itself knows, so a kill costs only the batch under way. Vectors of another model than the one in use
answer nothing, and are removed before the first new one comes.

Where the model fails, the pauses get longer and the batches smaller, down to one chunk. A chunk that fails while a
plain sentence does not is passed over until the next start, and everything else is embedded.
"""

import asyncio
import logging

from svc_daemon.core import readiness
from svc_daemon.embed.choices import Choice, OpenEmbedder
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.operations import documents
from svc_daemon.process.contexts import Context, EmbeddingState
from svc_daemon.provider.contract import ChunkText
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.buckets import list_buckets
from svc_daemon.store.teams import list_team_ids
from svc_daemon.workers.waiting import wait

log = logging.getLogger(__name__)

#: Chunks that are embedded and put together: about a second's work of two cores.
BATCH = 64
#: After a batch that failed, the next one is this part of it.
SHRINK = 8
#: After a failure: the first pause, which doubles, and the longest.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
#: Between two looks, in a pause, whether the operator has installed another model.
LOOK_S = 1.0
#: What every model can embed.
PLAIN = "A plain sentence."


class EmbeddingWorker:
    """Runs until it is cancelled; the batch that is under way then is made again after the next start."""

    def __init__(self, context: Context, choice: Choice) -> None:
        self._context = context
        self._choice = choice
        self._embedder: OpenEmbedder | None = None
        #: The choice that was opened; before the first one, what no choice has.
        self._opened: object = self
        #: Teams in whose index chunks may lack a vector, the next one first.
        self._turns: dict[str, None] = {}
        #: Teams whose index has been cleared of other models' vectors.
        self._cleared: set[str] = set()
        #: Chunks that the model could not embed.
        self._refused: set[str] = set()
        self._batch = BATCH
        #: The failure that the log was told of last.
        self._told: str | None = None
        self._pause_s = FIRST_PAUSE_S

    async def run(self) -> None:
        try:
            while True:
                await self._run_until_idle()
        finally:
            await self._close()

    async def _run_until_idle(self) -> None:
        wakes = self._context.wakes
        wakes.embedding.clear()
        try:
            while await self._run_batch():
                pass
        except EmbedFailed as failure:
            if failure.retryable and await self._is_short(failure):
                return
            await self._pause(failure)
        except Exception as error:
            if await self._is_short(error):
                return
            log.exception("embedding went wrong")
            self._tell(EmbeddingState.FAILING, "Embedding went wrong; the log says how.")
            await asyncio.sleep(LONGEST_PAUSE_S)
        else:
            await wait(wakes.embedding, None, self._context.clock)

    async def _run_batch(self) -> bool:
        """One batch of one team; False when no team has anything to embed, or no model is chosen."""
        await self._choose()
        self._turns |= dict.fromkeys(self._context.wakes.unembedded)
        self._context.wakes.unembedded.clear()
        team_id = next(iter(self._turns), None)
        if self._embedder is None or team_id is None:
            return False
        # To the end, and out only when there is nothing left: whatever goes wrong, it has another turn.
        del self._turns[team_id]
        self._turns[team_id] = None
        try:
            if not await self._embed_some(self._embedder, team_id):
                del self._turns[team_id]
        except ProviderError as error:
            if not await self._is_short(error):
                self._put_off(team_id, error)
        return True

    async def _is_short(self, error: Exception) -> bool:
        """Whether it failed because something is short; returns when there may be enough again."""
        is_short = await self._context.shortages.is_cause_of(error)
        if is_short:
            await self._context.shortages.passed()
        return is_short

    async def _choose(self) -> None:
        """Open the model that the operator has chosen, unless it is the one that is open."""
        stamp = self._choice.stamp()
        if stamp == self._opened and not (self._embedder and self._embedder.is_stale):
            return
        await self._close()
        if self._context.embedding.state is not EmbeddingState.FAILING:
            self._tell(EmbeddingState.LOADING)
        self._embedder = await self._context.embedding.run(self._choice.make, asyncio.get_running_loop())
        if self._embedder is not None:
            await self._context.embedding.run(self._embedder.start)
            log.info("the model %s makes vectors", self._embedder.model)
        self._opened = stamp
        self._context.embedding.embedder = self._embedder
        self._tell(EmbeddingState.OFF if self._embedder is None else EmbeddingState.READY)
        self._cleared.clear()
        self._refused.clear()
        self._turns = dict.fromkeys(self._context.read(list_team_ids))

    async def _close(self) -> None:
        embedder, self._embedder = self._embedder, None
        self._opened = self
        self._context.embedding.embedder = None
        if embedder is not None:
            await asyncio.to_thread(embedder.close)

    async def _embed_some(self, embedder: OpenEmbedder, team_id: str) -> bool:
        """One batch of the team's chunks; False when it has none left."""
        provider, model = self._context.provider, embedder.model
        if team_id not in self._cleared:
            await asyncio.to_thread(provider.drop_vectors, team_id, model)
            # Or somebody's first search would: at 100,000 chunks that takes some tenths of a second.
            await asyncio.to_thread(self._warm_up, team_id, model)
            self._cleared.add(team_id)
        listed = await asyncio.to_thread(provider.list_unembedded, team_id, model, self._batch + len(self._refused))
        chunks = [chunk for chunk in listed if chunk.chunk_id not in self._refused][: self._batch]
        await self._context.gates.let_uploads_go_first()
        if chunks:
            await asyncio.to_thread(documents.check_room, self._context)
        vectors = await self._embed(embedder, chunks)
        if vectors:
            await asyncio.to_thread(provider.put_vectors, team_id, model, vectors)
        return bool(chunks)

    def _warm_up(self, team_id: str, model: str) -> None:
        buckets = self._context.read(lambda connection: list_buckets(connection, team_id, (readiness.ACTIVE,)))
        self._context.provider.warm_up(team_id, model, [bucket.id for bucket in buckets])

    async def _embed(self, embedder: OpenEmbedder, chunks: list[ChunkText]) -> list[tuple[str, bytes]]:
        """The chunks' vectors; of a single one that can't be embedded, none. Raises EmbedFailed."""
        is_suspicious = self._context.embedding.state is EmbeddingState.FAILING
        if is_suspicious:
            await self._context.embedding.run(embedder.embed, [PLAIN])
        try:
            vectors = await self._context.embedding.run(embedder.embed, [chunk.text for chunk in chunks])
        except EmbedFailed as failure:
            if not is_suspicious or len(chunks) > 1:
                raise
            log.warning("%s is found by its words only, the model can't embed it: %s", chunks[0].chunk_id, failure)
            self._refused.add(chunks[0].chunk_id)
            return []
        self._note_success()
        return [(chunk.chunk_id, vector) for chunk, vector in zip(chunks, vectors, strict=True)]

    def _note_success(self) -> None:
        self._batch = min(self._batch * 2, BATCH)
        self._pause_s = FIRST_PAUSE_S
        if self._context.embedding.state is EmbeddingState.FAILING:
            log.info("embedding goes on")
            self._told = None
            self._tell(EmbeddingState.READY)

    async def _pause(self, failure: EmbedFailed) -> None:
        """Wait until the model may work again, or another one is installed."""
        if self._told != str(failure):
            log.warning("embedding pauses: %s", failure)
        self._told = str(failure)
        self._tell(EmbeddingState.FAILING, str(failure))
        self._batch = max(self._batch // SHRINK, 1)
        rest_s, self._pause_s = self._pause_s, min(self._pause_s * 2, LONGEST_PAUSE_S)
        stamp = self._choice.stamp()
        while rest_s > 0 and self._choice.stamp() == stamp:
            await asyncio.sleep(min(rest_s, LOOK_S))
            rest_s -= LOOK_S

    def _put_off(self, team_id: str, error: ProviderError) -> None:
        """One team's index is in trouble: it has its next turn later, and the others don't wait."""
        log.warning("vectors of %s can't be stored, tried again in %g s: %s", team_id, LONGEST_PAUSE_S, error)
        self._turns.pop(team_id, None)
        later = asyncio.get_running_loop().call_later
        later(LONGEST_PAUSE_S, self._context.wakes.tell_unembedded, team_id)

    def _tell(self, state: EmbeddingState, message: str | None = None) -> None:
        self._context.embedding.state, self._context.embedding.message = state, message
