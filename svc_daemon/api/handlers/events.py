"""HTTP handlers for the event log: a page as JSON, or an endless stream of server-sent events.

A stream reads more events only after its client has received the earlier events, so a slow client uses little memory.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api import server_sent_events
from svc_daemon.api.endpoints import NO_BUCKET, Endpoint
from svc_daemon.api.middleware.response_headers import request_id_of
from svc_daemon.api.requests import caller, context_of, header_of, page_limit, query_list, query_text
from svc_daemon.api.server_sent_events import EventStream, comment
from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import refusal
from svc_daemon.operations.shared import events as verbs
from svc_daemon.operations.shared.authorization import is_live
from svc_daemon.store.rows.events import EventFilter, Position
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.wire import events as wire
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.error_codes import ErrorCode as E

#: Seconds without an event until a comment is sent, to keep the connection alive.
BEAT_S = 15.0
#: Maximum seconds between two reads of the event log, since new events of other nodes don't wake the stream.
LOOK_S = 1.0
#: Seconds between two checks that the key is still valid.
CHECK_S = 1.0
#: Minimum seconds between two reads of the event log: after a read that found events, and after a read without events.
GATHER_S, SHORT_GATHER_S = 0.1, 0.01


async def list_events(request: Request) -> Response:
    key, context = caller(request, *api_keys.LIST_SOURCES), context_of(request)
    limit, query = page_limit(request), partial(query_text, request)
    asked = EventFilter(types=_types(request), key_id=query("key"))
    chosen = await asyncio.to_thread(verbs.choose_events, context, key, asked, query("bucket"))
    # A client that takes JSON too, and names it first, as those of MCP do, does not wait for the end of a stream.
    before, named, _ = (header_of(request, "accept") or "").partition(server_sent_events.MEDIA_TYPE)
    is_stream = bool(named) and "application/json" not in before
    resumed = header_of(request, headers.LAST_EVENT_ID) if is_stream else None
    last_id, position = verbs.find_start(context, key, resumed or query("after"))
    if is_stream:
        return EventStream(follow(request, key, chosen, position, last_id))
    most, found = limit or context.limits.page_rows, list[verbs.StoredEvent]()
    page = None
    # Read one more event than the page has, to see whether the key may see more.
    while page is None or (page.has_more and len(found) <= most):
        rows = verbs.READ_ROWS if page else min(most + 1, verbs.READ_ROWS)
        page = await context.followers.read(partial(verbs.read_events, context, key, chosen, position, rows))
        found += page.events
        position, last_id = page.position, page.last_id or last_id
    has_more = len(found) > most
    if has_more:
        last_id = found[most - 1].id
    cursor = verbs.cursors_for(context, key).of(last_id)
    rest = {"has_more": has_more, "last_id": cursor, "request_id": request_id_of(request.scope)}
    data = ",".join(each.body for each in found[:most])
    return Response(f'{{"object":"list","data":[{data}],{json.dumps(rest)[1:]}', media_type="application/json")


async def follow(
    request: Request, key: KeyRow, chosen: EventFilter, position: Position, last_id: str | None
) -> AsyncGenerator[bytes, None]:
    """Yield the stored events after `position`, then new events as they happen.

    `last_id` is the id of the event at `position`. The stream ends when the service stops or the key is revoked.
    """
    context, stopping = context_of(request), request.app.state.stopping
    monotonic, cursors = context.clock.monotonic, verbs.cursors_for(context, key)
    beat_s, check_s = monotonic(), monotonic() + CHECK_S

    def read() -> tuple[verbs.EventPage, bytes]:
        page = verbs.read_events(context, key, chosen, position, verbs.READ_ROWS)
        return page, b"".join(server_sent_events.event(one.body, one.type, cursors.of(one.id)) for one in page.events)

    # Begin the response at once. The comment has the cursor after which the stream continues.
    yield comment(cursors.of(last_id))
    with context.followers.following() as woken:
        while not stopping.is_set():
            if monotonic() >= check_s:
                check_s = monotonic() + CHECK_S
                if not is_live(context, key):
                    return
            woken.clear()
            page, sent = await context.followers.read(read)
            position, last_id = page.position, page.last_id or last_id
            if sent or monotonic() >= beat_s + BEAT_S:
                # The comment's cursor lets a client that reconnects skip the events that the filter has excluded.
                yield sent or comment(cursors.of(last_id))
                beat_s = monotonic()
            if page.has_more:
                continue
            # Before Python 3.12, `asyncio.wait_for` can ignore a cancellation, and the stream would never end.
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await woken.wait()
            if not stopping.is_set():
                await asyncio.sleep(GATHER_S if page.events else SHORT_GATHER_S)


def _types(request: Request) -> frozenset[str] | None:
    """Parse the list of event types (`source.ready`) or groups (`source`). Raises `invalid_request`."""
    if "types" not in request.query_params:
        return None
    chosen: set[str] = set()
    for word in filter(None, map(str.strip, query_list(request, "types"))):
        found = {each.value for each in EventType if word in (each.value, each.value.partition(".")[0])}
        if not found:
            raise refusal("types", f"has no event type {word!r}; there are {', '.join(EventType)}.")
        chosen |= found
    return frozenset(chosen)


# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/v1/events", list_events, "List or follow what has happened", {200: wire.EventList}, streams=True,
             strict=True,
             query={
                 "after": "Where to continue: a `last_id`, the id of an event, or `latest`; without it, from the oldest"
                          " one that is kept.",
                 "limit": "Events of a page, 1 to {page_rows}, which is the default too.",
                 "types": "Only these types, separated by commas; `source`, `bucket` and `batch` mean all of theirs.",
                 "bucket": "Only events about this bucket, by id or slug, and about the whole team.",
                 "key": "Only what this key has caused, by id; for others than the caller's own, it needs key:manage.",
             },
             headers={headers.LAST_EVENT_ID: "The last `id:` that a stream has sent; as `after`, and before it."},
             errors=(*NO_BUCKET, E.EVENTS_EXPIRED)),
)
# fmt: on
