"""`svc agent …`: creates, lists, shows, changes and deletes agents."""

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from svc_cli.client.source_lookups import find_source
from svc_cli.commands.invocations import DryRunOption, Invocation, command, new_app
from svc_cli.errors import UsageError
from svc_cli.render import fields, table
from svc_daemon.wire import Json, JsonMapping
from svc_daemon.wire.light.parsing import parse_json

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app(
    "List, create, show, change and delete agents.",
    "svc agent create hr --bucket handbook --role 'the HR assistant'",
    "svc ask --agent hr how long is parental leave",
)

#: The value with which a flag removes a setting, as in `--top-k none`.
NONE = "none"
AgentArgument = Annotated[
    str,
    typer.Argument(
        metavar="AGENT",
        help="The id of the agent. Searches that name no agent use `default`.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of `agent create` and `agent set`."""

    agent: Annotated[
        str,
        typer.Argument(metavar="ID", help="The id of the agent; OpenAI clients use it as the model svc-agent:ID."),
    ]
    name: Annotated[str | None, typer.Option(help="Set the display name, such as 'HR assistant'.")] = None
    role: Annotated[str | None, typer.Option(help="Describe the agent's role, such as 'the HR assistant'.")] = None
    instructions: Annotated[
        str | None, typer.Option(help="Instruct the model how to answer, such as 'Answer in one sentence'.")
    ] = None
    bucket: Annotated[
        list[str] | None,
        typer.Option(
            "--bucket",
            "-b",
            metavar="BUCKET",
            help="Let the agent search this bucket ('*' means all buckets); repeatable.",
        ),
    ] = None
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Let the agent search this source, given by its id or the beginning of its id, instead of buckets; "
            "repeatable.",
        ),
    ] = None
    scope: Annotated[
        Literal["buckets", "sources", "team"] | None,
        typer.Option(help="Choose what the agent searches: its buckets, its sources, or everything in the team."),
    ] = None
    filters: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='Search only sources whose metadata match this filter, such as {"type": "eq", "key": "year", '
            '"value": 2024}; {} means no filter.',
        ),
    ] = None
    top_k: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Use up to N passages, 1 to 50, unless a request sets another limit; 'none' removes the setting.",
        ),
    ] = None
    threshold: Annotated[
        str | None,
        typer.Option(metavar="SCORE", help="Use only passages with at least this score, 0 to 1; 'none' uses all."),
    ] = None
    surface: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Record where the agent is used, such as a website. Deleting the agent then needs --force. "
            "'' removes the record.",
        ),
    ] = None
    dry_run: DryRunOption = False

    def sent(self, client: "Client") -> Json:
        """Build the request body, with complete ids of sources.

        Raises UsageError for an invalid option or for what is not the id of one source, and ApiError for an unknown
        source.
        """
        try:
            filters = None if self.filters is None else parse_json(self.filters)
        except ValueError as error:
            example = '{"type": "eq", "key": "lang", "value": "en"}'
            raise UsageError("--filters takes a JSON object.", hint=f"such as {example}.") from error
        policy = {
            "scope": self.scope,
            "bucket_ids": self.bucket or None,
            "source_ids": [find_source(client, source, guess=False, anywhere=True) for source in self.source or ()]
            or None,
            "filters": filters,
        }
        policy = {name: value for name, value in policy.items() if value is not None}
        for name, flag, text, kind in (
            ("top_k", "--top-k", self.top_k, int),
            ("score_threshold", "--threshold", self.threshold, float),
        ):
            if text is not None:
                policy[name] = _number(flag, text, kind)
        given = {
            "name": self.name,
            "role": self.role,
            "instructions": self.instructions,
            "policy": policy or None,
            "bound_surface": self.surface,
        }
        return {name: value for name, value in given.items() if value is not None}


def _number(flag: str, text: str, kind: type[int] | type[float]) -> int | float | None:
    """Convert the text to a number, or `none` to None. Raises UsageError."""
    if text.strip().casefold() == NONE:
        return None
    with suppress(ValueError):
        number = kind(text)
        if math.isfinite(number):
            return number
    raise UsageError(f"{flag} takes {'a whole number' if kind is int else 'a number'} or {NONE!r}, not {text!r}.")


