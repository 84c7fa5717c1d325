"""Reads the event log page by page, or follows it in a thread.

Open a follower before you look up the current states, so that you miss no event. A follower reconnects if the
connection ends, and continues after the last event. If that is impossible, it yields an event `RESYNC`: look up the
states again.

A proxy may hold the stream back. So a stream that is silent, or that is none, gives way to polling: pages of events are
requested again and again.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Self

from svc_cli.client.calls import Calls
from svc_cli.client.transport import Request, StreamedEvents, Transport
from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError
from svc_cli.interrupts import shielded
from svc_daemon.wire import Json
from svc_daemon.wire.light import headers

if TYPE_CHECKING:
    from svc_cli.client.types import EventListDict, SourceListDict

#: The value of `after` that selects only future events.
LATEST = "latest"
#: The type of an event that this client inserts itself when it may have missed events.
RESYNC = "svc.resync"
#: A stream that is silent for two heartbeats is given up: the service sends at least a comment every 15 seconds.
SILENCE_S = 30.0
#: How soon a stream must begin. The service sends its head and a first comment at once.
BEGIN_S = 5.0
#: So many streams in a row that end within a second are cut by a proxy, and are given up, too.
MOST_CUTS = 3
#: Seconds between two requests for pages of events.
POLL_S = 1.0
#: Maximum seconds to wait for the follower's thread at the end.
END_S = 1.0
#: Maximum number of sources in one look-up.
LOOKUP_IDS = 200


class EventCalls(Calls):
    """The client's methods for events, and to look up many sources at once."""

    def events(self, filters: Mapping[str, str | int] | None = None) -> "EventListDict":
        """Return a page `{data: [...], has_more, last_id}`, oldest first.

        Filters are `after` (the `last_id` of the last page, the id of an event, or `latest`), `limit`, `types`,
        `bucket` and `key`.
        """
        return self._get("/v1/events", filters)

    def follow_events(self, filters: Mapping[str, str | int] | None = None) -> "EventFollower":
        """Return a follower of the events that pass the filters. Without `after`, it yields only new events."""
        return EventFollower(self._transport, {"after": LATEST} | dict(filters or {}))

    def look_up_sources(self, source_ids: Sequence[str]) -> "SourceListDict":
        """Return `{sources: [...], missing: [ids], replaced_by: {id: id}}` for up to `LOOKUP_IDS` ids."""
        return self._get("/v1/sources", {"ids": ",".join(source_ids)})


