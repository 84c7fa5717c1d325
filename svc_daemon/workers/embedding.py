"""The embedding worker: computes vectors for chunks that have none, in the background.

Keyword search finds a source before its chunks have vectors. If the model fails, the worker waits longer each time and
makes its batches smaller, down to one chunk. A chunk that can't be embedded is skipped until the daemon restarts or the
model changes.

In a cluster, a team's chunks are divided into shares. A node locks a share, so that no chunk is embedded twice.
"""

import asyncio
import logging
from zlib import crc32

from svc_daemon.core import readiness
from svc_daemon.embed.choices import Choice, OpenEmbedder
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.operations.index import documents
from svc_daemon.operations.index.vectors import find_offers, finish_offers
from svc_daemon.process.contexts import Context
from svc_daemon.process.embedders import EmbeddingState
from svc_daemon.provider.contract import ChunkText
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.rows.buckets import list_buckets
from svc_daemon.store.rows.teams import list_team_ids
from svc_daemon.store.rows.vectors import PassageText
from svc_daemon.workers.runners import LONGEST_S, Worker

log = logging.getLogger(__name__)

#: Number of chunks in a batch, which takes about one second on two cores.
BATCH = 64
#: After a batch has failed, the number of chunks in a batch is divided by this.
SHRINK = 8
#: Delay after the first failure, in seconds. It doubles with each failure, up to the maximum.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
#: Interval in seconds for checking, after a failure, whether another model was installed.
LOOK_S = 1.0
#: In a cluster, this many nodes can embed the chunks of one team at once.
SHARES = 4
#: A test sentence: if the model can't embed even this sentence, the model is at fault, not a chunk.
PLAIN = "A plain sentence."


