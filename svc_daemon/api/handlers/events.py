"""HTTP handlers for the event log: a page as JSON, or an endless stream of server-sent events.

A stream reads more events only after its client has received the earlier events, so a slow client uses little memory.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api import server_sent_events
from svc_daemon.api.endpoints import NO_BUCKET, Endpoint
from svc_daemon.api.middleware.response_headers import request_id_of
from svc_daemon.api.presenting import caller, context_of, header_of, page_limit
from svc_daemon.api.server_sent_events import EventStream, comment
from svc_daemon.core.json_bodies import refusal
from svc_daemon.operations import events as verbs
from svc_daemon.operations.authorization import is_live
from svc_daemon.store.events import EventFilter, Position
from svc_daemon.store.keys import KeyRow
from svc_daemon.wire import events as wire
from svc_daemon.wire import headers
from svc_daemon.wire.error_codes import ErrorCode as E
from svc_daemon.wire.event_types import EventType

#: Maximum number of events that a stream reads at once.
STREAM_ROWS = 100
#: Seconds without an event until a comment is sent, to keep the connection alive.
BEAT_S = 15.0
#: Maximum seconds between two reads of the event log, since new events of other nodes don't wake the stream.
LOOK_S = 1.0
#: Seconds between two checks that the key is still valid.
CHECK_S = 1.0
#: Minimum seconds between two reads of the event log: after a read that found events, and after a read without events.
GATHER_S, SHORT_GATHER_S = 0.1, 0.01


async def list_events(request: Request) -> Response:
    key, context = caller(request), context_of(request)
    limit, query = page_limit(request), request.query_params
    asked = EventFilter(types=_types(query.get("types")), key_id=query.get("key"))
    chosen = await asyncio.to_thread(verbs.choose_events, context, key, asked, query.get("bucket"))
    is_stream = server_sent_events.MEDIA_TYPE in (header_of(request, "accept") or "")
    resumed = header_of(request, headers.LAST_EVENT_ID) if is_stream else None
    last_id, position = verbs.find_start(context, key, resumed or query.get("after"))
    if is_stream:
        return EventStream(follow(request, key, chosen, position, last_id))
    page = await asyncio.to_thread(verbs.read_events, context, key, chosen, position, limit or context.limits.page_rows)
    body = wire.EventList(
        data=page.events,
        has_more=page.has_more,
        last_id=page.last_id or last_id,
        request_id=request_id_of(request.scope),
    )
    return Response(await asyncio.to_thread(body.model_dump_json), media_type="application/json")


async def follow(
    request: Request, key: KeyRow, chosen: EventFilter, position: Position, last_id: str | None
) -> AsyncGenerator[bytes, None]:
    """Yield the stored events after `position`, then new events as they happen.

    `last_id` is the id of the event at `position`. The stream ends when the service stops or the key is revoked.
    """
    context, stopping = context_of(request), request.app.state.stopping
    monotonic = context.clock.monotonic
    beat_s, check_s = monotonic(), monotonic() + CHECK_S
    # Begin the response at once. The comment has the id of the event after which the stream continues.
    yield comment(last_id)
    with context.followers.following() as woken:
        while not stopping.is_set():
            if monotonic() >= check_s:
                check_s = monotonic() + CHECK_S
                if not is_live(context, key):
                    return
            woken.clear()
            page = await asyncio.to_thread(verbs.read_events, context, key, chosen, position, STREAM_ROWS)
            if page.events:
                yield b"".join(server_sent_events.event(vars(each), each.type, each.id) for each in page.events)
                beat_s = monotonic()
            position, last_id = page.position, page.last_id or last_id
            if page.has_more:
                continue
            if monotonic() >= beat_s + BEAT_S:
                # Send `last_id`: a client that reconnects then continues after the events that the filter has excluded.
                yield comment(last_id)
                beat_s = monotonic()
            # Before Python 3.12, `asyncio.wait_for` can ignore a cancellation, and the stream would never end.
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await woken.wait()
            if not stopping.is_set():
                await asyncio.sleep(GATHER_S if page.events else SHORT_GATHER_S)


def _types(text: str | None) -> frozenset[str] | None:
    """Parse a comma-separated list of event types (`source.ready`) or groups (`source`). Raises `invalid_request`."""
    if text is None:
        return None
    chosen: set[str] = set()
    for word in filter(None, (each.strip() for each in text.split(","))):
        found = {each.value for each in EventType if word in (each.value, each.value.partition(".")[0])}
        if not found:
            raise refusal("types", f"has no event type {word!r}; there are {', '.join(EventType)}.")
        chosen |= found
    return frozenset(chosen)


# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/v1/events", list_events, "List or follow what has happened", {200: wire.EventList}, streams=True,
             query={
                 "after": "The last event that was read, or `latest`; without it, from the oldest one that is kept.",
                 "limit": "Events of a page, 1 to {page_rows}, which is the default too.",
                 "types": "Only these types, separated by commas; `source`, `bucket` and `batch` mean all of theirs.",
                 "bucket": "Only events about this bucket, by id or slug, and about the whole team.",
                 "key": "Only what this key has caused, by id; for others than the caller's own, it needs key:manage.",
             },
             headers={headers.LAST_EVENT_ID: "The last event that a stream has sent; as `after`, and before it."},
             errors=(*NO_BUCKET, E.EVENTS_EXPIRED)),
)
# fmt: on
