"""`svc webhook …`: lists, resends, forwards and verifies webhook calls."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from svc_cli.client.source_lookups import EVENT, MOST_CANDIDATES, before, exact_id, find_source, is_whole_id
from svc_cli.commands.invocations import DryRunOption, Invocation, command, new_app, parse_metadata
from svc_cli.commands.nouns.events import MISSED, keep_following
from svc_cli.console import clean
from svc_cli.errors import SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.given_files import KEY_BYTES, read_given
from svc_cli.render import fields, table
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.client.events import EventFollower

app = new_app("List, resend, verify and forward webhook calls.")


SECRET_VARIABLE = "SVC_WEBHOOK_SECRET"  # noqa: S105 - the name, not a secret


class SignatureRefused(SvcError):
    """The webhook call has no valid signature, or was signed too long ago or in the future."""

    code = "svc_webhook_invalid"
    exit = Exit.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryListFlags:
    """The options of `webhook deliveries`."""

    status: Annotated[
        Literal["pending", "delivered", "failed"] | None,
        typer.Option(help="List only events whose webhook call is in this state."),
    ] = None
    source: Annotated[str | None, typer.Option(metavar="SOURCE", help="List only events of this source.")] = None
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1000, help="List at most N events, 1 to 1000.")
    ] = None
    after: Annotated[
        str | None,
        typer.Option(metavar="ID", help="List only events after the event with this id, to get the next page."),
    ] = None

    def filters(self, client: "Client") -> dict[str, str | int]:
        """Build the query parameters."""
        source_id = find_source(client, self.source) if self.source else None
        wanted = {"status": self.status, "source_id": source_id, "limit": self.limit, "after": self.after}
        return {name: value for name, value in wanted.items() if value is not None}


@command(app, "deliveries", "svc webhook deliveries --status failed", "svc webhook deliveries --source guide.pdf")
def deliveries(call: Invocation, flags: DeliveryListFlags) -> None:
    """List the events that cause webhook calls, each with its calls."""
    with call.client() as client:
        answer = client.deliveries(flags.filters(client))
    rows = []
    for each in answer["deliveries"]:
        last: JsonMapping = each["attempts"][-1] if each["attempts"] else {}
        result = last.get("http_status") or (last.get("error") or {}).get("code")
        rows.append((each["id"], each["event"], each["status"], len(each["attempts"]), result, each["url"]))
    heads = ("event", "kind", "state", "calls", "last answer", "address")
    call.console.show_page(answer, "deliveries", lambda: table(call.console, heads, rows) if rows else "no calls.")
    if answer.get("has_more"):
        call.console.note(f"there is more: --after {answer['last_id']}")


@command(app, "resend", "svc webhook resend evt_01k3zq8q4y7x")
def resend(
    call: Invocation,
    event: Annotated[
        str,
        typer.Argument(
            metavar="EVENT", help="The event, by id, or by the beginning of its id (at least 8 characters after evt_)."
        ),
    ],
    dry_run: DryRunOption = False,
) -> None:
    """Send the webhook call of an event again, with the same event id."""
    with call.client() as client:
        if dry_run or not is_whole_id(event, EVENT.prefix):
            page = client.deliveries({"after": before(event, EVENT.prefix), "limit": MOST_CANDIDATES + 1})
            event = exact_id(EVENT, event, page["deliveries"])
        if dry_run:
            call.console.show({"id": event, "dry_run": True}, lambda: f"would call again for {event}")
            return
        answer = client.resend_delivery(event)
    call.console.show(answer, lambda: f"{answer['id']}  {answer['status']}  {answer['url']}")
    call.console.next_step("svc webhook deliveries")


@command(app, "secret")
def secret(
    call: Invocation,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Create a new secret. The old one stays valid for a day.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Print the secret with which webhook calls are signed."""
    with call.client() as client:
        answer = client.rotate_webhook_secret() if rotate and not dry_run else client.webhook_secret()
    if dry_run:
        value = {"rotate": rotate, "dry_run": True}
        call.console.show(value, lambda: "would create a new secret" if rotate else "would print the secret")
        return
    call.console.show(answer, lambda: str(answer["secret"]))
    if rotate:
        call.console.note(f"the old secret is valid until {answer['previous_expires_at']}.")


# Other users could see a secret in the process list, so no flag takes it.
SecretFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Read the secret from this file, instead of from the variable SVC_WEBHOOK_SECRET."
    ),
]


