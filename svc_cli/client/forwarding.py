"""Calls a receiver on this machine for what becomes ready or fails, as the service calls the webhooks of imports.

The calls have the same body, headers and signature, and a failed one is retried once after the same pause. They differ
in that uploads are forwarded too, that calls are made one after the other, and that nothing is kept: what is due when
the process ends is never called.
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
#: Maximum time until the receiver answers, and from a failed call to its retry, in seconds: the service's defaults.
ANSWER_S, RETRY_S = 15.0, 5.0
#: Maximum length of the reason that is shown for a failed call.
MOST_ERROR_CHARACTERS = 200


@dataclass(slots=True)
class DueCall:
    """A call that is to be made, for the first time or again."""

    event: JsonMapping
    body: bytes
    due_s: float
    tries_left: int = TRIES


class Forwarder:
    """Makes the calls to one receiver."""

    def __init__(
        self,
        client: "Client",
        receiver: SplitResult,
        secret: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without a secret, the calls are signed like those of the service, with the team's."""
        self._client = client
        self._receiver = receiver
        self._secret = secret
        self._metadata = metadata or {}
        self._clock = clock
        self._connections = Connections(ANSWER_S, tls_context)
        self._due: list[DueCall] = []
        #: The kind of event and the source of each call so far: the service calls once for each, too.
        self._known: set[tuple[str, str]] = set()

    def secrets(self) -> Sequence[str]:
        """Return the secrets that sign calls now, newest first."""
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
                self._known.add(known)
                fresh.append(event)
        source_ids = list({event["source_id"] for event in fresh})
        looked_up = [self._client.look_up_sources(some)["sources"] for some in batched(source_ids, LOOKUP_IDS)]
        sources: dict[str, JsonMapping] = {source["id"]: source for found in looked_up for source in found}
        for event in fresh:
            if (source := sources.get(event["source_id"])) is not None:
                # The source may have changed since; the call says what the event says.
                facts = {**source, **{name: event["data"].get(name) for name in ("status", "ready", "error")}}
                text = encode_body(event["type"], event["id"], event["created_at"], self._metadata, facts)
                self._due.append(DueCall(event, text.encode(), self._clock()))

    def follow(self, follower: EventFollower) -> Iterator[JsonMapping]:
        """Make the calls for all events that come, and yield the result of each; a `RESYNC` event is passed on."""
        while True:
            events = follower.take(self.pause_s())
            yield from (event for event in events if event["type"] == RESYNC)
            self.add(event for event in events if event["type"] in FORWARDED)
            yield from self.call()

    def pause_s(self) -> float | None:
        """Return the seconds until the next call is due; None if none is planned."""
        return max(0.0, min(call.due_s for call in self._due) - self._clock()) if self._due else None

    def call(self) -> Iterator[JsonMapping]:
        """Make the calls that are due, and yield the result of each."""
        now_s = self._clock()
        due = [call for call in self._due if call.due_s <= now_s]
        self._due = [call for call in self._due if call.due_s > now_s]
        # Asked for each time, because the secret may have been rotated.
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
        """Return the status of the response, or why there was none."""
        headers: dict[str, str | bytes] = {
            "User-Agent": f"svc/{VERSION}",
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
            "Connection": "close",
            **signed_headers(secrets, call.event["id"], datetime.now(UTC), call.body),
        }
        try:
            with self._connections.exchange("POST", self._receiver, call.body, headers, ANSWER_S) as response:
                return response.status, None
        except ConnectionFailed as error:
            return None, str(error.__cause__)
        except (OSError, HTTPException) as error:
            # A receiver that doesn't speak HTTP has its first line in the message.
            return None, str(error)[:MOST_ERROR_CHARACTERS] or type(error).__name__


def parse_receiver(url: str) -> SplitResult:
    """Return the parts of a receiver's URL. Raises UsageError if it is no http or https URL, or has a password."""
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        is_plain = is_plain and (parts.port is None or parts.port > 0)
    except ValueError:
        is_plain = False
    if not is_plain:
        raise UsageError(f"{url!r} is not the URL of a receiver.", hint="such as http://localhost:8000/hook.")
    return parts._replace(path=parts.path or "/")
