"""`svc wait`: waits until sources and batches are ready."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from svc_cli.client.source_lookups import find_source, is_id
from svc_cli.client.waiting import GONE, Watch, look_up, wait_for_batches, wait_until_settled
from svc_cli.commands.daily.status import NAMED
from svc_cli.commands.invocations import Invocation, SourceBucketOption, TimeoutOption, command, new_app, parse_duration
from svc_cli.commands.nouns.batches import BATCH_PREFIX
from svc_cli.errors import WaitTimedOut, whole_error
from svc_cli.exits import Exit
from svc_cli.render import scan_progress, state_of, table
from svc_daemon.wire import Json, JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.progress import Progress

app = new_app()

#: What became of a file of a batch that has no source to wait for, by its status; any other has failed.
_ENDED = {"given_up": "given up", "deleted": "deleted since", "detached": "in no bucket any more"}


@dataclass(slots=True)
class _Waited:
    """The sources and batches to wait for, with their last known states."""

    watch: Watch
    #: The service's last response for each batch, by batch id.
    batches: dict[str, JsonMapping] = field(default_factory=dict)
    expired: WaitTimedOut | None = None

    @property
    def total(self) -> int:
        return len(self.watch.seen) + len(self.batches)

    @property
    def settled_count(self) -> int:
        return self.watch.settled_count + sum(bool(batch.get("terminal")) for batch in self.batches.values())

    def summary(self) -> Json:
        """Build the `wait.summary` object."""
        items: list[Json] = [
            {
                "source_id": each,
                "status": row.get("status"),
                "ready": bool(row.get("ready")),
                "error": whole_error(row["error"]) if row.get("error") else None,
            }
            for each, row in self.watch.seen.items()
        ]
        items += [_batch_item(batch_id, batch) for batch_id, batch in self.batches.items()]
        is_done = all(item["ready"] for item in items)
        code = self.expired.exit if self.expired else Exit.DONE if is_done else Exit.FAILED
        ready, pending = sum(item["ready"] for item in items), self.total - self.settled_count
        summary = {
            "v": 1,
            "type": "wait.summary",
            "items": items,
            "counts": {"ready": ready, "failed": len(items) - ready - pending, "pending": pending},
            "exit_code": int(code),
        }
        first = next((item["error"] for item in items if item["error"]), None)
        error = self.expired.summarized() if self.expired else first
        return {**summary, "error": error} if error else summary


@command(
    app,
    "wait",
    "svc wait docs/leave.md -b handbook",
    "svc wait src_01k3zq8q4y7x bat_01k3zq8q4y7xd2m9q0r8s5t6vw --timeout 5m",
)
def wait(
    call: Invocation,
    sources: Annotated[list[str], NAMED],
    bucket: SourceBucketOption = None,
    timeout: TimeoutOption = None,
) -> Exit:
    """Wait until each source or batch is ready or has failed.

    Exits with code 3 if any of them has failed, and with code 8 if --timeout has passed.
    """
    timeout_s = parse_duration(timeout)
    # Without any time, the states are looked up once.
    call.limit_time(timeout if timeout_s else None)
    with call.client() as client, call.progress() as progress:
        batches = [name for name in sources if is_id(name, BATCH_PREFIX)]
        within = call.settings.get("bucket", bucket)
        ids = [find_source(client, name, within) for name in sources if name not in batches]
        waited = _Waited(Watch(list(dict.fromkeys(ids))), {each: client.batch(each) for each in batches})
        progress.begin("waiting", waited.total)
        try:
            # Fail now if an id does not exist.
            _look_first(client, waited.watch)
            _wait(call, client, progress, waited, timeout_s)
            for batch_id, batch in waited.batches.items():
                if not batch["ready"]:  # its counters don't tell what failed from what was deleted
                    waited.batches[batch_id] = client.batch(batch_id, items=True)
        except WaitTimedOut as error:
            waited.expired = error
    summary = waited.summary()
    rows = [
        (source_id, state_of(source), (source.get("error") or {}).get("message"), source.get("title"))
        for source_id, source in waited.watch.seen.items()
    ]
    for item in (_batch_item(*pair) for pair in waited.batches.items()):
        state, flaw = "ready" if item["ready"] else item["status"], item["error"] or {}
        rows.append((item["batch_id"], state, flaw.get("message"), f"{item['counters']['total']} files"))
    call.console.show(summary, lambda: table(call.console, ("source", "state", "why", "title"), rows))
    if waited.expired:
        call.console.fail(waited.expired)
    return Exit(summary["exit_code"])


def _look_first(client: "Client", watch: Watch) -> None:
    """Look up every source. Raises ApiError if a source doesn't exist."""
    look_up(client, watch)
    for source_id, source in watch.seen.items():
        if source["status"] == GONE:
            # For a source that doesn't exist, this raises the service's own error.
            watch.see(source_id, client.source(source_id))


def _wait(call: Invocation, client: "Client", progress: "Progress", waited: _Waited, timeout_s: float | None) -> None:
    def report(_: object) -> None:
        scan, lack = waited.watch.scan, waited.watch.waits_for
        progress.update(waited.settled_count, scan_progress(scan) if scan else lack)
        call.console.event({"type": "wait.progress", "settled": waited.settled_count, "total": waited.total})

    if waited.watch.seen:
        wait_until_settled(client, waited.watch, timeout_s=client.deadline.within(timeout_s), on_change=report)
    wait_for_batches(client, waited.batches, timeout_s=client.deadline.within(timeout_s), on_change=report)


def _batch_item(batch_id: str, batch: JsonMapping) -> Json:
    counters = batch["counters"]
    ended = Counter(_ENDED.get(each["status"], "failed") for each in batch.get("items", ()) if not each["ready"])
    causes = ", ".join(f"{count} {words}" for words, count in ended.items()) or "they failed or are gone"
    error = {
        "code": "svc_some_failed",
        "message": f"{counters['failed']} of {counters['total']} files are not ready: {causes}.",
        "retryable": False,
        "details": {"batch_id": batch_id},
        "hint": f"svc batch show {batch_id} --items",
        "request_id": None,
    }
    is_failed = batch["terminal"] and not batch["ready"]
    state = {"status": batch["status"], "ready": bool(batch["ready"]), "error": error if is_failed else None}
    return {"batch_id": batch_id, **state, "counters": counters}
