"""Waits until sources and batches are settled, or until a task has ended.

A source is settled when it is ready, has failed, or was deleted. Changes are noticed by following the service's events.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from svc_cli.client.events import LOOKUP_IDS, EventFollower
from svc_cli.deadlines import Deadline
from svc_cli.errors import ApiError, WaitTimedOut
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.api import Client

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
#: Seconds without an event after which the service is asked what the sources wait for.
QUIET_S = 5.0
#: Seconds between two looks at a task.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0


class EventReader(Protocol):
    """The client's methods that are needed to follow events."""

    def follow_events(self, filters: Mapping[str, str | int] | None = None) -> EventFollower: ...

    def look_up_sources(self, source_ids: Sequence[str]) -> JsonMapping: ...

    def source(self, source_id: str) -> JsonMapping: ...


class Watch:
    """The sources to wait for, with their last known states."""

    def __init__(self, source_ids: Iterable[str]) -> None:
        #: Last known states of the sources by id, in the given order.
        self.seen: dict[str, Any] = {source_id: {} for source_id in source_ids}
        #: Ids of sources of which an event has told since they were looked up. It has few of their fields.
        self.told: set[str] = set()
        self.failed_count = 0
        #: How far the scan is of which a page was read last; empty if none is being read.
        self.scan: JsonMapping = {}
        #: What keeps the service from indexing, such as a full disk; empty if nothing is known to.
        self.waits_for = ""
        #: Ids of unsettled sources, in the given order; the values are not used.
        self._open = dict.fromkeys(self.seen)

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
    client: EventReader,
    watch: Watch,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Watch], None] | None = None,
) -> dict[str, Any]:
    """Wait until every source is settled, and return the last states by id.

    Deleted and replaced sources have the status `gone`. Raises WaitTimedOut after `timeout_s`.
    """
    deadline = Deadline(timeout_s)
    with _saying_what_is_left(watch), _following(client, *SETTLING, SCANNING) as follower:
        look_up(client, watch)
        while True:
            if on_change is not None:
                on_change(watch)
            if not watch.open_ids:
                return watch.seen
            deadline.check()
            if events := follower.take(deadline.within(QUIET_S)):
                watch.waits_for = ""
                _take_events(client, watch, events)
            elif on_change is not None:
                with suppress(ApiError):  # an event tells if the source is gone
                    watch.waits_for = str((client.source(watch.open_ids[0]).get("waits_for") or {}).get("message", ""))


def look_up(client: EventReader, watch: Watch, source_ids: Sequence[str] | None = None) -> None:
    """Look up the states of these sources; of all unsettled ones if None."""
    for some in batched(watch.open_ids if source_ids is None else source_ids, LOOKUP_IDS):
        found = client.look_up_sources(some)
        watch.told.difference_update(some)
        for source in found["sources"]:
            watch.see(source["id"], source)
        for source_id in found["missing"]:
            watch.see(source_id, _gone(source_id, found["replaced_by"].get(source_id)))


def wait_and_look_up(client: EventReader, source_ids: Iterable[str], timeout_s: float | None) -> dict[str, Any]:
    """Wait until every source is settled, and return their whole states by id. Raises WaitTimedOut."""
    watch = Watch(source_ids)
    settled = dict(wait_until_settled(client, watch, timeout_s=timeout_s))
    look_up(client, watch, [source_id for source_id in settled if source_id in watch.told])
    # A rebuild of the index may have begun since: what was ready is no failure then.
    return {source_id: state if is_settled(state) else settled[source_id] for source_id, state in watch.seen.items()}


@contextmanager
def _following(client: EventReader, *types: str) -> Iterator[EventFollower]:
    """Follow the events of these types; others come, too, from an older service, which refuses a type that it lacks."""
    with ExitStack() as stack:
        try:
            follower = stack.enter_context(client.follow_events({"types": ",".join(types)}))
        except ApiError as error:
            if error.code != "invalid_request":
                raise
            groups = dict.fromkeys(each.partition(".")[0] for each in types)
            follower = stack.enter_context(client.follow_events({"types": ",".join(groups)}))
        yield follower


def batched(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


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
        elif source_id in watch.seen and event["type"] in SETTLING:
            state = {name: data.get(name) for name in ("status", "ready", "error")}
            warnings = data.get("warnings", [])
            watch.told.add(source_id)
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
    client: "Client", task_id: str, timeout_s: float | None, on_change: Callable[[int], None]
) -> JsonMapping:
    """Wait until the task has ended, and return it. `on_change` gets its progress. Raises WaitTimedOut."""
    deadline = Deadline(timeout_s)
    pause_s = FIRST_PAUSE_S
    while not (task := client.task(task_id)).get("finished_at"):
        on_change(task["progress"]["chunks_done"])
        if not deadline.left_s:
            raise WaitTimedOut(
                f"The time is over: the task {task_id} has not finished; the work continues.",
                details={"task_id": task_id},
            )
        time.sleep(pause_s)
        pause_s = min(LONGEST_PAUSE_S, pause_s * 1.5)
    on_change(task["progress"]["chunks_done"])
    return task


def wait_for_batches(
    client: "Client",
    seen: dict[str, JsonMapping],
    *,
    timeout_s: float | None = None,
    on_change: Callable[[int], None] = lambda _: None,
) -> None:
    """Wait until every batch has ended. `seen` maps each batch id to the last known state of the batch, and is updated.

    `on_change` gets the number of ended batches. Raises WaitTimedOut.
    """
    deadline = Deadline(timeout_s)
    if all(batch.get("terminal") for batch in seen.values()):
        return
    with _following(client, *ENDING) as follower:
        while left := [batch_id for batch_id, batch in seen.items() if not batch.get("terminal")]:
            # Request only the oldest batch, because later batches usually end later.
            seen[left[0]] = client.batch(left[0])
            if seen[left[0]]["terminal"]:
                on_change(len(seen) - len(left) + 1)
                continue
            if not deadline.left_s:
                raise WaitTimedOut(
                    f"The time is over: {len(left)} of {len(seen)} batches have not finished; the work continues.",
                    hint=f"svc wait {' '.join(left[:5])}",
                    details={"batch_ids": left},
                )
            follower.take(deadline.within(None))
