"""Lists, resends, verifies and forwards webhook calls, and manages the signing secret.

Calls are made one at a time, and retried as the service does. Unlike the service, this module also reports uploaded
sources. Planned calls are kept while the service is unreachable, and lost when the process ends.
"""

import hmac
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from standardwebhooks import Webhook
from standardwebhooks.webhooks import EmptyWebhookSecretError, WebhookVerificationError

from svc_cli.client.calls import Calls, part
from svc_cli.client.connection_pools import ConnectionFailed, ConnectionPool
from svc_cli.client.events import LOOKUP_IDS, RESYNC, EventFollower
from svc_cli.client.waiting import batched
from svc_cli.daemon.probes import tls_context
from svc_cli.errors import UsageError
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.versions import VERSION
from svc_daemon.wire.light.webhook_calls import FAILED, PENDING, READY, TRIES, encode_body, judge_call, signed_headers

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.client.types import (
        DeliveryAnswerDict,
        DeliveryListDict,
        WebhookSecretDict,
    )


class WebhookCalls(Calls):
    """The client's methods for webhook deliveries and the signing secret."""

    def deliveries(self, filters: Mapping[str, str | int] | None = None) -> "DeliveryListDict":
        """Return deliveries (events that cause webhook calls) with their calls, newest last.

        Filters are `status` (`pending`, `delivered`, `failed`), `source_id`, `limit`, `after`.
        """
        return self._get("/v1/webhooks/deliveries", filters)

    def resend_delivery(self, delivery_id: str) -> "DeliveryAnswerDict":
        """Make a delivery's webhook call again, with the same event id."""
        return self._call("POST", f"/v1/webhooks/deliveries/{part(delivery_id)}/resend", json={})

    def webhook_secret(self) -> "WebhookSecretDict":
        """Return the secret that signs webhook calls."""
        return self._get("/v1/webhooks/secret")

    def rotate_webhook_secret(self) -> "WebhookSecretDict":
        """Create a new secret. Until `previous_expires_at`, both secrets sign calls."""
        return self._call("POST", "/v1/webhooks/secret/rotate", json={})


Verdict = Literal["valid", "expired", "invalid"]


class Checked(NamedTuple):
    """The result of checking a webhook call.

    `expired` means that the call was signed correctly, but too long ago or in the future.
    """

    verdict: Verdict
    #: Why the call is not valid.
    reason: str | None = None


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes) -> Checked:
    """Check a received call; header names are case-insensitive. Raises ValueError for an invalid secret."""
    try:
        hook = Webhook(secret)
    except EmptyWebhookSecretError as error:
        raise ValueError("the secret is empty") from error
    given = {name.lower(): value for name, value in headers.items()}
    try:
        hook.verify(body, given, json_parse=False)
    except WebhookVerificationError as error:
        if "timestamp" not in str(error):
            return Checked("invalid", str(error).lower())
        # The library checks the time first. A wrong signature is the worse problem, so check for it here.
        is_signed = _is_signed(hook, given, body)
        return (
            Checked("expired", str(error).lower()) if is_signed else Checked("invalid", "no matching signature found")
        )
    except ValueError:
        return Checked("invalid", "the signature header or the body is malformed")
    return Checked("valid")


