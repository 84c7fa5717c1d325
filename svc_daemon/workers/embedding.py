"""The embedding worker: computes vectors for chunks that have none, in the background.

    open the model  ->  for each team in turn: list chunks without a vector  ->  embed  ->  put  ->  repeat until done

No other work waits for this worker: a source is ready, and keyword search finds it, before it has vectors. The index
can list the chunks that have no vector, so only the current batch is lost if the process is killed. Vectors of a
previous model are not used, and are deleted before the first vector of the current model is stored.

In a cluster, a team's chunks are divided into shares by their ids. A node locks one share before it lists the share's
chunks. So several nodes can work on one team, but never embed the same chunk.

An import of an exported bucket offers the vectors that the bucket had. Those that pass the checks of
`operations.vectors` are stored instead of computed.

Each time the model fails, the worker waits longer and makes the batch smaller, down to one chunk. If a single chunk
can't be embedded although a test sentence can, the chunk is skipped until the daemon starts again or the model changes.
"""

import asyncio
import logging
from zlib import crc32

from svc_daemon.core import readiness
from svc_daemon.embed.choices import Choice, OpenEmbedder
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.operations import documents
from svc_daemon.operations.vectors import find_offers, finish_offers
from svc_daemon.process.contexts import Context, EmbeddingState
from svc_daemon.provider.contract import ChunkText
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.buckets import list_buckets
from svc_daemon.store.teams import list_team_ids
from svc_daemon.workers.runners import LONGEST_S, Worker

log = logging.getLogger(__name__)

#: Number of chunks that are embedded together, which takes about one second on two cores.
BATCH = 64
#: After a batch has failed, the batch size is divided by this.
SHRINK = 8
#: Delay after the first failure, in seconds. It doubles with each further failure, up to the maximum.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
#: Interval in seconds at which a worker that waits after a failure checks whether another model was installed.
LOOK_S = 1.0
#: In a cluster, the chunks of a team are divided into this many shares, so this many nodes can embed them at once.
SHARES = 4
#: A test sentence that any model can embed; if it fails too, the model is the cause.
PLAIN = "A plain sentence."


