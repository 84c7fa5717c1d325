"""The flags that every command takes."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import typer

ProgressStyle = Literal["auto", "bar", "plain", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The common flags, as Typer declares options."""

    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON value.")] = False
    ndjson: Annotated[bool, typer.Option("--ndjson", help="Print each result as it arrives, as a line of JSON.")] = (
        False
    )
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="List every file and source in the output, instead of grouping similar ones."
        ),
    ] = False
    progress: Annotated[
        ProgressStyle | None,
        typer.Option(
            help="Show progress as a bar, as plain lines, or not at all (none). Auto means a bar on a "
            "terminal, otherwise lines.  [default: auto]  [env: SVC_PROGRESS]"
        ),
    ] = None
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Connect to the service at this URL.  [env: SVC_BASE_URL]")
    ] = None
    no_autostart: Annotated[
        bool, typer.Option("--no-autostart", help="Fail if the local daemon is not running, instead of starting it.")
    ] = False
    no_input: Annotated[bool, typer.Option("--no-input", help="Never ask a question, even on a terminal.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when a command fails.")] = False

    def over(self, other: "Flags | None") -> "Flags":
        """Return these flags. Flags that are not set come from `other`, the flags given before the command."""
        if other is None:
            return self
        return Flags(**{each.name: getattr(self, each.name) or getattr(other, each.name) for each in fields(Flags)})
