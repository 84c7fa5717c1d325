"""`svc ask`: prints an answer, then the numbered sources that it quotes."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from svc_cli.commands.daily.search import head_of, warn_of_emptiness
from svc_cli.commands.invocations import (
    AgentOption,
    BucketsOption,
    Invocation,
    TimeoutOption,
    command,
    model_id,
    new_app,
    suggesting,
)
from svc_cli.console import Console, clean
from svc_cli.errors import SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.render import cut, place_of, width
from svc_daemon.wire import Json, JsonMapping

app = new_app()


#: Maximum width of a quote without a terminal.
PLAIN_COLUMNS = 100
NOT_ALL = "some sentences of the answer are not supported by a source."
SHORTENED = {
    "max_output_tokens": "the model's server ended the answer at its length limit.",
    "content_filter": "the content filter of the model's server removed part of the answer.",
}
NOTHING = "no source supports the answer."


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFlags:
    """The options of `ask`."""

    words: Annotated[list[str], typer.Argument(metavar="QUESTION", help="The question, in plain words.")]
    bucket: BucketsOption = None
    agent: AgentOption = None
    stream: Annotated[
        bool,
        typer.Option(
            "--stream/--no-stream", help="Print the answer while it is written; with --no-stream, only when complete."
        ),
    ] = True
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 3 unless the sources support every sentence of the answer.")
    ] = False
    timeout: TimeoutOption = None


@command(
    app,
    "ask",
    "svc ask how long is parental leave",
    "svc ask who approves leave -b handbook --strict",
    "svc ask who approves leave --json > answer.json && svc cite verify answer.json",
)
def ask(call: Invocation, flags: AskFlags) -> Exit:
    """Ask a question, and get an answer with numbered quotes, each with its page or lines.

    The question needs no quotation marks. Everything after `--` is part of it, even words that begin with a dash.
    """
    call.limit_time(flags.timeout)
    question = " ".join(flags.words)
    if not question.strip():
        raise UsageError("The question is empty.")
    with call.client() as client:
        # An agent has its own buckets, so ignore the setting.
        default = None if flags.agent else call.settings.get("bucket")
        buckets = flags.bucket or ([default] if default else [])
        body: Json = {"model": model_id(flags.agent or "default"), "input": question}
        body |= {"buckets": buckets} if buckets else {}
        with suggesting(client, buckets, flags.agent):
            if flags.stream and call.console.format != "json":
                answer: JsonMapping = _follow(call.console, client.ask_streaming(**body))
            else:
                answer = client.ask(**body)
                parts = [part["text"] for message in answer["output"] for part in message["content"]]
                call.console.show(answer, lambda: wrapped(call.console, "".join(parts)))
        empty = [] if answer["sources"] else warn_of_emptiness(client)
    if call.console.is_text:
        call.console.print(render_sources(call.console, answer["sources"]))
    reason = (answer.get("incomplete_details") or {}).get("reason")
    incomplete = [SHORTENED.get(reason, "the answer is incomplete.")] if reason else []
    for warning in [*(answer.get("warnings") or []), *incomplete, *empty]:
        call.console.warn(str(warning))
    # Older services send neither field.
    unmatched, related = answer.get("unmatched") or [], answer.get("related") or []
    if not answer["grounded"]:
        call.console.warn(NOT_ALL if answer["sources"] else NOTHING)
        for line in render_related(call.console, unmatched, related):
            call.console.message(line)
    elif unmatched:
        call.console.note(f"the quotes don't have {', '.join(unmatched)}.")
    return Exit.FAILED if flags.strict and not answer["grounded"] else Exit.DONE


def render_related(console: Console, unmatched: Sequence[str], related: Sequence[JsonMapping]) -> Iterator[str]:
    """Yield what the sources don't have, and a line for each of the nearest quotes, with the headings above it."""
    lacking = f"nothing about {', '.join(map(clean, unmatched))}" if unmatched else "nothing that answers this"
    if related:
        yield f"{lacking}; the nearest is:"
    elif unmatched:
        yield f"{lacking}."
    columns = max(30, (console.width() or PLAIN_COLUMNS) - 4)
    for source in related:
        headings = [clean(heading) for heading in source["location"]["headings"]]
        place = ", ".join(filter(None, [clean(source["title"] or source["filename"]), place_of(source["location"])]))
        yield f"  {' > '.join([place, *headings])}"
        quote = " ".join(clean(source["quote"]).split())
        yield from (f"    {line}" for line in textwrap.wrap(f"“{quote}”", columns))


def _follow(console: Console, events: Iterator[Json]) -> Json:
    """Print the answer as it arrives, and return it."""
    answer: Json = {}
    wrap = Wrapping(console.width())
    is_begun = False
    try:
        for event in events:
            console.event(event)
            if event["type"] == "response.output_text.delta" and console.is_text:
                is_begun = True
                console.write(wrap.feed(clean_text(event["delta"])))
            answer = event.get("response") or answer
    except SvcError:
        # The error gets a line of its own, below what has arrived.
        console.write(wrap.end() + "\n" if is_begun else "")
        raise
    if console.is_text:
        console.write(wrap.end() + "\n")
    else:
        console.answer(answer)
    return answer


def wrapped(console: Console, text: str) -> str:
    """Return an answer, clean and with lines as wide as the terminal, if there is one."""
    wrap = Wrapping(console.width())
    return wrap.feed(clean_text(text)) + wrap.end()


class Wrapping:
    """Breaks a text into lines while it arrives, between words; without `columns`, it stays as it is."""

    def __init__(self, columns: int | None) -> None:
        # A blank behind the last word of a line takes room, too.
        self._columns = columns and columns - 1
        self._word, self._column = "", 0

    def feed(self, text: str) -> str:
        """Return what can be shown; the last word waits for its end."""
        if self._columns is None:
            return text
        *whole, self._word = re.split(r"(?<=[ \n])", self._word + text)
        return "".join(map(self._place, whole))

    def end(self) -> str:
        """Return the last word."""
        last, self._word = self._word, ""
        return self._place(last)

    def _place(self, word: str) -> str:
        size = width(word.rstrip())
        is_too_long = self._columns is not None and self._column > 0 and self._column + size > self._columns
        self._column = 0 if word.endswith("\n") else width(word) + self._column * (not is_too_long)
        return f"\n{word}" if is_too_long else word


def clean_text(text: str) -> str:
    """Escape control characters, but keep line breaks."""
    return "\n".join(clean(line) for line in text.split("\n"))


def render_sources(console: Console, sources: Sequence[JsonMapping]) -> str:
    """Render number, title and location of each source, with its URL and the quote below."""
    columns = max(30, (console.width() or PLAIN_COLUMNS) - 4)
    indent = "\n    "
    blocks = []
    for source in sources:
        title = clean(source["title"] or source["filename"])
        head = head_of(console, f"[{source['number']}]", title, place_of(source["location"]), source["source_id"])
        quote = " ".join(clean(source["quote"]).split())
        headings = " > ".join(map(clean, source["location"]["headings"]))
        # Quotes that are alike differ in what they are about.
        above = f"\n    {cut(headings, columns)}" if headings and len(sources) > 1 else ""
        lines = textwrap.wrap(f"“{quote}”", columns) if console.width() else [f"“{quote}”"]
        above = f"\n    {clean(source['source_url'])}{above}" if source.get("source_url") else above
        old = [f"may be outdated: {clean(source['stale_reason'])}"] if source.get("stale") else []
        blocks.append("\n" + indent.join([f"{head}{above}", *old, *lines]))
    return "".join(blocks)
