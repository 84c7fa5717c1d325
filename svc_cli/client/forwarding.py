"""Calls a webhook receiver on this machine for each source that becomes ready or fails.

The calls have the same body, headers and signature as those that the service makes for imports, and a failed call is
retried once after the same pause. There are three differences: sources that were uploaded cause calls too, calls are
made one after the other, and planned calls are lost when the process ends.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from svc_cli.certificates import tls_context
from svc_cli.client.connections import ConnectionFailed, Connections
from svc_cli.client.events import LOOKUP_IDS, RESYNC, EventFollower
from svc_cli.client.waiting import batched
from svc_cli.errors import UsageError
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.versions import VERSION
from svc_daemon.wire.webhook_calls import FAILED, PENDING, READY, TRIES, encode_body, judge_call, signed_headers

if TYPE_CHECKING:
    from svc_cli.client.api import Client

#: The events for which webhooks are called.
FORWARDED = (READY, FAILED)
#: Timeout of a call, and delay before a failed call is retried, in seconds: the same as the service's defaults.
ANSWER_S, RETRY_S = 15.0, 5.0
#: Maximum length of the reason that is shown for a failed call.
MOST_ERROR_CHARACTERS = 200
#: Number of the last calls that are remembered, so that none of them is made again for a later event.
MOST_KNOWN = 10_000


@dataclass(slots=True)
class DueCall:
    """A planned call: the first attempt, or the retry."""

    event: JsonMapping
    body: bytes
    due_s: float
    tries_left: int = TRIES


class Forwarder:
    """Makes webhook calls to one receiver."""

    def __init__(
        self,
        client: "Client",
        receiver: SplitResult,
        secret: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without a secret, the calls are signed with the team's secret, like the calls of the service."""
        self._client = client
        self._receiver = receiver
        self._secret = secret
        self._metadata = metadata or {}
        self._clock = clock
        self._connections = Connections(ANSWER_S, tls_context)
        self._due: list[DueCall] = []
        #: The event type and the source id of the last webhook calls, oldest first. Like the service, make only one
        #: call for each pair.
        self._known: dict[tuple[str, str], None] = {}

    def secrets(self) -> Sequence[str]:
        """Return the secrets with which calls are signed now, newest first."""
        if self._secret is not None:
            return [self._secret]
        answer = self._client.webhook_secret()
        return [secret for secret in (answer["secret"], answer["previous_secret"]) if secret is not None]

    def add(self, events: Iterable[JsonMapping]) -> None:
        """Plan the calls for these events. Sources that were deleted meanwhile are left out."""
        fresh = []
        for event in events:
            known = (event["type"], event["source_id"])
            if known not in self._known:
                self._known[known] = None
                fresh.append(event)
        for known in list(self._known)[:-MOST_KNOWN]:
            del self._known[known]
        source_ids = list({event["source_id"] for event in fresh})
        looked_up = [self._client.look_up_sources(some)["sources"] for some in batched(source_ids, LOOKUP_IDS)]
        sources: dict[str, JsonMapping] = {source["id"]: source for found in looked_up for source in found}
        for event in fresh:
            if (source := sources.get(event["source_id"])) is not None:
                # The source may have changed since the event, so the call reports the status from the event.
                facts = {**source, **{name: event["data"].get(name) for name in ("status", "ready", "error")}}
                text = encode_body(event["type"], event["id"], event["created_at"], self._metadata, facts)
                self._due.append(DueCall(event, text.encode(), self._clock()))

    def follow(self, follower: EventFollower) -> Iterator[JsonMapping]:
        """Make the calls for the events as they arrive, and yield the result of each call. Also yields each `RESYNC`
        event.
        """
        while True:
            events = follower.take(self.pause_s())
            yield from (event for event in events if event["type"] == RESYNC)
            self.add(event for event in events if event["type"] in FORWARDED)
            yield from self.call()

    def pause_s(self) -> float | None:
        """Return the seconds until the next call is due; None if none is planned."""
        return max(0.0, min(call.due_s for call in self._due) - self._clock()) if self._due else None

    def call(self) -> Iterator[JsonMapping]:
        """Make the webhook calls that are due, and yield the result of each."""
        now_s = self._clock()
        due = [call for call in self._due if call.due_s <= now_s]
        self._due = [call for call in self._due if call.due_s > now_s]
        # Read the secrets each time, because they may have been rotated.
        secrets = self.secrets() if due else []
        for call in due:
            began_s = self._clock()
            http_status, failure = self._post(call, secrets)
            standing = judge_call(http_status, call.tries_left)
            if standing.status == PENDING:
                call.tries_left, call.due_s = standing.tries_left, self._clock() + RETRY_S
                self._due.append(call)
            yield {
                "id": call.event["id"],
                "event": call.event["type"],
                "source_id": call.event["source_id"],
                "title": call.event["data"].get("title"),
                "status": standing.status,
                "http_status": http_status,
                "error": failure,
                "duration_ms": round((self._clock() - began_s) * 1000),
            }

    def _post(self, call: DueCall, secrets: Sequence[str]) -> tuple[int | None, str | None]:
        """Make a webhook call, and return the status of the response, or the reason why there is none."""
        headers: dict[str, str | bytes] = {
            "User-Agent": f"svc/{VERSION}",
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
            "Connection": "close",
            **signed_headers(secrets, call.event["id"], datetime.now(UTC), call.body),
        }
        try:
            limits_s = (ANSWER_S, ANSWER_S)
            with self._connections.exchange("POST", self._receiver, call.body, headers, *limits_s) as response:
                return response.status, None
        except ConnectionFailed as error:
            return None, str(error.__cause__)
        except (OSError, HTTPException) as error:
            # If the receiver doesn't speak HTTP, the message contains its first line, which may be long.
            return None, str(error)[:MOST_ERROR_CHARACTERS] or type(error).__name__


def parse_receiver(url: str) -> SplitResult:
    """Return the parts of a receiver's URL. Raises UsageError if the URL is not http or https, or contains a
    password.
    """
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        is_plain = is_plain and (parts.port is None or parts.port > 0)
    except ValueError:
        is_plain = False
    if not is_plain:
        raise UsageError(f"{url!r} is not the URL of a receiver.", hint="such as http://localhost:8000/hook.")
    return parts._replace(path=parts.path or "/")
