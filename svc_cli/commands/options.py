"""What every command shares: its common flags, and the invocation that a command function receives.

A command is a function `f(call, …own options…)`. `command` adds the common flags to its options, turns them into the
Invocation and hands that over, so that no command repeats them.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from svc_cli.console import Console, is_terminal
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.settings import Settings
from svc_daemon.wire.versions import API_RANGE, VERSION

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.connections import Connection
    from svc_cli.progress import Progress

ProgressStyle = Literal["auto", "bar", "plain", "none"]
BucketOption = Annotated[
    str | None, typer.Option("--bucket", "-b", metavar="BUCKET", help="Bucket, by slug or id.  [SVC_BUCKET]")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="AGENT", help="By this agent's policy; its id or model id.")
]
TimeoutOption = Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="Longest wait: 90, 90s, 5m, 1h.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags that every command takes."""

    #: Exactly one JSON value on stdout.
    json: bool = False
    #: One JSON value per line, as things happen.
    ndjson: bool = False
    progress: ProgressStyle | None = None
    base_url: str | None = None
    no_autostart: bool = False
    no_input: bool = False
    debug: bool = False

    def over(self, other: "Flags | None") -> "Flags":
        """These flags, and those of `other` (given before the command) where these say nothing."""
        if other is None:
            return self
        return Flags(**{each.name: getattr(self, each.name) or getattr(other, each.name) for each in fields(Flags)})


def _common(
    json: Annotated[bool, typer.Option("--json", help="Print exactly one JSON value.")] = False,
    ndjson: Annotated[bool, typer.Option("--ndjson", help="Print one JSON value per line as things happen.")] = False,
    progress: Annotated[ProgressStyle | None, typer.Option(help="How progress is shown.  [SVC_PROGRESS]")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="Another service.  [SVC_BASE_URL]")] = None,
    no_autostart: Annotated[bool, typer.Option("--no-autostart", help="Don't start the daemon.")] = False,
    no_input: Annotated[bool, typer.Option("--no-input", help="Never ask.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Carry the declarations of the common flags; never called."""


_COMMON = {
    name: parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for name, parameter in inspect.signature(_common).parameters.items()
}


class Invocation:
    """One run of one command: its console, settings and connection."""

    def __init__(self, console: Console, flags: Flags, root: Any = None) -> None:
        self.console = console
        self.flags = flags
        #: The whole `svc` command as Typer built it.
        self.root = root
        console.format = "ndjson" if flags.ndjson else "json" if flags.json else "text"
        console.debug = flags.debug

    @cached_property
    def settings(self) -> Settings:
        """The settings in force in this folder."""
        return Settings.load(os.environ, Path.cwd())

    @contextmanager
    def connected(self) -> "Iterator[tuple[Client, Connection]]":
        """A client for the service in force, closed at the end."""
        from svc_cli.connections import connected

        autostart = not self.flags.no_autostart
        with connected(self.settings, self.console, base_url=self.flags.base_url, autostart=autostart) as both:
            yield both

    @contextmanager
    def client(self) -> "Iterator[Client]":
        """As `connected`, where only the client is wanted."""
        with self.connected() as (client, _):
            yield client

    def progress(self) -> "Progress":
        """Progress in the style in force."""
        from svc_cli.progress import progress_for

        return progress_for(self.console, self.settings.get("progress", self.flags.progress))

    def bucket(self, flag: str | None) -> str:
        """The bucket meant. Raises UsageError where none is named anywhere."""
        found: str | None = self.settings.get("bucket", flag)
        if not found:
            raise UsageError("No bucket is named.", hint="give one: -b BUCKET, SVC_BUCKET, or `bucket` in svc.toml.")
        return found

    def may_ask(self) -> bool:
        """Whether somebody sits at the terminal and wants to be asked."""
        return is_terminal(sys.stdin) and not self.flags.no_input and not self.settings.is_on("SVC_NO_INPUT")


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., Exit | None]], Callable[..., Exit | None]]:
    """Register a function as a command of `app`, with the common flags added to its own options.

    Few options stand as parameters of the function; many are one dataclass, whose fields are the options.
    """

    def register(function: Callable[..., Exit | None]) -> Callable[..., Exit | None]:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        record = _record(parameters)
        own = list(inspect.signature(record, eval_str=True).parameters.values()) if record else parameters

        def wrapper(ctx: typer.Context, **options: Any) -> Exit | None:
            given = Flags(**{each: options.pop(each) for each in _COMMON})
            console, before = ctx.obj
            call = Invocation(console, given.over(before), ctx.find_root().command)
            return function(call, record(**options)) if record else function(call, **options)

        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        return _register(app, name, function, wrapper, [context, *keywords, *_COMMON.values()])

    return register


def _record(parameters: list[inspect.Parameter]) -> Callable[..., Any] | None:
    """The dataclass that holds a command's options, where it has one."""
    kind: Any = parameters[0].annotation if len(parameters) == 1 else None
    return kind if is_dataclass(kind) and callable(kind) else None


def _register(
    app: typer.Typer,
    name: str,
    function: Callable[..., Exit | None],
    wrapper: Callable[..., Exit | None],
    parameters: list[inspect.Parameter],
) -> Callable[..., Exit | None]:
    """Give `wrapper` the signature that Typer shall read, and register it."""
    wrapper.__doc__ = function.__doc__
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app.command(name)(wrapper)
    return function


def common_callback(ctx: typer.Context, **options: Any) -> None:
    """Keep the common flags that stand before the command."""
    version = options.pop("version")
    console: Console = ctx.obj
    flags = Flags(**options)
    ctx.obj = (console, flags)
    if version:
        _show_version(Invocation(console, flags))
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        ctx.fail("No command is given.")


def _show_version(call: Invocation) -> None:
    call.console.show({"version": VERSION, "api": API_RANGE}, lambda: f"svc {VERSION}")


_VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--version", "-V", help="Show the version.")],
)
_CALLBACK_PARAMETERS = [
    inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
    _VERSION,
    *_COMMON.values(),
]
common_callback.__annotations__ = {parameter.name: parameter.annotation for parameter in _CALLBACK_PARAMETERS}
common_callback.__signature__ = inspect.Signature(_CALLBACK_PARAMETERS)  # type: ignore[attr-defined]


def new_app(help_text: str | None = None) -> typer.Typer:
    """A Typer app in the house's style: plain help, no completion options of its own."""
    return typer.Typer(help=help_text, rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


def parse_duration(text: str | None, flag: str = "--timeout") -> float | None:
    """Seconds of `90`, `90s`, `5m`, `1h`, `30d`; None stays None. Raises UsageError naming the flag."""
    if text is None:
        return None
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 10**8:
        raise UsageError(f"{flag} takes a time such as 90s, 5m, 1h or 30d, not {text!r}.")
    return seconds


def model_id(agent: str) -> str:
    """The model id of an agent that is named by it or by the agent's id."""
    if agent == "default":
        return "svc-agent"
    return agent if agent.partition(":")[0] in {"svc-agent", "svc-rag-agent"} else f"svc-agent:{agent}"


def parse_metadata(pairs: list[str]) -> dict[str, str]:
    """`k=v` texts as one object. Raises UsageError."""
    metadata = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"--meta takes KEY=VALUE, not {pair!r}.")
        metadata[key] = value
    return metadata
