"""`svc ask`: an answer as it is told, then the numbered sources that it rests on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from svc_cli.commands.options import AgentOption, Invocation, command, model_id, new_app
from svc_cli.commands.search import warn_of_emptiness
from svc_cli.console import Console, clean
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.render import cut, place_of

app = new_app()

Json = dict[str, Any]

#: Columns of a quote where there is no terminal to measure.
PLAIN_COLUMNS = 100
NOT_ALL = "not every sentence of the answer rests on a source."
SHORTENED = {
    "max_output_tokens": "the model's server cut the answer off: it was not allowed to be longer.",
    "content_filter": "the model's server took part of the answer out: its content filter.",
}
NOTHING = "the answer rests on no source."


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFlags:
    """What is asked, and of whom."""

    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question in plain words.")]
    bucket: Annotated[
        list[str] | None,
        typer.Option("--bucket", "-b", metavar="BUCKET", help="Only from here; may be repeated.  [SVC_BUCKET]"),
    ] = None
    agent: AgentOption = None
    stream: Annotated[bool, typer.Option("--stream/--no-stream", help="Print the answer as it is told.")] = True
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 where no source supports the answer.")] = False


@command(app, "ask")
def ask(call: Invocation, flags: AskFlags) -> Exit:
    """Ask a question; the answer rests on numbered quotes, each with its page or lines."""
    if not flags.question.strip():
        raise UsageError("The question is empty.")
    with call.client() as client:
        body = _body(call, flags)
        if flags.stream and call.console.format != "json":
            answer = _follow(call.console, client.ask_streaming(body))
        else:
            answer = client.ask(body)
            call.console.show(answer, lambda: clean_text(text_of(answer)))
        empty = [] if answer["sources"] else warn_of_emptiness(client)
    if call.console.is_text:
        call.console.print(render_sources(call.console, answer["sources"]))
    for warning in [*(answer.get("warnings") or []), *_shortened(answer), *empty]:
        call.console.warn(str(warning))
    if not answer["grounded"]:
        call.console.warn(NOT_ALL if answer["sources"] else NOTHING)
    return Exit.FAILED if flags.strict and not answer["grounded"] else Exit.DONE


def _body(call: Invocation, flags: AskFlags) -> Json:
    # An agent knows its buckets; the usual bucket is for questions that go to no agent in particular.
    default = None if flags.agent else call.settings.get("bucket")
    buckets = flags.bucket or ([default] if default else [])
    model = model_id(flags.agent or "default")
    return {"model": model, "input": flags.question, **({"buckets": buckets} if buckets else {})}


def _follow(console: Console, events: Iterator[Json]) -> Json:
    """Print the answer as it comes; gives it whole."""
    answer: Json = {}
    for event in events:
        console.event(event)
        if event["type"] == "response.output_text.delta" and console.is_text:
            console.write(clean_text(event["delta"]))
        answer = event.get("response") or answer
    if console.is_text:
        console.write("\n")
    else:
        console.answer(answer)
    return answer


def _shortened(answer: Json) -> list[str]:
    """Why the model did not come to its end."""
    reason = (answer.get("incomplete_details") or {}).get("reason")
    return [SHORTENED.get(reason, "the answer is incomplete.")] if reason else []


def text_of(answer: Json) -> str:
    """The words of an answer as `/v1/responses` gives it."""
    return "".join(part["text"] for message in answer["output"] for part in message["content"])


def clean_text(text: str) -> str:
    """Text from elsewhere on several lines."""
    return "\n".join(clean(line) for line in text.split("\n"))


def render_sources(console: Console, sources: list[Json]) -> str:
    """One block for each: number, title and place, and the quote under it."""
    columns = max(30, (console.width() or PLAIN_COLUMNS) - 4)
    return "".join(f"\n{_source(console, source, columns)}" for source in sources)


def _source(console: Console, source: Json, columns: int) -> str:
    title = console.paint(clean(source["title"] or source["filename"]), "bold")
    place = place_of(source["location"])
    head = f"[{source['number']}] {title}{f', {place}' if place else ''}"
    quote = " ".join(clean(source["quote"]).split())
    return f"{head}  {console.paint(source['source_id'], 'dim')}\n    {cut(f'“{quote}”', columns)}"
