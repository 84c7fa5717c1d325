"""The state of the service as a key may see it, and what watchers of folders report."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from svc_daemon.core import readiness
from svc_daemon.core.json_bodies import refusal
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.operations.retrieve.availability import ask_index
from svc_daemon.process.contexts import Context
from svc_daemon.process.embedders import EmbeddingState
from svc_daemon.store.rows import keys
from svc_daemon.store.rows.buckets import BucketRow, list_buckets
from svc_daemon.store.rows.keys import KeyRow, WatcherRow
from svc_daemon.store.rows.sources.listings import count_unfinished
from svc_daemon.store.rows.tasks import count_open_of_team
from svc_daemon.wire import services as wire

#: A watcher that has not reported for so many seconds is forgotten.
FORGET_S = 60.0
#: How many watchers may report with one key at a time.
MOST_WATCHERS = 100


async def report_watcher(
    context: Context, key: KeyRow, watcher_id: str, mappings: Sequence[wire.WatchedMapping]
) -> WatcherRow:
    """Store what a watcher reports. Watchers of other keys are others, whatever their ids."""
    since = context.clock.timestamp(-FORGET_S)
    report = WatcherRow(
        id=watcher_id,
        team_id=key.team_id,
        key_id=key.id,
        mappings=[*mappings],
        reported_at=context.clock.timestamp(),
    )

    def work(connection: Connection) -> None:
        keys.forget_watchers(connection, since)
        others = [each for each in keys.list_watchers(connection, key.team_id, since) if each.id != watcher_id]
        if sum(each.key_id == key.id for each in others) >= MOST_WATCHERS:
            raise refusal("watcher_id", f"is one too many: {MOST_WATCHERS} watchers report with this key.")
        keys.put_watcher(connection, report)

    await context.write(work)
    return report


def list_watchers(context: Context, key: KeyRow) -> list[WatcherRow]:
    """List the watchers that have reported within the last minute, with the mappings whose buckets the key reaches."""
    since = context.clock.timestamp(-FORGET_S)

    def work(connection: Connection) -> list[WatcherRow]:
        found = keys.list_watchers(connection, key.team_id, since)
        if not key.is_limited:
            return found
        reached = {name for bucket in _list_reached(connection, key) for name in (bucket.id, bucket.slug)}
        shown = []
        for each in found:
            mappings = [mapping for mapping in each.mappings if mapping["bucket"] in reached]
            if each.key_id == key.id:
                shown.append(each)
            elif mappings:
                shown.append(replace(each, mappings=mappings))
        return shown

    return context.read(work)


async def forget_silent_watchers(context: Context) -> int:
    """Delete the reports that nobody sees any more. Returns how many."""
    since = context.clock.timestamp(-FORGET_S)
    return await context.write(lambda connection: keys.forget_watchers(connection, since))


def _list_reached(connection: Connection, key: KeyRow) -> list[BucketRow]:
    known = list_buckets(connection, key.team_id, (readiness.ACTIVE, readiness.ARCHIVED))
    return [bucket for bucket in known if key.reaches([bucket.id])]


async def count_queue(context: Context, key: KeyRow) -> wire.QueueCounters:
    """Count what the team, or the key's buckets, still have to wait for."""

    def work(connection: Connection) -> dict[str, int]:
        if not key.is_limited:
            return count_open_of_team(connection, key.team_id)
        return count_unfinished(connection, [bucket.id for bucket in _list_reached(connection, key)])

    counts = await context.read_in_thread(work)
    return wire.QueueCounters(queued=counts["queued"], running=counts["running"])


async def measure_vectors(context: Context, key: KeyRow) -> wire.VectorState:
    """Count the passages of the team, or of the key's buckets, that have vectors."""
    embedding = context.embedding
    model = embedding.embedder.model if embedding.embedder else None
    reached = context.read(partial(_list_reached, key=key)) if key.is_limited else None
    buckets = None if reached is None else [bucket.id for bucket in reached]
    state = wire.VectorState(state=embedding.state.value, model=model, passages=None, missing=None, seconds_left=None)
    if context.engines.explain_index():
        return state  # it may hang, and nobody should wait for that
    try:
        counting = partial(context.provider.count_unembedded, key.team_id, model or "", buckets)
        count = await ask_index(context, key.team_id, counting)
    except ServiceError:
        # The index is being rebuilt, or fails: what can be said is said.
        return state
    state["passages"], state["missing"] = count.chunks, count.missing
    if embedding.state is EmbeddingState.READY and (embedding.chunk_s is not None or not count.missing):
        state["seconds_left"] = round(count.missing * (embedding.chunk_s or 0))
    return state


def find_trouble(context: Context) -> wire.Trouble | None:
    """Return what is wrong now, or else what was wrong last since this process started."""
    shortages, embedding = context.shortages, context.embedding
    if context.database.is_broken:
        message = "The database takes no writes; the service must be restarted."
        return wire.Trouble(message=message, since=None, until=None)
    if away := next((each for each in context.engines.now.values() if each.message), None):
        return wire.Trouble(message=away.message or "", since=away.since, until=None)
    if shortages.now is not None:
        return wire.Trouble(message=shortages.now.message, since=shortages.now.since, until=None)
    if embedding.state is EmbeddingState.FAILING and embedding.message:
        return wire.Trouble(message=embedding.message, since=None, until=None)
    if shortages.last is None:
        return None
    ended = shortages.last.shortage
    return wire.Trouble(message=ended.message, since=ended.since, until=shortages.last.until)
