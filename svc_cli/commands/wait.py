"""`svc wait`: until sources are ready."""

from typing import Annotated, Any

import typer

from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.commands.options import Invocation, TimeoutOption, command, new_app, parse_duration
from svc_cli.errors import WaitTimedOut
from svc_cli.exits import Exit
from svc_cli.render import state_of, table

app = new_app()

Json = dict[str, Any]


@command(app, "wait")
def wait(
    call: Invocation,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", help="Ids of sources.")],
    timeout: TimeoutOption = None,
) -> Exit:
    """Wait until each source is ready or has failed. Exit 3 when one failed, 8 when the time was up."""
    timeout_s = parse_duration(timeout)
    watch = Watch(list(dict.fromkeys(sources)))
    expired: WaitTimedOut | None = None
    with call.client() as client, call.progress() as progress:
        for source_id in watch.seen:
            watch.seen[source_id] = client.source(source_id)  # an id that never was is an error, not a wait
        progress.begin("waiting", len(watch.seen))
        try:
            wait_until_settled(
                client, watch, timeout_s=timeout_s, on_change=lambda now: _report(call, progress.update, now)
            )
        except WaitTimedOut as error:
            expired = error
    code = expired.exit if expired else _exit(list(watch.seen.values()))
    summary = _summary(watch, code, expired)
    call.console.show(summary, lambda: _table(call, list(watch.seen.values())))
    if expired:
        call.console.fail(expired)
    return code


def _report(call: Invocation, update: Any, watch: Any) -> None:
    update(watch.settled_count)
    call.console.event({"type": "wait.progress", "settled": watch.settled_count, "total": len(watch.seen)})


def _exit(sources: list[Json]) -> Exit:
    return Exit.DONE if all(source.get("ready") for source in sources) else Exit.FAILED


def _summary(watch: Any, code: Exit, expired: WaitTimedOut | None) -> Json:
    items = [
        {
            "source_id": source_id,
            "status": source.get("status"),
            "ready": bool(source.get("ready")),
            "error": source.get("error"),
        }
        for source_id, source in watch.seen.items()
    ]
    summary = {
        "v": 1,
        "type": "wait.summary",
        "items": items,
        "counts": {
            "ready": sum(item["ready"] for item in items),
            "failed": sum(item["status"] in {"failed", "gone"} for item in items),
            "pending": len(watch.open_ids),
        },
        "exit_code": int(code),
    }
    error = expired.body() if expired else next((item["error"] for item in items if item["error"]), None)
    return {**summary, "error": error} if error else summary


def _table(call: Invocation, sources: list[Json]) -> str:
    rows = [
        (source["id"], state_of(source), (source.get("error") or {}).get("message"), source.get("title"))
        for source in sources
    ]
    return table(call.console, ("source", "state", "why", "title"), rows)
