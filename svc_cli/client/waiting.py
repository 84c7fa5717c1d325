"""Waits until sources and batches are settled, or until a task has ended.

A source is settled when it is ready, has failed, or was deleted. Changes are noticed by following the service's events.
An older service without events is asked again and again, at first every 20 ms, later every second.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, TypeVar

from svc_cli.client.events import LOOKUP_IDS, EventFollower
from svc_cli.errors import ApiError, WaitTimedOut
from svc_daemon.wire import JsonMapping

T = TypeVar("T")

#: The client's own status for a deleted or replaced source.
GONE = "gone"
#: Events after which a source may be settled (ready, failed, deleted or replaced). The last event is about a rebuild of
#: the index, during which no source is ready.
SETTLING = ("source.ready", "source.failed", "source.deleted", "source.replaced", "store.maintenance")
#: An event about the progress of a source.
SCANNING = "source.scanning"
#: Events after which a batch may have ended.
ENDING = ("batch.completed", "batch.expired")
#: Codes for a route that an older service doesn't have.
UNKNOWN_ROUTE = ("not_found", "method_not_allowed")
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
#: Minimum pause between two polls: this many seconds for each unsettled source.
PAUSE_FOR_EACH_S = 0.001
#: If more sources than this are unsettled, read their bucket's list instead of requesting each of them.
FEW = 8
#: Rows per page of a list, few enough to be cheap for the service.
PAGE_ROWS = 200
#: Fields that a batch's items share with sources.
_STATE = ("status", "ready", "error", "warnings")
#: Statuses of an item whose source is or will be in the batch's bucket.
_LIVING = frozenset({"queued", "indexing", "active", "failed"})
#: A text that sorts after every id.
_BEHIND_ALL = "~"


class EventReader(Protocol):
    """The client's methods that are needed to follow events."""

    def follow_events(self, filters: Mapping[str, str | int] | None = None) -> EventFollower: ...

    def look_up_sources(self, source_ids: Sequence[str]) -> JsonMapping: ...


class BatchReader(EventReader, Protocol):
    """The client's methods that are needed to wait for batches."""

    def batch(self, batch_id: str, *, items: bool = False) -> JsonMapping: ...


class SourceReader(BatchReader, Protocol):
    """The client's methods that are needed to wait for sources."""

    def source(self, source_id: str) -> JsonMapping: ...

    def sources_page(self, bucket: str, filters: Mapping[str, str | int] | None = None) -> JsonMapping: ...


class TaskReader(Protocol):
    """The client's method that is needed to wait for a task."""

    def task(self, task_id: str) -> JsonMapping: ...


class Watch:
    """The sources to wait for, with their last known states."""

    def __init__(
        self, source_ids: Iterable[str], bucket: str | None = None, batches: Mapping[str, str] | None = None
    ) -> None:
        """`batches` maps ids of sources to the ids of the batches in which they were sent."""
        #: Last known states of the sources by id, in the given order.
        self.seen: dict[str, Any] = {source_id: {} for source_id in source_ids}
        #: A bucket that contains all of the sources. Its list of sources is read if many are unsettled.
        self.bucket = bucket
        self.failed_count = 0
        #: How far the scan is of which a page was read last; empty if none is being read.
        self.scan: JsonMapping = {}
        #: Ids of unsettled sources, in the given order; the values are not used.
        self._open = dict.fromkeys(self.seen)
        #: For each batch, oldest first, the sources whose states are read from it.
        self.in_batches: dict[str, set[str]] = {}
        for source_id, batch_id in sorted((batches or {}).items(), key=lambda pair: pair[1]):
            self.in_batches.setdefault(batch_id, set()).add(source_id)

    def see(self, source_id: str, source: JsonMapping) -> None:
        """Record the current state of a source."""
        self.seen[source_id] = source
        if source_id in self._open and is_settled(source):
            del self._open[source_id]
            self.failed_count += source.get("status") == "failed"
            self.scan = {}

    @property
    def open_ids(self) -> list[str]:
        return list(self._open)

    @property
    def settled_count(self) -> int:
        return len(self.seen) - len(self._open)


def is_settled(source: JsonMapping) -> bool:
    """Whether the source is ready, failed or gone. Its state then changes only by another request."""
    return bool(source.get("ready") or source.get("status") in {"failed", GONE})