def _is_signed(hook: Webhook, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the signature is correct, whatever the time."""
    try:
        moment = datetime.fromtimestamp(float(headers["webhook-timestamp"]), tz=UTC)
        signed = hook.sign(headers["webhook-id"], moment, body.decode())
        given = headers["webhook-signature"].split(" ")
    except (KeyError, ValueError, OverflowError, OSError):
        return False
    return any(hmac.compare_digest(signed.encode(), each.encode()) for each in given)


#: Events that cause a webhook call.
FORWARDED = (READY, FAILED)
#: Timeout of a call and delay before its retry, in seconds: the same as when the service makes the call.
ANSWER_S, RETRY_S = 15.0, 5.0
#: Maximum length of a shown error.
MOST_ERROR_CHARACTERS = 200
#: Maximum number of remembered calls. A repeated event of the same type and source causes no second call.
MOST_KNOWN = 10_000


@dataclass(slots=True)
class DueCall:
    """A planned call: the first attempt or the retry."""

    event: JsonMapping
    body: bytes
    due_s: float
    tries_left: int = TRIES


class Forwarder:
    """Makes webhook calls to one receiver."""

    def __init__(
        self,
        receiver: SplitResult,
        secret: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """If `secret` is None, calls are signed with the secret of the team."""
        self._receiver = receiver
        self._secret = secret
        self._metadata = metadata or {}
        self._clock = clock
        self._pool = ConnectionPool(ANSWER_S, tls_context)
        #: Events whose sources were not looked up yet.
        self._fresh: list[JsonMapping] = []
        self._due: list[DueCall] = []
        #: Event type and source id of the last calls, oldest first. Each pair gets only one call.
        self._known: dict[tuple[str, str], None] = {}

    def secrets(self, client: "Client") -> Sequence[str]:
        """Return the secrets that sign calls now, newest first."""
        if self._secret is not None:
            return [self._secret]
        answer = client.webhook_secret()
        return [secret for secret in (answer["secret"], answer["previous_secret"]) if secret is not None]

    def add(self, client: "Client", events: Iterable[JsonMapping]) -> None:
        """Plan the calls for these events, except for deleted sources.

        If this raises NetworkFailed, the next `add` plans these calls too.
        """
        for event in events:
            known = (event["type"], event["source_id"])
            if known not in self._known:
                self._known[known] = None
                self._fresh.append(event)
        for known in list(self._known)[:-MOST_KNOWN]:
            del self._known[known]
        source_ids = list({event["source_id"] for event in self._fresh})
        looked_up = [client.look_up_sources(some)["sources"] for some in batched(source_ids, LOOKUP_IDS)]
        sources: dict[str, JsonMapping] = {source["id"]: source for found in looked_up for source in found}
        fresh, self._fresh = self._fresh, []
        for event in fresh:
            if (source := sources.get(event["source_id"])) is not None:
                # Take these fields from the event, because the source may have changed after the event.
                facts = {**source, **{name: event["data"].get(name) for name in ("status", "ready", "error")}}
                text = encode_body(event["type"], event["id"], event["created_at"], self._metadata, facts)
                self._due.append(DueCall(event, text.encode(), self._clock()))

    def follow(self, client: "Client", follower: EventFollower) -> Iterator[JsonMapping]:
        """Make the calls as events arrive. Yields the result of each, and each `RESYNC` event.

        If this raises NetworkFailed, call `follow` again with a new client and follower. Calls that are still planned
        are then made first.
        """
        events: Sequence[JsonMapping] = ()
        while True:
            self.add(client, (event for event in events if event["type"] in FORWARDED))
            yield from self.call(client)
            events = follower.take(self.pause_s())
            yield from (event for event in events if event["type"] == RESYNC)

    def pause_s(self) -> float | None:
        """Return the seconds until the next call; None if no call is planned."""
        return max(0.0, min(call.due_s for call in self._due) - self._clock()) if self._due else None

    def call(self, client: "Client") -> Iterator[JsonMapping]:
        """Make the webhook calls that are due, and yield the result of each."""
        now_s = self._clock()
        due = [call for call in self._due if call.due_s <= now_s]
        # Read the secrets each time, because they may have been rotated.
        secrets = self.secrets(client) if due else []
        self._due = [call for call in self._due if call.due_s > now_s]
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
        """Make a webhook call. Returns the status of the response, or why there is no response."""
        headers: dict[str, str | bytes] = {
            "User-Agent": f"svc/{VERSION}",
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
            "Connection": "close",
            **signed_headers(secrets, call.event["id"], datetime.now(UTC), call.body),
        }
        try:
            limits_s = (ANSWER_S, ANSWER_S)
            with self._pool.exchange("POST", self._receiver, call.body, headers, *limits_s) as response:
                return response.status, None
        except ConnectionFailed as error:
            return None, str(error.__cause__)
        except (OSError, HTTPException) as error:
            # If the receiver doesn't speak HTTP, the error quotes the first line that it sent, which may be long.
            return None, str(error)[:MOST_ERROR_CHARACTERS] or type(error).__name__


def parse_receiver(url: str) -> SplitResult:
    """Return the parts of a receiver's URL. Raises UsageError unless it is http or https without a password."""
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        is_plain = is_plain and (parts.port is None or parts.port > 0)
    except ValueError:
        is_plain = False
    if not is_plain:
        raise UsageError(f"{url!r} is not the URL of a receiver.", hint="such as http://localhost:8000/hook.")
    return parts._replace(path=parts.path or "/")
