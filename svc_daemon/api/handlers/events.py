"""HTTP handlers for the event log: a page of it as JSON, or a stream of server-sent events without an end.

A stream reads the next events when its client has taken the earlier ones. So a slow client delays nobody else, and has
at most `STREAM_ROWS` events in memory. As with every response, a client that takes nothing for a minute is
disconnected; it can connect again and continue.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api import event_streams
from svc_daemon.api.endpoints import NO_BUCKET, Endpoint
from svc_daemon.api.event_streams import EventStream, comment
from svc_daemon.api.layers.response_headers import request_id_of
from svc_daemon.api.presenting import caller, context_of, header_of, page_limit
from svc_daemon.core.requests import refusal
from svc_daemon.operations import events as verbs
from svc_daemon.operations.authorization import is_live
from svc_daemon.store.events import EventFilter, Position
from svc_daemon.store.keys import KeyRow
from svc_daemon.wire import events as wire
from svc_daemon.wire import headers
from svc_daemon.wire.codes import ErrorCode as E
from svc_daemon.wire.event_types import EventType

#: Maximum number of events that a stream reads in one query.
STREAM_ROWS = 100
#: Seconds without an event after which a comment is sent, to keep the connection alive.
BEAT_S = 15.0
#: If a stream is not woken, it reads the log after this many seconds, because another node may have written to it.
LOOK_S = 1.0
#: Seconds between two checks whether the key is still valid.
CHECK_S = 1.0
#: Minimum time in seconds between two reads of the log, so that one read gets the events of several commits. The longer
#: one is used if the last read found something to send, since more is likely to follow.
GATHER_S, SHORT_GATHER_S = 0.1, 0.01


async def list_events(request: Request) -> Response:
    key, context = caller(request), context_of(request)
    limit, query = page_limit(request), request.query_params
    asked = EventFilter(types=_types(query.get("types")), key_id=query.get("key"))
    chosen = await asyncio.to_thread(verbs.choose_events, context, key, asked, query.get("bucket"))
    is_stream = event_streams.MEDIA_TYPE in (header_of(request, "accept") or "")
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
    """Yield the stored events after `position` (the position of the event `last_id`), then new events as they happen.

    The stream ends when the service stops or the key is revoked.
    """
    context, stopping = context_of(request), request.app.state.stopping
    monotonic = context.clock.monotonic
    beat_s, check_s = monotonic(), monotonic() + CHECK_S
    # Begin the response at once, so that the client knows that it is connected, and after which event to continue when
    # it connects again.
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
                yield b"".join(event_streams.event(vars(each), each.type, each.id) for each in page.events)
                beat_s = monotonic()
            position, last_id = page.position, page.last_id or last_id
            if page.has_more:
                continue
            if monotonic() >= beat_s + BEAT_S:
                # Send the id of the last event that was read, even if the filter excludes it. A client that reconnects
                # continues after this event.
                yield comment(last_id)
                beat_s = monotonic()
            # Don't use `asyncio.wait_for`: before Python 3.12, it ignores a cancellation that arrives together with a
            # wake-up, so the stream of a client that has disconnected would never end.
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await woken.wait()
            if not stopping.is_set():
                await asyncio.sleep(GATHER_S if page.events else SHORT_GATHER_S)


def _types(text: str | None) -> frozenset[str] | None:
    """Parse a comma-separated list of event types, or of their first words, such as `batch`.

    Raises `invalid_request`.
    """
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