def wait_until_settled(
    client: SourceReader,
    watch: Watch,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Watch], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Wait until every source is settled, and return the last states by id.

    Deleted and replaced sources have the status `gone`. Raises WaitTimedOut after `timeout_s`.
    """
    deadline_s = None if timeout_s is None else clock() + timeout_s
    with _saying_what_is_left(watch), following(client, (*SETTLING, SCANNING)) as follower:
        if follower is not None:
            look_up(client, watch)
        pause_s = FIRST_PAUSE_S
        while True:
            before = watch.settled_count
            if follower is None:
                _look(client, watch)
            if on_change is not None:
                on_change(watch)
            if not watch.open_ids:
                return watch.seen
            if deadline_s is not None and clock() >= deadline_s:
                raise WaitTimedOut("The time is over.")
            if follower is not None:
                _take_events(client, watch, follower.take(None if deadline_s is None else deadline_s - clock()))
                continue
            shortest_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, PAUSE_FOR_EACH_S * len(watch.open_ids)))
            has_settled = watch.settled_count > before
            pause_s = shortest_s if has_settled else min(LONGEST_PAUSE_S, max(shortest_s, pause_s * 1.5))
            sleep(pause_s if deadline_s is None else max(0.0, min(pause_s, deadline_s - clock())))


def look_up(client: EventReader, watch: Watch) -> None:
    """Look up the states of all unsettled sources."""
    for some in batched(watch.open_ids, LOOKUP_IDS):
        found = client.look_up_sources(some)
        for source in found["sources"]:
            watch.see(source["id"], source)
        for source_id in found["missing"]:
            watch.see(source_id, _gone(source_id, found["replaced_by"].get(source_id)))


def batched(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


@contextmanager
def following(client: EventReader, types: Sequence[str]) -> Iterator[EventFollower | None]:
    """Follow events of these types; yield None if an older service has no events."""
    with ExitStack() as stack:
        follower: EventFollower | None = None
        try:
            follower = stack.enter_context(client.follow_events({"types": ",".join(types)}))
        except ApiError as error:
            if error.code not in UNKNOWN_ROUTE:
                raise
        yield follower


def _take_events(client: EventReader, watch: Watch, events: Iterable[JsonMapping]) -> None:
    """Update the states of the sources from the events."""
    for event in events:
        source_id, data = event.get("source_id"), event.get("data", {})
        if source_id is None:
            # An event without a source id is a RESYNC or a rebuilt index. After either, the known states may be wrong.
            look_up(client, watch)
        elif event["type"] == SCANNING:
            watch.scan = data if source_id in watch.seen else watch.scan
        elif source_id in watch.seen and event["type"] in ("source.deleted", "source.replaced"):
            watch.see(source_id, _gone(source_id, data.get("replaced_by")))
        elif source_id in watch.seen:
            state = {name: data.get(name) for name in ("status", "ready", "error")}
            warnings = data.get("warnings", [])
            watch.see(source_id, watch.seen[source_id] | {"id": source_id, "warnings": warnings} | state)


def _gone(source_id: str, successor: str | None) -> JsonMapping:
    return {"id": source_id, "status": GONE, "ready": False, "replaced_by": successor}


@contextmanager
def _saying_what_is_left(watch: Watch) -> Iterator[None]:
    """Add to a WaitTimedOut of the block which sources are not ready."""
    try:
        yield
    except WaitTimedOut as error:
        left = watch.open_ids
        raise WaitTimedOut(
            f"The time is over: {len(left)} of {len(watch.seen)} sources are not ready; the work continues.",
            hint=f"svc wait {' '.join(left[:5])}{' …' if len(left) > 5 else ''}",
            details={"source_ids": left},
        ) from error


def wait_for_task(
    client: TaskReader,
    task_id: str,
    timeout_s: float | None,
    on_change: Callable[[int], None],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> JsonMapping:
    """Wait until the task has ended, and return it. `on_change` gets its progress. Raises WaitTimedOut."""
    deadline_s = None if timeout_s is None else clock() + timeout_s
    pause_s = FIRST_PAUSE_S
    while not (task := client.task(task_id)).get("finished_at"):
        on_change(task["progress"]["chunks_done"])
        if deadline_s is not None and clock() >= deadline_s:
            raise WaitTimedOut(
                f"The time is over: the task {task_id} has not finished; the work continues.",
                details={"task_id": task_id},
            )
        sleep(pause_s)
        pause_s = min(LONGEST_PAUSE_S, pause_s * 1.5)
    on_change(task["progress"]["chunks_done"])
    return task


def wait_for_batches(
    client: BatchReader,
    seen: dict[str, JsonMapping],
    *,
    timeout_s: float | None = None,
    on_change: Callable[[int], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until every batch has ended. `seen` maps each batch id to the last known state of the batch, and is updated.

    `on_change` gets the number of ended batches. Raises WaitTimedOut.
    """
    deadline_s = None if timeout_s is None else clock() + timeout_s
    pause_s = FIRST_PAUSE_S
    if all(batch.get("terminal") for batch in seen.values()):
        return
    with following(client, ENDING) as follower:
        while left := [batch_id for batch_id, batch in seen.items() if not batch.get("terminal")]:
            # Request only the oldest batch, because later batches usually end later.
            seen[left[0]] = client.batch(left[0])
            if seen[left[0]]["terminal"]:
                pause_s = FIRST_PAUSE_S
                on_change(len(seen) - len(left) + 1)
                continue
            if deadline_s is not None and clock() >= deadline_s:
                raise WaitTimedOut(
                    f"The time is over: {len(left)} of {len(seen)} batches have not finished; the work continues.",
                    hint=f"svc wait {' '.join(left[:5])}",
                    details={"batch_ids": left},
                )
            if follower is not None:
                follower.take(None if deadline_s is None else deadline_s - clock())
                continue
            sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 1.5)