class EmbeddingWorker(Worker):
    """Embeds chunks in batches. A batch that is interrupted when the daemon stops is repeated after the next start."""

    doing = "embedding"

    def __init__(self, context: Context, choice: Choice, *, opens_only: bool = False) -> None:
        """With `opens_only`, open the model for search queries only, and let other nodes embed the chunks."""
        super().__init__(context, context.wakes.embedding)
        self._choice = choice
        self._opens_only = opens_only
        self._embedder: OpenEmbedder | None = None
        #: Identifies the configuration of the open model. While no model is open, this is `self`, which equals no
        #: configuration.
        self._opened: object = self
        #: Teams whose index may have chunks without a vector. The team whose turn is next comes first.
        self._queue: dict[str, None] = {}
        #: Teams whose index has already been cleared of other models' vectors.
        self._cleared: set[str] = set()
        #: Ids of chunks that the model could not embed.
        self._refused: set[str] = set()
        self._batch = BATCH
        #: By team, embedded passages of sources that aren't active yet. Their imported vectors are kept until
        #: the sources are active.
        self._early: dict[str, list[PassageText]] = {}
        #: The shares that a team's chunks are divided into, each a number from 0. The share to try next comes first.
        self._shares = list(range(1 if context.clock.shared is None else SHARES))
        #: The failure that was logged last; it isn't logged twice in a row.
        self._logged: str | None = None
        self._pause_s = FIRST_PAUSE_S

    async def work(self) -> float:
        try:
            while await self._run_batch():
                pass
        except EmbedFailed as failure:
            if not (failure.retryable and await self._is_short(failure)):
                await self._pause(failure)
            return 0
        except Exception as error:
            if not await self._is_short(error):
                log.exception("embedding failed")
                self._show(EmbeddingState.FAILING, "Embedding failed; the log shows the error.")
                await asyncio.sleep(LONGEST_PAUSE_S)
            return 0
        return LONGEST_S

    async def stop(self) -> None:
        """Close the model."""
        embedder, self._embedder = self._embedder, None
        self._opened = self
        self.context.embedding.embedder = None
        if embedder is not None:
            await asyncio.to_thread(embedder.close)

    async def _run_batch(self) -> bool:
        """Embed one batch of one team. Returns False if there is nothing to embed, or no model."""
        stamp = self._choice.stamp()
        if stamp != self._opened or (self._embedder and self._embedder.is_stale):
            await self._open(stamp)
        self._queue |= dict.fromkeys(self.context.wakes.unembedded)
        self.context.wakes.unembedded.clear()
        team_id = next(iter(self._queue), None)
        if self._embedder is None or team_id is None or self._opens_only:
            return False
        # Move the team to the end of the queue, so that it gets another turn after an error.
        del self._queue[team_id]
        self._queue[team_id] = None
        try:
            if not await self._embed_some(self._embedder, team_id):
                del self._queue[team_id]
        except ProviderError as error:
            if not await self._is_short(error):
                # The team's index failed. Continue with the other teams.
                log.warning("vectors of %s can't be stored, tried again in %g s: %s", team_id, LONGEST_PAUSE_S, error)
                self._queue.pop(team_id, None)
                asyncio.get_running_loop().call_later(LONGEST_PAUSE_S, self.context.wakes.note_unembedded, team_id)
        return True

    async def _is_short(self, error: Exception) -> bool:
        """Return whether a shortage caused the error. If so, first wait until it may be over."""
        is_short = await self.context.shortages.is_cause_of(error)
        if is_short:
            await self.context.shortages.passed()
        return is_short

    async def _open(self, stamp: object) -> None:
        """Open the configured model, and close the previous one."""
        await self.stop()
        if self.context.embedding.state is not EmbeddingState.FAILING:
            self._show(EmbeddingState.LOADING)
        self._embedder = await self.context.embedding.run(self._choice.make, asyncio.get_running_loop())
        if self._embedder is not None:
            await self.context.embedding.run(self._embedder.start)
            log.info("embedding passages with the model %s", self._embedder.model)
        self._opened = stamp
        self.context.embedding.embedder, self.context.embedding.chunk_s = self._embedder, None
        self._show(EmbeddingState.OFF if self._embedder is None else EmbeddingState.READY)
        self._cleared.clear()
        self._refused.clear()
        self._queue = dict.fromkeys(self.context.read(list_team_ids))

    async def _embed_some(self, embedder: OpenEmbedder, team_id: str) -> bool:
        """Embed one batch of the team's chunks. Returns False if there were none left to embed."""
        provider, model = self.context.provider, embedder.model
        if team_id not in self._cleared:
            await asyncio.to_thread(provider.drop_vectors, team_id, model)
            # Load the vectors into the cache, so that the first search doesn't have to do this.
            buckets = self.context.read(lambda connection: list_buckets(connection, team_id, (readiness.ACTIVE,)))
            await asyncio.to_thread(provider.warm_up, team_id, model, [bucket.id for bucket in buckets])
            self._cleared.add(team_id)
        for share in list(self._shares):
            done = await self._embed_share(embedder, team_id, share)
            if done is not None:
                return done
        # Other nodes are embedding the remaining chunks, but may not know the newest chunks. Check again later.
        await asyncio.sleep(LOOK_S)
        return True

    async def _embed_share(self, embedder: OpenEmbedder, team_id: str, share: int) -> bool | None:
        """Embed one batch of this share of the team's chunks. Returns True if there was a batch.

        Returns False if the team has no chunks left to embed. Returns None if this share has none, but other shares do,
        or if another node has locked this share.
        """
        async with self.context.locks.hold_free(f"embedding {team_id} {share}") as held:
            if not held:
                return None
            began_s = self.context.clock.monotonic()
            # List the chunks only now: before this node had the lock, another node may have embedded some of them.
            limit = self._batch * len(self._shares) + len(self._refused)
            listed = await asyncio.to_thread(self.context.provider.list_unembedded, team_id, embedder.model, limit)
            left = [chunk for chunk in listed if chunk.chunk_id not in self._refused]
            ours = [chunk for chunk in left if crc32(chunk.chunk_id.encode()) % len(self._shares) == share]
            chunks = ours[: self._batch]
            await self.context.upload_priority.let_uploads_go_first()
            if chunks:
                await asyncio.to_thread(documents.check_room, self.context)
            offered = await asyncio.to_thread(find_offers, self.context, team_id, embedder, chunks)
            computed = await self._embed(embedder, offered.select_to_embed(chunks))
            if vectors := offered.add_to(computed):
                await asyncio.to_thread(self.context.provider.put_vectors, team_id, embedder.model, vectors)
                self.context.embedding.note_batch(len(vectors), self.context.clock.monotonic() - began_s)
            early = self._early.pop(team_id, [])
            if early or (offered.vectors and computed):
                wrong = offered.find_wrong(computed)
                self._early[team_id] = await finish_offers(self.context, team_id, chunks, early, wrong)
        if not chunks:
            return None if left else False
        # Continue with this share in the next round.
        self._shares.sort(key=share.__ne__)
        return True

    async def _embed(self, embedder: OpenEmbedder, chunks: list[ChunkText]) -> list[tuple[str, bytes]]:
        """Embed the chunks. Returns pairs of chunk id and vector.

        If `chunks` is a single chunk that the model can't embed, although it can embed `PLAIN`, the list is empty. All
        other failures raise EmbedFailed.
        """
        is_suspicious = self.context.embedding.state is EmbeddingState.FAILING
        if is_suspicious:
            await self.context.embedding.run(embedder.embed, [PLAIN])
        try:
            texts = [chunk.text for chunk in chunks]
            vectors = await self.context.embedding.run(embedder.embed, texts) if texts else []
        except EmbedFailed as failure:
            if not is_suspicious or len(chunks) > 1:
                raise
            log.warning("%s is found by keyword only, since the model can't embed it: %s", chunks[0].chunk_id, failure)
            self._refused.add(chunks[0].chunk_id)
            return []
        self._batch = min(self._batch * 2, BATCH)
        self._pause_s = FIRST_PAUSE_S
        if self.context.embedding.state is EmbeddingState.FAILING:
            log.info("embedding continues")
            self._logged = None
            self._show(EmbeddingState.READY)
        return [(chunk.chunk_id, vector) for chunk, vector in zip(chunks, vectors, strict=True)]

    async def _pause(self, failure: EmbedFailed) -> None:
        """Wait before the next attempt, or until another model is installed."""
        if self._logged != str(failure):
            log.warning("embedding pauses: %s", failure)
        self._logged = str(failure)
        self._show(EmbeddingState.FAILING, str(failure))
        self._batch = max(self._batch // SHRINK, 1)
        rest_s, self._pause_s = self._pause_s, min(self._pause_s * 2, LONGEST_PAUSE_S)
        stamp = self._choice.stamp()
        while rest_s > 0 and self._choice.stamp() == stamp:
            await asyncio.sleep(min(rest_s, LOOK_S))
            rest_s -= LOOK_S

    def _show(self, state: EmbeddingState, message: str | None = None) -> None:
        self.context.embedding.state, self.context.embedding.message = state, message