class EmbeddingWorker(Worker):
    """Embeds chunks in batches. If the daemon stops during a batch, the next start embeds it again."""

    doing = "embedding"

    def __init__(self, context: Context, choice: Choice, *, opens_only: bool = False) -> None:
        """With `opens_only`, only open the model, for embedding queries; chunks are embedded by other nodes."""
        super().__init__(context, context.wakes.embedding)
        self._choice = choice
        self._opens_only = opens_only
        self._embedder: OpenEmbedder | None = None
        #: Identifies the configuration that was opened last. At first and after `stop`, it is `self`, which is
        #: different from every configuration.
        self._opened: object = self
        #: Teams whose index may contain chunks without a vector, the next one first.
        self._turns: dict[str, None] = {}
        #: Teams whose index has already been cleared of other models' vectors.
        self._cleared: set[str] = set()
        #: Ids of chunks that the model could not embed.
        self._refused: set[str] = set()
        self._batch = BATCH
        #: The shares into which a team's chunks are divided, the next one first.
        self._shares = list(range(1 if context.clock.shared is None else SHARES))
        #: The failure that was logged last. If the next failure is the same, it isn't logged.
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
        """Embed one batch of one team. Returns False if there is nothing to embed, or no model is configured."""
        stamp = self._choice.stamp()
        if stamp != self._opened or (self._embedder and self._embedder.is_stale):
            await self._open(stamp)
        self._turns |= dict.fromkeys(self.context.wakes.unembedded)
        self.context.wakes.unembedded.clear()
        team_id = next(iter(self._turns), None)
        if self._embedder is None or team_id is None or self._opens_only:
            return False
        # Move the team to the end of the queue. A team leaves the queue only when it has no chunks left, so that it
        # gets another turn after an error.
        del self._turns[team_id]
        self._turns[team_id] = None
        try:
            if not await self._embed_some(self._embedder, team_id):
                del self._turns[team_id]
        except ProviderError as error:
            if not await self._is_short(error):
                # The team's index failed. Retry the team later, and continue with the other teams.
                log.warning("vectors of %s can't be stored, tried again in %g s: %s", team_id, LONGEST_PAUSE_S, error)
                self._turns.pop(team_id, None)
                asyncio.get_running_loop().call_later(LONGEST_PAUSE_S, self.context.wakes.note_unembedded, team_id)
        return True

    async def _is_short(self, error: Exception) -> bool:
        """Return whether the error is due to a shortage. If it is, first wait until the shortage may be over."""
        is_short = await self.context.shortages.is_cause_of(error)
        if is_short:
            await self.context.shortages.passed()
        return is_short

    async def _open(self, stamp: object) -> None:
        """Open the model that the operator has configured, and close the previous one."""
        await self.stop()
        if self.context.embedding.state is not EmbeddingState.FAILING:
            self._show(EmbeddingState.LOADING)
        self._embedder = await self.context.embedding.run(self._choice.make, asyncio.get_running_loop())
        if self._embedder is not None:
            await self.context.embedding.run(self._embedder.start)
            log.info("embedding passages with the model %s", self._embedder.model)
        self._opened = stamp
        self.context.embedding.embedder = self._embedder
        self._show(EmbeddingState.OFF if self._embedder is None else EmbeddingState.READY)
        self._cleared.clear()
        self._refused.clear()
        self._turns = dict.fromkeys(self.context.read(list_team_ids))

    async def _embed_some(self, embedder: OpenEmbedder, team_id: str) -> bool:
        """Embed one batch of the team's chunks. Returns False if no chunk is left for this node or any other."""
        provider, model = self.context.provider, embedder.model
        if team_id not in self._cleared:
            await asyncio.to_thread(provider.drop_vectors, team_id, model)
            # Load the vectors into the cache now: it takes a few tenths of a second for 100,000 chunks, and otherwise
            # the first search would have to wait for it.
            buckets = self.context.read(lambda connection: list_buckets(connection, team_id, (readiness.ACTIVE,)))
            await asyncio.to_thread(provider.warm_up, team_id, model, [bucket.id for bucket in buckets])
            self._cleared.add(team_id)
        for share in list(self._shares):
            done = await self._embed_share(embedder, team_id, share)
            if done is not None:
                return done
        # Another node that is embedding a share may have listed its chunks before the newest ones were added. Check
        # again later.
        await asyncio.sleep(LOOK_S)
        return True

    async def _embed_share(self, embedder: OpenEmbedder, team_id: str, share: int) -> bool | None:
        """Embed one batch of the chunks in this share. Returns False if the team has no chunk left.

        Returns None if the remaining chunks belong to other shares, or if another node has locked this share.
        """
        async with self.context.locks.hold_free(f"embedding {team_id} {share}") as held:
            if not held:
                return None
            # List the chunks after locking the share: another node may have embedded the ones that were listed before.
            limit = self._batch * len(self._shares) + len(self._refused)
            listed = await asyncio.to_thread(self.context.provider.list_unembedded, team_id, embedder.model, limit)
            left = [chunk for chunk in listed if chunk.chunk_id not in self._refused]
            ours = [chunk for chunk in left if crc32(chunk.chunk_id.encode()) % len(self._shares) == share]
            chunks = ours[: self._batch]
            await self.context.gates.let_uploads_go_first()
            if chunks:
                await asyncio.to_thread(documents.check_room, self.context)
            offered = await asyncio.to_thread(find_offers, self.context, team_id, embedder, chunks)
            computed = await self._embed(embedder, offered.select_to_embed(chunks))
            if vectors := offered.add_to(computed):
                await asyncio.to_thread(self.context.provider.put_vectors, team_id, embedder.model, vectors)
            if offered.vectors and computed:
                await finish_offers(self.context, team_id, chunks, offered.find_wrong(computed))
        if not chunks:
            return None if left else False
        # Put this share first, to continue with it in the next round.
        self._shares.sort(key=share.__ne__)
        return True

    async def _embed(self, embedder: OpenEmbedder, chunks: list[ChunkText]) -> list[tuple[str, bytes]]:
        """Embed the chunks. Returns pairs of chunk id and vector; raises EmbedFailed.

        Returns an empty list if there is only one chunk and the model can't embed it.
        """
        is_suspicious = self.context.embedding.state is EmbeddingState.FAILING
        if is_suspicious:
            await self.context.embedding.run(embedder.embed, [PLAIN])
        try:
            vectors = await self.context.embedding.run(embedder.embed, [chunk.text for chunk in chunks])
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
