"""`svc key …`: creates, lists and revokes API keys."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import typer

from svc_cli.client.source_lookups import KEY, exact_id
from svc_cli.commands.invocations import DryRunOption, Invocation, command, new_app
from svc_cli.credentials import ADMIN_HINT, LOGIN_HINT
from svc_cli.errors import KeyNotShown, UsageError
from svc_cli.render import table
from svc_daemon.wire import Json, JsonMapping

app = new_app("Create, list and revoke API keys.")

#: Shown for the buckets or models of a key that is not limited to some of them.
ALL = "all"
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
#: A duration such as `30d`; a number without a unit would be ambiguous.
_SPAN = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>[smhd])")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOptions:
    """The options of `key create`."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")]
    preset: Annotated[
        Literal["admin", "ingest", "read"] | None,
        typer.Option(
            help="Let the key do everything (admin), add and delete sources (ingest), or search and read (read)."
        ),
    ] = None
    can: Annotated[
        list[str] | None,
        typer.Option(
            "--can",
            metavar="CAPABILITY",
            help="Give the key this capability, such as knowledge:search, instead of a preset; repeatable.",
        ),
    ] = None
    bucket: Annotated[
        list[str] | None,
        typer.Option("--bucket", "-b", metavar="BUCKET", help="Limit the key to this bucket; repeatable."),
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Limit the key to this agent, given as svc-agent:ID; repeatable.",
        ),
    ] = None
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Let the key expire after a time (30d) or on a date (2030-01-31T12:00:00Z).",
        ),
    ] = None
    dry_run: DryRunOption = False

    def fields(self, now: datetime) -> Json:
        """Build the request body. Raises UsageError for invalid options."""
        if (self.preset is None) == (not self.can):
            raise UsageError(
                "Give either --preset or --can.",
                hint="--preset admin|ingest|read, or --can CAPABILITY for each capability.",
            )
        span, moment = _SPAN.fullmatch(self.expires or ""), None
        try:
            if span:
                moment = now + timedelta(seconds=int(span["number"]) * _UNITS_S[span["unit"]])
            elif self.expires is not None:
                moment = datetime.fromisoformat(self.expires)
        except (ValueError, OverflowError):
            pass
        # A time without a time zone is ambiguous.
        if self.expires is not None and (moment is None or moment.tzinfo is None):
            raise UsageError(
                "--expires takes a duration such as 12h or 30d, or a time such as 2030-01-31T12:00:00Z, "
                f"not {self.expires!r}."
            )
        fields = {
            "name": self.name,
            "preset": self.preset,
            "capabilities": self.can,
            "buckets": self.bucket,
            "models": self.model,
            "expires_at": moment and moment.isoformat(),
        }
        return {name: value for name, value in fields.items() if value}


@command(
    app, "create", "svc key create website --preset read -b handbook", "svc key create ci --preset ingest --expires 30d"
)
def create(call: Invocation, options: KeyOptions) -> None:
    """Create an API key and print it; it can't be shown again.

    The new key can't have more capabilities than your own key.
    """
    fields = options.fields(datetime.now(UTC))
    with call.client() as client:
        if options.dry_run:
            planned: JsonMapping = client.create_key(**fields, dry_run=True)
            call.console.show(planned, lambda: f"would create {_described(planned['would_create'])}")
            return
        answer = client.create_key(**fields)
    if answer["key"] is None:
        raise KeyNotShown(
            f"The key {answer['id']} was created, but the response that contains it was lost.",
            hint=f"`svc key revoke {answer['id']}`, then create another.",
        )
    call.console.show(answer, lambda: str(answer["key"]))
    if call.console.is_text:
        call.console.message(f"created {answer['id']}: {_described(answer)}; the key is not shown again")


def _described(key: JsonMapping) -> str:
    return f"{key['name']}, which can {', '.join(key['capabilities'])}"


@command(app, "ls")
def ls(call: Invocation) -> None:
    """List your own key and all keys with the same or fewer rights, including revoked keys."""
    with call.client() as client:
        answer = client.keys()
    now = datetime.now(UTC).isoformat()
    rows = []
    for key in answer["keys"]:
        state = "active"
        if key["revoked_at"]:
            state = "revoked"
        elif key["expires_at"] is not None:
            state = "expired" if key["expires_at"] <= now else f"until {key['expires_at'][:10]}"
        names = (ALL if each is None else ", ".join(each) or ALL for each in (key["buckets"], key["models"]))
        rows.append((key["id"], key["name"], state, *names, ", ".join(key["capabilities"])))
    heads = ("key", "name", "state", "buckets", "models", "can")
    call.console.show_page(answer, "keys", lambda: table(call.console, heads, rows))


@command(app, "revoke", "svc key revoke key_01k3zq8q4y7x")
def revoke(
    call: Invocation,
    key_id: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="The key, by id, or by the beginning of its id (at least 8 characters after key_)."
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Revoke without asking, even the key that this command uses.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Revoke a key, so that all further requests with it are refused."""
    with call.connected() as (client, connection):
        keys = {key["id"]: key for key in client.keys()["keys"]}
        key = keys[exact_id(KEY, key_id, list(keys.values()))]
        # The hint is the beginning of the key, up to its secret part.
        is_own = connection.credential.key.startswith(key["hint"].removesuffix("…"))
        if not force and not dry_run:
            call.confirm(f"revoke the key {'in use, ' if is_own else ''}{key['name']} ({key['id']}), for good?")
        answer: JsonMapping = {**key, "dry_run": True} if dry_run else client.revoke_key(key["id"])
    said = "would revoke" if dry_run else "revoked"
    call.console.show(answer, lambda: f"{said} {key['id']} ({key['name']}){', the key in use' if is_own else ''}")
    if is_own and not dry_run:
        hint = ADMIN_HINT if connection.destination.admin_key else LOGIN_HINT
        call.console.warn(f"this was the key in use. {hint}")
