"""`svc events`: shows past events, and follows new ones."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.console import clean
from svc_cli.errors import ApiError, DaemonUnreachable, NetworkFailed, UsageError
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.client.events import EventFollower

app = new_app()

#: Seconds that a command waits for a stopped service to return, and seconds between two attempts to reach it.
RETURN_S, RETURN_PAUSE_S = 60.0, 0.5
MISSED = "the daemon was away for too long, or a backup was restored: events may be missing here."


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFlags:
    """The options of `events`."""

    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep running, and show events as they happen, until Ctrl-C.")
    ] = False
    types: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE,…",
            help="Show only these types of events, such as source.ready,source.failed. A prefix such as bucket"
            " selects all types that begin with it.",
        ),
    ] = None
    bucket: Annotated[
        str | None, typer.Option("--bucket", "-b", metavar="BUCKET", help="Show only events about this bucket.")
    ] = None
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Show only events caused by the API key with this id."),
    ] = None
    after: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Begin after this event, given by its id or the last_id of a page."),
    ] = None
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, max=1000, help="Show at most N events.")] = None

    def filters(self) -> dict[str, str | int]:
        """Build the query parameters."""
        wanted = {name: getattr(self, name) for name in ("types", "bucket", "key", "after", "limit")}
        return {name: value for name, value in wanted.items() if value is not None}


@command(app, "events", "svc events --types source.failed", "svc events --follow --ndjson -b handbook")
def events(call: Invocation, flags: EventFlags) -> None:
    """Show what has happened to sources, buckets and batches, oldest first.

    Events are kept for 7 days. With --follow, only new events are shown, unless --after is given. Exits with code 7 if
    the service can't be reached for a minute.
    """
    if flags.follow and call.console.format == "json":
        raise UsageError("--follow never ends, so it has no single JSON value.", hint="use --ndjson.")
    if flags.follow and flags.limit is not None:
        raise UsageError("--follow and --limit exclude each other.")
    if flags.follow:
        keep_following(call, flags.filters(), lambda _, follower: _show_all(call, follower))
    with call.client() as client:
        page = client.events(flags.filters())
    call.console.show_page(page, "data", lambda: "\n".join(map(line_of, page["data"])) or "no events.")
    if page["has_more"]:
        call.console.note(f"there is more: --after {page['last_id']}")


def keep_following(
    call: Invocation, filters: dict[str, str | int], handle: Callable[["Client", "EventFollower"], None]
) -> NoReturn:
    """Have `handle` follow the events.

    If the service stops, wait up to RETURN_S for its return, then call `handle` again. If the service no longer keeps
    the event to continue from, show a warning, and continue with new events.
    """
    from svc_cli.client.events import LATEST

    until_s, is_missing = -math.inf, False
    while True:
        follower = None
        try:
            with call.client(may_start=until_s < 0) as client, client.follow_events(filters) as follower:
                if is_missing:
                    call.console.warn(MISSED)
                is_missing = False
                handle(client, follower)
        except (NetworkFailed, DaemonUnreachable):
            if follower is not None:
                filters["after"] = LATEST if follower.last_id is None else follower.last_id
                until_s = time.monotonic() + RETURN_S
                call.console.message("the service is away; waiting for it to come back.")
            if time.monotonic() >= until_s:
                raise
            time.sleep(RETURN_PAUSE_S)
        except ApiError as error:
            if error.code != "events_expired" or until_s < 0:
                raise
            filters["after"], is_missing = LATEST, True


def _show_all(call: Invocation, follower: "EventFollower") -> NoReturn:
    from svc_cli.client.events import RESYNC

    console = call.console
    while True:
        for event in follower.take():
            if event["type"] == RESYNC:
                console.warn(MISSED)
            elif console.is_text:
                console.write(line_of(event) + "\n")
            else:
                console.event(event)


def line_of(event: JsonMapping) -> str:
    """Format an event as a line."""
    data: JsonMapping = event["data"]
    about = data.get("title") or data.get("slug") or data.get("name")
    subject = event.get("source_id") or event.get("batch_id") or event.get("bucket_id")
    replaced, error = data.get("replaced_by"), data.get("error")
    facts = [about, subject, replaced and f"by {replaced}", error and error["code"]]
    if refresh := data.get("refresh"):
        trouble = refresh.get("error")
        facts.append(f"refresh failed: {trouble['message']}" if trouble else f"refresh: {refresh.get('outcome')}")
    if event["type"].startswith(("batch.", "store.", "bucket.")):
        facts.append(data.get("status"))
    at, kind = event["created_at"][:19].replace("T", " "), event["type"].ljust(16)
    return clean("  ".join([at, kind, *(str(each) for each in facts if each)]))