def _look(client: SourceReader, watch: Watch) -> None:
    _look_through_batches(client, watch)
    later = set().union(*watch.in_batches.values())
    open_ids = [source_id for source_id in watch.open_ids if source_id not in later]
    if watch.bucket and len(open_ids) > FEW:
        _look_along(client, watch, open_ids)
        return
    for source_id in open_ids:
        watch.see(source_id, _ask(client, source_id))


def _look_through_batches(client: SourceReader, watch: Watch) -> None:
    """Read the batches, oldest first, up to the first one with unsettled sources.

    Later batches are indexed after that one, so they need not be read yet. A source that is no longer in its batch's
    bucket is requested on its own.
    """
    for batch_id, source_ids in list(watch.in_batches.items()):
        items = [item for item in client.batch(batch_id, items=True)["items"] if item["knowledge_id"] in source_ids]
        if not all("warnings" in item for item in items):
            # An older service does not send all fields, so don't read its batches again.
            watch.in_batches.clear()
            return
        for item in items:
            if item["ready"] or item["status"] in _LIVING:
                watch.see(item["knowledge_id"], {"id": item["knowledge_id"]} | {name: item[name] for name in _STATE})
        if not all(is_settled(item) for item in items if item["status"] in _LIVING):
            return
        del watch.in_batches[batch_id]


def _look_along(client: SourceReader, watch: Watch, open_ids: Sequence[str]) -> None:
    """Read the bucket's list from the oldest unsettled source on, until a page has a source that is still unsettled.

    Documents are indexed in the order of the list, so this usually reads a single page. Sources that are missing from
    the list are requested one by one.
    """
    wanted = set(open_ids)
    # The list leaves out the id in `after`, so give a prefix of the oldest id, which sorts before that id.
    rest, after = sorted(open_ids), min(open_ids)[:-1]
    while rest:
        page = client.sources_page(str(watch.bucket), {"status": "all", "limit": PAGE_ROWS, "after": after})
        for source in page["sources"]:
            if source["id"] in wanted:
                watch.see(source["id"], source)
        after = str(page["last_id"]) if page.get("has_more") else _BEHIND_ALL
        passed, rest = [each for each in rest if each <= after], [each for each in rest if each > after]
        listed = {source["id"] for source in page["sources"]}
        for source_id in passed:
            if source_id not in listed:
                watch.see(source_id, _ask(client, source_id))
        if not all(is_settled(watch.seen[source_id]) for source_id in passed):
            return
        if rest:
            after = max(after, rest[0][:-1])


def _ask(client: SourceReader, source_id: str) -> JsonMapping:
    try:
        return client.source(source_id)
    except ApiError as error:
        if error.code != "source_not_found":
            raise
        return _gone(source_id, error.details.get("replaced_by"))