class EventFollower:
    """Follows the event log in a thread until the `with` block ends. Entering it raises like `Transport.send`."""

    def __init__(self, transport: Transport, filters: Mapping[str, str | int]) -> None:
        self._transport = transport
        self._filters = filters
        after = str(filters.get("after", LATEST))
        #: Cursor of the last event that `take` has read, even if the filters exclude that event; None if unknown.
        self.last_id: str | None = None if after == LATEST else after
        #: Cursor of the last event received, after which a new stream continues.
        self._received_id = self.last_id
        #: What the thread has read: pairs of the cursor of the last event so far, and an event (None for a comment). If
        #: an error ended the thread, the error comes last.
        self._came: SimpleQueue[tuple[str | None, Json | None] | SvcError] = SimpleQueue()
        self._stack = ExitStack()
        #: The open stream; None if pages are requested instead.
        self._stream: StreamedEvents | None = None
        self._over = threading.Event()
        #: How many streams in a row have ended within a second.
        self._cuts = 0
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._open()
        except (NetworkFailed, BadAnswer) as error:
            self._give_way(error)
        with shielded():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with shielded():
            self._over.set()
            if self._stream is not None:
                self._stream.abort()
            # The thread ends at once, unless it is reconnecting.
            self._thread.join(END_S)

    def take(self, timeout_s: float | None = None) -> list[Json]:
        """Wait for the next event, and return all that have arrived; an empty list if none arrives in time.

        Raises NetworkFailed or ApiError if the connection was lost and could not be opened again.
        """
        found: list[Json] = []
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            # `SimpleQueue.get` refuses a negative timeout; the deadline may have passed already.
            left_s = None if until_s is None else max(until_s - time.monotonic(), 0.0)
            try:
                came = self._came.get(block=not found, timeout=left_s)
            except Empty:
                return found
            if isinstance(came, SvcError) and found:
                # Return the events first; raise the error next time.
                self._came.put(came)
                return found
            if isinstance(came, SvcError):
                raise came
            self.last_id, event = came
            if event is not None:
                found.append(event)

    def _open(self) -> None:
        # If the caller gave `after`, the query already contains it.
        given = self._filters.get("after")
        resumed = {}
        if self._received_id and self._received_id != given:
            resumed[headers.LAST_EVENT_ID] = self._received_id
        request = Request(
            method="GET",
            path="/v1/events",
            params=self._filters,
            headers={"Accept": "text/event-stream"} | resumed,
            silence_s=BEGIN_S,
            is_stream=True,
        )
        self._opened_s = time.monotonic()
        self._stream = self._stack.enter_context(self._transport.follow(request))

    def _give_way(self, error: NetworkFailed | BadAnswer) -> None:
        """Begin to poll after the error of a stream. Raises the error if the service is away."""
        if isinstance(error, NetworkFailed) and not isinstance(error.__cause__, TimeoutError):
            raise error
        self._stack.close()
        self._stream = None
        if self._received_id is None:
            self._received_id = self._read_page({**self._filters, "limit": 1})["last_id"]

    def _run(self) -> None:
        """Read the stream, opening it again whenever it ends, or poll."""
        try:
            while not self._over.is_set():
                if self._stream is None:
                    self._poll()
                elif self._read():
                    self._stack.close()
                    self._resume()
        except SvcError as error:
            self._came.put(error)
        finally:
            self._stack.close()

    def _read(self) -> bool:
        """Read the stream to its end. Returns False if it gave way to polling."""
        if self._stream is None:
            raise AssertionError("the stream is open")
        failure: NetworkFailed | BadAnswer | None = None
        try:
            for event_id, event in self._stream.records(SILENCE_S):
                self._received_id = event_id or self._received_id
                self._came.put((self._received_id, event))
                if self._over.is_set():
                    return False
        except (NetworkFailed, BadAnswer) as error:
            failure = error
        if self._over.is_set():
            return False
        # Otherwise the service has stopped.
        self._cuts = self._cuts + 1 if time.monotonic() - self._opened_s < 1 else 0
        is_held_back = isinstance(failure, BadAnswer) or (failure and isinstance(failure.__cause__, TimeoutError))
        if not is_held_back and self._cuts < MOST_CUTS:
            return True
        self._give_way(BadAnswer("The stream of events was held back or cut."))
        return False

    def _poll(self) -> None:
        """Request the next page of events, and pause if it is the last one."""
        try:
            after = {"after": self._received_id} if self._received_id else {}  # there was no event at all
            page = self._read_page({name: self._filters[name] for name in self._filters if name != "after"} | after)
        except ApiError as error:
            if error.code != "events_expired":
                raise
            self._received_id = None
            self._give_way(BadAnswer("The events have expired."))
            self._came.put((self._received_id, {"type": RESYNC}))
            return
        for event in page["data"]:
            self._came.put((event["id"], event))
        self._received_id = page["last_id"] or self._received_id
        self._came.put((self._received_id, None))
        if not page.get("has_more"):
            self._over.wait(POLL_S)

    def _read_page(self, filters: Mapping[str, str | int]) -> Json:
        page: Json = self._transport.send(Request(method="GET", path="/v1/events", params=filters)).body
        return page

    def _resume(self) -> None:
        is_resumed = self._received_id is not None
        try:
            self._open()
        except (NetworkFailed, BadAnswer) as error:
            self._give_way(error)
        except ApiError as error:
            if error.code != "events_expired":
                raise
            self._received_id, is_resumed = None, False
            self._filters = dict(self._filters) | {"after": LATEST}
            self._open()
        if not is_resumed:
            self._came.put((None, {"type": RESYNC}))
