"""Registers commands: adds the common flags, and calls each command function with an Invocation.

A command is a function `f(call, …own options…)`. `call` has the values of the common flags.
"""

import gc
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from svc_cli import interrupts
from svc_cli.commands.help_pages import HelpfulCommand, HelpfulGroup
from svc_cli.commands.parameters import Flags, ProgressStyle
from svc_cli.console import Console, clean, is_terminal
from svc_cli.deadlines import Deadline
from svc_cli.errors import ApiError, Declined, SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.settings import NOT_TRUSTED, CliSettings
from svc_daemon.wire.light.field_errors import is_number
from svc_daemon.wire.light.versions import API_RANGE, VERSION

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.client.types import RefreshChoiceDict
    from svc_cli.daemon.connections import ServiceConnection
    from svc_cli.progress import Progress

BucketOption = Annotated[
    str | None, typer.Option("--bucket", "-b", metavar="BUCKET", help="The bucket, by slug or id.  [env: SVC_BUCKET]")
]
BucketsOption = Annotated[
    list[str] | None,
    typer.Option("--bucket", "-b", metavar="BUCKET", help="Search only this bucket; repeatable.  [env: SVC_BUCKET]"),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent", metavar="AGENT", help="Use the settings of this agent, given as its id or as svc-agent:ID."
    ),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option("--timeout", metavar="TIME", help="End the whole command after this time, such as 90s, 5m or 1h."),
]
SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The source, by id, id prefix, title or file name.")
]
SourceBucketOption = Annotated[
    str | None,
    typer.Option("--bucket", "-b", metavar="BUCKET", help="Look for SOURCE only in this bucket.  [env: SVC_BUCKET]"),
]
#: How a command that changes something takes a source. The bucket of the settings doesn't count there.
ImagesOption = Annotated[
    bool,
    typer.Option("--images", help="Read pictures in folders, too, if the service recognises text (extra `ocr`)."),
]
_EXACT_SOURCE = typer.Argument(
    metavar="SOURCE",
    help="The source, by id, by the beginning of its id (at least 8 characters after src_), or with -b by its exact "
    "title.",
)
ExactSourceArgument = Annotated[str, _EXACT_SOURCE]
#: The same where a whole bucket can be given instead.
ExactSourceOrNone = Annotated[str | None, _EXACT_SOURCE]
ExactSourceBucketOption = Annotated[
    str | None, typer.Option("--bucket", "-b", metavar="BUCKET", help="Look for SOURCE only in this bucket.")
]
ModeOption = Annotated[
    Literal["hybrid", "keyword", "semantic"] | None,
    typer.Option(help="Match keywords (keyword), the meaning (semantic), or both (hybrid).  [default: hybrid]"),
]
WaitOption = Annotated[
    Literal["ready", "accepted"] | None,
    typer.Option(
        help="Wait until all files are searchable (ready), or only until they are stored (accepted).  [default: ready]"
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", help="Send up to N files or batches at the same time.  [default: 4]"),
]
EveryOption = Annotated[
    str | None,
    typer.Option(
        "--every",
        metavar="TIME",
        help="Let the service fetch the URL again after this time, such as 15m, 12h or 7d, again and again, "
        "or never again (never).",
    ),
]
OnGoneOption = Annotated[
    Literal["report", "delete"] | None,
    typer.Option(
        "--on-gone",
        help="If the URL no longer exists, only say so (report), or delete the source (delete).  [default: report]",
    ),
]
NoCreateOption = Annotated[
    bool, typer.Option("--no-create", help="Fail if the bucket does not exist, instead of creating it.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with code 3 if any file was skipped.")]


_COMMON = {
    name: parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for name, parameter in inspect.signature(Flags, eval_str=True).parameters.items()
}


@contextmanager
def accounted(count: int) -> "Iterator[dict[str, bool]]":
    """Yield a dictionary that records whether each of `count` objects was deleted. An error of the block says it."""
    outcomes: dict[str, bool] = {}
    try:
        yield outcomes
    except Declined:
        raise
    except SvcError as error:
        deleted = [name for name, is_deleted in outcomes.items() if is_deleted]
        left = [name for name, is_deleted in outcomes.items() if not is_deleted]
        error.details |= {"deleted": deleted, "not_deleted": left}
        if deleted and left:
            error.message += f" Deleted before: {', '.join(deleted)}. Not deleted: {', '.join(left)}."
        elif count > 1:
            error.message += " Nothing was deleted."
        raise


class Invocation:
    """One run of a command."""

    def __init__(self, console: Console, flags: Flags, root: Any = None) -> None:
        self.console = console
        self.flags = flags
        #: The `svc` command, as built by Typer.
        self.root = root
        #: The end of `--timeout`.
        self.deadline = Deadline()
        console.format = "ndjson" if flags.ndjson else "json" if flags.json else "text"
        console.debug = flags.debug
        console.is_quiet = flags.quiet
        console.is_verbose = flags.verbose

    @cached_property
    def settings(self) -> CliSettings:
        """Return the settings of the current folder."""
        return CliSettings.load(os.environ, Path.cwd())

    @contextmanager
    def connected(self, *, may_start: bool = True) -> "Iterator[tuple[Client, ServiceConnection]]":
        """Connect to the service, and close the client at the end of the block.

        If the local daemon isn't running, start it, unless `may_start` is false or --no-autostart is given.
        """
        # Delay Ctrl-C: during an import, Python may lose a KeyboardInterrupt.
        with interrupts.shielded():
            from svc_cli.daemon.connections import connected

        autostart = may_start and not self.flags.no_autostart
        with (
            connected(
                self.settings, self.console, base_url=self.flags.base_url, autostart=autostart, deadline=self.deadline
            ) as both,
            suggesting(both[0]),
        ):
            yield both

    @contextmanager
    def client(self, *, may_start: bool = True) -> "Iterator[Client]":
        """Like `connected`, but yield only the client."""
        with self.connected(may_start=may_start) as (client, _):
            yield client

    def limit_time(self, timeout: str | None) -> float | None:
        """Begin the time of `--timeout`, in which all of the command has to end, and return its seconds."""
        self.deadline = Deadline(parse_duration(timeout))
        return self.deadline.timeout_s

    def progress(self) -> "Progress":
        """Create a progress display of the style that the flags or settings select."""
        from svc_cli.progress import progress_for

        style: ProgressStyle = "none" if self.flags.quiet else self.settings.get("progress", self.flags.progress)
        return progress_for(self.console, style)

    def bucket(self, flag: str | None, changed_by: str | None = None) -> str:
        """Return the bucket of the flag or the settings. Raises UsageError if there is none.

        If documents in it are `changed_by` an option, a project's file that is not trusted can't choose it.
        """
        found: str | None = self.settings.get("bucket", flag)
        if not found:
            raise UsageError("No bucket is named.", hint="give one: -b BUCKET, SVC_BUCKET, or `bucket` in svc.toml.")
        if changed_by and self.settings.is_strangers("bucket", flag):
            raise UsageError(
                f"The bucket {found} is named only by {self.settings.project_file}, which is not trusted; "
                "nothing was done.",
                code=NOT_TRUSTED,
                hint=f"{changed_by} changes documents: give the bucket with -b, or trust the file: `svc config trust`.",
            )
        return found

    def may_ask(self) -> bool:
        """Whether questions can be asked on a terminal."""
        return is_terminal(sys.stdin) and not self.flags.no_input and not self.settings.is_on("SVC_NO_INPUT")

    def confirm(self, question: str) -> None:
        """Ask for confirmation. Raises UsageError if that is not possible, and Declined for any answer but yes."""
        if not self.may_ask() or not is_terminal(self.console.err):
            raise UsageError(f"This needs a confirmation: {question}", hint="add --force; nobody can be asked here.")
        self.console.err.write(f"{clean(question)} [y/N] ")
        self.console.err.flush()
        if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
            raise Declined("Nothing was changed.")


def command(
    app: typer.Typer, name: str, *examples: str
) -> Callable[[Callable[..., Exit | None]], Callable[..., Exit | None]]:
    """Register a function as a command of `app`, with the common flags.

    Its options are the function's parameters, or the fields of its only parameter if that is a dataclass. The examples
    are shown at the end of the help.
    """

    def register(function: Callable[..., Exit | None]) -> Callable[..., Exit | None]:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        kind: Any = parameters[0].annotation if len(parameters) == 1 else None
        record: Callable[..., Any] | None = kind if is_dataclass(kind) and callable(kind) else None
        own = list(inspect.signature(record, eval_str=True).parameters.values()) if record else parameters

        def wrapper(ctx: typer.Context, **options: Any) -> Exit | None:
            given = Flags(**{each: options.pop(each) for each in _COMMON})
            console, before = ctx.obj
            call = Invocation(console, given.over(before), ctx.find_root().command)
            interrupts.listen()
            # `main` has disabled the garbage collector. `freeze` makes it skip the objects of the imported modules.
            gc.freeze()
            gc.enable()
            return function(call, record(**options)) if record else function(call, **options)

        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        parameters = [context, *keywords, *_COMMON.values()]
        wrapper.__doc__ = function.__doc__
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app.command(name, cls=HelpfulCommand, epilog="\n".join(examples) or None)(wrapper)
        return function

    return register


def common_callback(ctx: typer.Context, **options: Any) -> None:
    """Store the common flags given before the command, and handle `--version`."""
    version = options.pop("version")
    console: Console = ctx.obj
    flags = Flags(**options)
    ctx.obj = (console, flags)
    if version:
        shown = {"version": VERSION, "api": API_RANGE}
        Invocation(console, flags).console.show(shown, lambda: f"svc {VERSION}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        ctx.fail("No command is given.")


_VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")],
)
_CALLBACK_PARAMETERS = [
    inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
    _VERSION,
    *_COMMON.values(),
]
common_callback.__annotations__ = {parameter.name: parameter.annotation for parameter in _CALLBACK_PARAMETERS}
common_callback.__signature__ = inspect.Signature(_CALLBACK_PARAMETERS)  # type: ignore[attr-defined]


def new_app(help_text: str | None = None, *examples: str) -> typer.Typer:
    """Create a Typer app with plain-text help and without Typer's completion options."""
    return typer.Typer(
        help=help_text,
        epilog="\n".join(examples) or None,
        cls=HelpfulGroup,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
    )


@contextmanager
def suggesting(client: "Client", buckets: Sequence[str] = (), agent: str | None = None) -> "Iterator[None]":
    """If an error of the block says that a bucket or an agent does not exist, suggest the most similar name.

    `buckets` and `agent` are what was asked for: errors of OpenAI's routes don't name what is missing.
    """
    try:
        yield
    except ApiError as error:
        # If they can't be listed, suggest nothing.
        with suppress(SvcError):
            if error.code == "bucket_not_found" and (asked := [*buckets, *filter(None, [error.details.get("bucket")])]):
                listed = client.buckets(include_archived=True, members=False)["buckets"]
                known = {bucket["id"] for bucket in listed}
                suggest(
                    error, [name for name in asked if name not in known], {row["slug"]: row["slug"] for row in listed}
                )
                shelved = (row["slug"] for row in listed if row["status"] == "archived")
                if name := next((each for each in shelved if each in asked), None):
                    error.hint = f"`svc bucket archive --restore {name}` brings it back."
            elif error.code == "agent_not_found" and (missing := error.details.get("agent_id", agent)):
                rows = client.agents()["agents"]
                suggest(
                    error,
                    [missing],
                    {row[field].lower(): row["agent_id"] for field in ("name", "agent_id") for row in rows},
                )
        raise


def suggest(error: SvcError, asked: Sequence[str], names: Mapping[str, str]) -> None:
    """Add to the error's hint what the first of the asked names is most similar to that isn't one of `names`."""
    missing = next((name for name in asked if name not in names), "")
    if close := get_close_matches(missing.lower(), names, n=1):
        error.hint = f"did you mean {names[close[0]]!r}? {error.hint or ''}".rstrip()


def parse_duration(text: str | None, flag: str = "--timeout") -> float | None:
    """Convert `90`, `90s`, `5m`, `1h` or `30d` to seconds. Raises UsageError, which names the flag."""
    if text is None:
        return None
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    seconds = float(number) * units[unit] if is_number(number) else -1.0
    if not 0 <= seconds < 10**8:
        raise UsageError(f"{flag} takes a time such as 90s, 5m, 1h or 30d, not {text!r}.")
    return seconds


def parse_refresh(every: str | None, on_gone: str | None) -> "RefreshChoiceDict | None":
    """Convert the values of --every and --on-gone to a schedule. Raises UsageError."""
    if every is None:
        if on_gone is not None:
            raise UsageError("--on-gone goes with --every.", hint="add --every, such as --every 1d.")
        return None
    seconds = 0 if every == "never" else int(parse_duration(every, "--every") or 0)
    if not seconds and every != "never":
        raise UsageError(f"--every takes a time such as 15m, 12h or 7d, or never, not {every!r}.")
    choice: RefreshChoiceDict = {"every_seconds": seconds}
    if on_gone is not None:
        choice["on_gone"] = "delete" if on_gone == "delete" else "report"
    return choice


def model_id(agent: str) -> str:
    """Return an agent's id as a `model`: `svc-agent:ID`. Accepts both forms."""
    if agent == "default":
        return "svc-agent"
    return agent if agent.partition(":")[0] in {"svc-agent", "svc-rag-agent"} else f"svc-agent:{agent}"


def parse_metadata(pairs: list[str], option: str = "--meta") -> dict[str, str]:
    """Convert the `K=V` strings of an option to a dictionary. Raises UsageError."""
    metadata = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} takes K=V, not {pair!r}.")
        metadata[key] = value
    return metadata
