"""The event log: pages of it, and following it in a thread, so that waiting needs no polling.

A follower begins with the events after the moment at which it was opened. So a caller that opens it first, and then
looks at what it waits for, misses nothing. If the connection ends, the follower resumes after the last event; if that
is not possible, it yields an event of the type `RESYNC`, and the caller looks again.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Self

from svc_cli.client.calls import Calls
from svc_cli.client.transport import Request, StreamedEvents, Transport
from svc_cli.errors import ApiError, NetworkFailed, SvcError
from svc_cli.interrupts import shielded
from svc_daemon.wire import Json, headers

if TYPE_CHECKING:
    from svc_cli.client.types import EventListDict, SourceListDict

#: The type of the events that a follower makes itself, after it may have missed some.
RESYNC = "svc.resync"
#: The service sends at least a comment every 15 seconds.
SILENCE_S = 45.0
#: Maximum time to wait for the end of a follower's thread, in seconds.
END_S = 1.0
#: Maximum number of sources that are looked up with one request.
LOOKUP_IDS = 200


class EventCalls(Calls):
    """The client's methods for events, and for looking many sources up at once."""

    def events(self, filters: Mapping[str, str | int] | None = None) -> "EventListDict":
        """Return a page `{data: [...], has_more, last_id}`, oldest first.

        Filters are `after` (the last event that was read, or `latest`), `limit`, `types`, `bucket` and `key`.
        """
        return self._get("/v1/events", filters)

    def follow_events(self, filters: Mapping[str, str | int] | None = None) -> "EventFollower":
        """Follow the events that pass the filters, from now on or from `after`; see EventFollower."""
        return EventFollower(self._transport, {"after": "latest"} | dict(filters or {}))

    def look_up_sources(self, source_ids: Sequence[str]) -> "SourceListDict":
        """Return `{sources: [...], missing: [ids], replaced_by: {id: id}}` for at most `LOOKUP_IDS` ids."""
        return self._get("/v1/sources", {"ids": ",".join(source_ids)})


class EventFollower:
    """Follows the event log while its block runs. Entering it connects, and raises what `Transport.send` raises."""

    def __init__(self, transport: Transport, filters: Mapping[str, str | int]) -> None:
        self._transport = transport
        self._filters = filters
        self._last_id: str | None = None
        self._came: SimpleQueue[Json | SvcError] = SimpleQueue()
        self._stack = ExitStack()
        self._stream: StreamedEvents | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def __enter__(self) -> Self:
        self._open()
        with shielded():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with shielded():
            self._is_over = True
            if self._stream is not None:
                self._stream.abort()
            # It ends at once, unless the service is away and the thread waits for its next try.
            self._thread.join(END_S)

    def take(self, timeout_s: float | None = None) -> list[Json]:
        """Return the events that have come, after waiting for the first one; none if the time is over.

        Raises NetworkFailed or ApiError if the service can't be followed any more.
        """
        found: list[Json] = []
        # A deadline may pass while its caller computes what is left.
        left_s = None if timeout_s is None else max(timeout_s, 0.0)
        while True:
            try:
                came = self._came.get(block=not found, timeout=left_s)
            except Empty:
                return found
            if isinstance(came, SvcError):
                raise came
            found.append(came)

    def _open(self) -> None:
        resumed = {headers.LAST_EVENT_ID: self._last_id} if self._last_id else {}
        request = Request(
            method="GET",
            path="/v1/events",
            params=self._filters,
            headers={"Accept": "text/event-stream"} | resumed,
            silence_s=SILENCE_S,
        )
        self._stream = self._stack.enter_context(self._transport.follow(request))

    def _run(self) -> None:
        """Read the stream, and open it again whenever it ends, until the block is left."""
        try:
            while True:
                self._read()
                self._stack.close()
                if self._is_over:
                    return
                self._resume()
        except SvcError as error:
            self._came.put(error)

    def _read(self) -> None:
        if self._stream is None:
            raise AssertionError("the stream is open")
        try:
            for event_id, event in self._stream.records():
                self._last_id = event_id or self._last_id
                if event is not None:
                    self._came.put(event)
                if self._is_over:
                    return
        except NetworkFailed:
            # The service was stopped or killed. The next connection is tried as often as any request.
            return

    def _resume(self) -> None:
        is_resumed = self._last_id is not None
        try:
            self._open()
        except ApiError as error:
            if error.code != "events_expired":
                raise
            self._last_id, is_resumed = None, False
            self._filters = dict(self._filters) | {"after": "latest"}
            self._open()
        if not is_resumed:
            self._came.put({"type": RESYNC})