@command(app, "ls")
def ls(call: Invocation) -> None:
    """List the agents that your API key may use."""
    with call.client() as client:
        answer = client.agents()
    rows = [(agent["id"], _reach(agent), agent["bound_surface"] or "", agent["name"]) for agent in answer["agents"]]
    heads = ("agent", "searches", "in use at", "name")
    call.console.show_page(answer, "agents", lambda: table(call.console, heads, rows))


@command(
    app,
    "create",
    "svc agent create hr --bucket handbook --role 'the HR assistant'",
    "svc agent create everything --scope team --top-k 12",
)
def create(call: Invocation, options: AgentOptions) -> None:
    """Create an agent.

    Without --bucket, --source or --scope, the agent searches everything that your API key can read.
    """
    with call.client() as client:
        wanted = {"agent_id": options.agent, **options.sent(client)}
        answer: JsonMapping = client.create_agent(**wanted, dry_run=options.dry_run)
    made = answer["would_create"] if options.dry_run else answer
    said = "would create" if options.dry_run else "created"
    call.console.show(answer, lambda: f"{said} {made['model']}, which searches {_reach(made)}")
    if not options.dry_run:
        call.console.next_step(f'svc search "…" --agent {options.agent}')


@command(app, "show")
def show(call: Invocation, agent: AgentArgument) -> None:
    """Show everything about one agent."""
    with call.client() as client:
        answer = client.agent(agent)
    policy = answer["policy"]
    pairs = [
        ("agent", answer["id"]),
        ("model", answer["model"]),
        ("name", answer["name"]),
        ("role", answer["role"]),
        ("instructions", answer["instructions"]),
        ("searches", _reach(answer)),
        ("error", answer["policy_error"]),
        ("buckets", "  ".join(policy["bucket_ids"])),
        ("sources", "  ".join(policy["source_ids"])),
        ("filters", json.dumps(policy["filters"]) if policy["filters"] else None),
        ("passages", policy["top_k"]),
        ("threshold", policy["score_threshold"]),
        ("in use at", answer["bound_surface"]),
        ("created", answer["created_at"]),
        ("updated", answer["updated_at"]),
    ]
    call.console.show(answer, lambda: fields(call.console, pairs))


@command(
    app,
    "set",
    "svc agent set hr --bucket handbook --bucket policies",
    "svc agent set hr --threshold none",
    """svc agent set hr --filters '{"type": "eq", "key": "language", "value": "en"}'""",
)
def change(call: Invocation, options: AgentOptions) -> None:
    """Change the given fields of an agent."""
    with call.client() as client:
        changes = options.sent(client)
        if not changes:
            raise UsageError("There is nothing to change.", hint="`svc agent set --help` lists what can be changed.")
        if options.dry_run:
            answer: JsonMapping = {**client.agent(options.agent), "dry_run": True, "changes": changes}
        else:
            answer = client.update_agent(options.agent, **changes)
    said = f"would change {', '.join(changes)} of" if options.dry_run else "changed"
    after = "" if options.dry_run else f", which searches {_reach(answer)}"
    call.console.show(answer, lambda: f"{said} {answer['model']}{after}")


@command(app, "rm")
def rm(
    call: Invocation,
    agent: AgentArgument,
    force: Annotated[
        bool,
        typer.Option("--force", help="Delete without asking, even if the agent is recorded as in use (--surface)."),
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Delete an agent; later requests for it are refused."""
    with call.client() as client:
        if not force and not dry_run:
            call.confirm(f"delete the agent {client.agent(agent)['id']}?")
        answer = {**client.agent(agent), "dry_run": True} if dry_run else client.delete_agent(agent, force=force)
    said = "would delete" if dry_run else "deleted"
    call.console.show(answer, lambda: f"{said} {answer['id']}")


def _reach(agent: JsonMapping) -> str:
    """Describe briefly what an agent searches."""
    policy = agent["policy"]
    if agent["policy_error"]:
        return "nothing: its stored policy is broken"
    if policy["scope"] == "team":
        return "the whole team"
    if "*" in policy["bucket_ids"]:
        return "every bucket"
    named = policy["source_ids"] if policy["scope"] == "sources" else policy["bucket_ids"]
    withheld = ", and what this key can't reach" if agent.get("policy_withheld") else ""
    noun = policy["scope"].removesuffix("s") if len(named) == 1 else policy["scope"]
    return f"{len(named)} {noun}{withheld}"