def read_secret(path: Path | None) -> str | None:
    """Read the secret from the file or the environment; None if neither is given.

    Raises UsageError if it is unreadable or invalid.
    """
    try:
        given = os.environ.get(SECRET_VARIABLE) if path is None else read_given(path, KEY_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{path} can't be read: {why}.", code="svc_file_refused") from error
    secret_text = (given or "").strip()
    if path is None and not secret_text:
        return None
    from svc_cli.client.webhooks import verify_webhook

    try:
        verify_webhook(secret_text, {}, b"")
    except ValueError as error:
        raise UsageError("This is not a webhook secret.", hint="a secret starts with whsec_.") from error
    return secret_text


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyFlags:
    """The options of `webhook verify`."""

    body: Annotated[
        str, typer.Argument(metavar="BODY", help="A file with the body exactly as received, or - for standard input.")
    ]
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME: VALUE", help="A header of the call, as received; repeatable."),
    ] = None
    secret_file: SecretFileOption = None
    any_age: Annotated[
        bool, typer.Option("--any-age", help="Also accept a call that was signed more than five minutes ago.")
    ] = False


@command(
    app,
    "verify",
    "svc webhook verify body.json -H 'webhook-id: …' -H 'webhook-timestamp: …' -H 'webhook-signature: …'",
)
def verify(call: Invocation, flags: VerifyFlags) -> None:
    """Check, without a daemon, that a webhook call came from the service and was not changed.

    Pass the headers webhook-id, webhook-timestamp and webhook-signature, and the exact body. Exits with code 3 if the
    call is not genuine.
    """
    from svc_cli.client.webhooks import verify_webhook

    secret_text, headers = read_secret(flags.secret_file), {}
    if secret_text is None:
        raise UsageError(
            "No secret is given.", hint="--secret-file FILE, or SVC_WEBHOOK_SECRET; `svc webhook secret` shows it."
        )
    for line in flags.header or []:
        name, separator, value = line.partition(":")
        if not separator:
            raise UsageError(f"--header takes `NAME: VALUE`, not {line!r}.")
        headers[name.strip().lower()] = value.strip()
    try:
        body = sys.stdin.buffer.read() if flags.body == "-" else read_given(Path(flags.body))
    except OSError as error:
        raise UsageError(f"{flags.body} can't be read: {error.strerror}.", code="svc_file_refused") from error
    checked = verify_webhook(secret_text, headers, body)
    if checked.verdict == "invalid" or (checked.verdict == "expired" and not flags.any_age):
        hint = "--any-age accepts an old call that was kept." if checked.verdict == "expired" else None
        raise SignatureRefused(f"The call is not valid: {checked.reason}.", hint=hint)
    genuine = {"valid": True, "verdict": checked.verdict, "id": headers.get("webhook-id")}
    call.console.show(genuine, lambda: fields(call.console, [("valid", True), ("event", genuine["id"])]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenFlags:
    """The options of `webhook listen`."""

    forward_to: Annotated[
        str,
        typer.Option(
            "--forward-to", metavar="URL", help="Send the calls to this address, such as http://localhost:8000/hook."
        ),
    ]
    bucket: Annotated[
        str | None,
        typer.Option("--bucket", "-b", metavar="BUCKET", help="Forward only events of this bucket's sources."),
    ] = None
    after: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Begin after the event with this id, instead of now."),
    ] = None
    meta: Annotated[
        list[str] | None,
        typer.Option(
            "--meta",
            metavar="K=V",
            help="Send the metadata field K with the text V in each call; repeatable.",
        ),
    ] = None
    secret_file: SecretFileOption = None

    def filters(self) -> dict[str, str | int]:
        """Build the query parameters for the events."""
        from svc_cli.client.webhooks import FORWARDED

        wanted = {"types": ",".join(FORWARDED), "bucket": self.bucket, "after": self.after}
        return {name: value for name, value in wanted.items() if value is not None}


@command(
    app,
    "listen",
    "svc webhook listen --forward-to http://localhost:8000/hook",
    "svc webhook listen --forward-to http://localhost:8000/hook -b handbook --ndjson",
)
def listen(call: Invocation, flags: ListenFlags) -> None:
    """Call a URL on this machine for each source that becomes ready or fails, until Ctrl-C.

    The calls are like those that the service makes for imports with a webhook. A failed call is repeated once, after 5
    seconds. Exits with code 7 if the service can't be reached for a minute.
    """
    from svc_cli.client.events import RESYNC
    from svc_cli.client.webhooks import Forwarder, parse_receiver

    if call.console.format == "json":
        raise UsageError("This never ends, so it has no single JSON value.", hint="use --ndjson.")
    receiver, metadata = parse_receiver(flags.forward_to), parse_metadata(flags.meta or [])
    forwarder = Forwarder(receiver, read_secret(flags.secret_file), metadata)

    def forward(client: "Client", follower: "EventFollower") -> None:
        # Fail now if the key may not read the secret.
        forwarder.secrets(client)
        call.console.message(f"calling {flags.forward_to} for what becomes ready or fails, until Ctrl-C.")
        for result in forwarder.follow(client, follower):
            if result.get("type") == RESYNC:
                call.console.warn(MISSED)
                continue
            call.console.event(result)
            words = (result["event"], result["source_id"], result["title"], result["status"])
            outcome = result["error"] or result["http_status"]
            if call.console.is_text:
                call.console.write(clean("  ".join(str(word) for word in (*words, outcome) if word)) + "\n")

    keep_following(call, flags.filters(), forward)
