"""`svc cite verify`: checks each quote of an answer against the stored file."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.console import Console
from svc_cli.errors import PathMissing, UsageError
from svc_cli.exits import Exit
from svc_cli.given_files import read_given
from svc_cli.render import place_of, table
from svc_daemon.wire import Json
from svc_daemon.wire.light.parsing import parse_json

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app("Check the quotes of an answer against the stored files.")


HINT = "`svc ask --json` and `svc search --json` print what can be verified."
PROVEN = "proven"
NOT_JUDGED, CHANGED = "not_judged", "changed"
#: The fields with the offsets at which a quote starts and ends in its source's text.
PLACE_FIELDS = ("char_start", "char_end")
#: What is sent of a location.
SENT_FIELDS = (*PLACE_FIELDS, "page", "line_start", "line_end", "headings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One quote of an answer, with its location."""

    number: int
    source_id: str
    title: str
    quote: str
    location: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of checking one quote."""

    number: int
    source_id: str
    title: str
    place: str
    quote: str
    #: `proven`, `not_found`, `elsewhere`, `bytes_changed`, `bytes_lost`, `unreadable` or `source_gone`.
    result: str
    message: str
    #: Whether the answer's sentences say what the quote says: `supported`, `changed` or `not_judged`.
    sentence: str = NOT_JUDGED
    #: What they changed, such as a number.
    changes: tuple[str, ...] = ()


@app.callback()
def group() -> None:
    """Check the quotes of an answer against the stored files."""
    # Without a callback, Typer would replace a group of only one command with that command.


@command(
    app,
    "verify",
    "svc ask who approves leave --json > answer.json && svc cite verify answer.json",
    "svc search parental leave --json | svc cite verify -",
)
def verify(
    call: Invocation,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A JSON file with an answer or search results, or - for standard input."),
    ],
) -> Exit:
    """Check that each quote is in the stored file, at the location that the answer gives, and that the answer keeps it.

    Exits with code 3 if a quote is not there, if a sentence that cites it denies it or changes a number or name, or if
    a mark of the answer leads to no quote.
    """
    try:
        document = parse_json(sys.stdin.read() if file == "-" else read_given(Path(file)).decode("utf-8"))
    except FileNotFoundError as error:
        raise PathMissing(f"{file} does not exist.") from error
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}.", code="svc_file_refused") from error
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}", hint=HINT) from error
    quotes = read_quotes(document, file)
    with call.client() as client:
        proofs, unknown = judge(client, read_text(document), quotes)
    failed = sum(proof.result != PROVEN for proof in proofs)
    changed = sum(proof.sentence == CHANGED for proof in proofs)
    code = Exit.FAILED if failed or changed or unknown else Exit.DONE
    counts = {PROVEN: len(proofs) - failed, "failed": failed, CHANGED: changed}
    value = {
        "v": 1,
        "type": "cite.proofs",
        "items": [asdict(proof) for proof in proofs],
        "unknown_marks": unknown,
        "counts": counts,
        "exit_code": int(code),
    }
    call.console.show(value, lambda: render_proofs(call.console, proofs, unknown))
    if not proofs:
        call.console.warn(f"{file} has no quotes: there is nothing to prove.")
    return code


def render_proofs(console: Console, proofs: list[Proof], unknown: Sequence[int]) -> str:
    """Render a row for each quote, the counts, and the marks that lead to no quote."""
    heads = ("", "source", "place", "result", "")
    rows = [
        [f"[{each.number}]", each.title, each.place, each.result.replace("_", " "), each.message] for each in proofs
    ]
    lines = [table(console, heads, rows)] if rows else []
    lines.append(f"{sum(proof.result == PROVEN for proof in proofs)} of {len(proofs)} quotes proven.")
    if changed := sum(proof.sentence == CHANGED for proof in proofs):
        lines.append(f"{changed} of {len(proofs)} quotes are changed by a sentence that cites them.")
    if unknown:
        lines.append(f"No quote has the number of these marks: {', '.join(f'[{each}]' for each in unknown)}.")
    return "\n".join(lines)


def read_quotes(document: Any, name: str) -> list[Quote]:
    """Read the quotes from an answer of the API or a page of search results. Raises UsageError for anything else."""
    listed = document.get("sources", document.get("data")) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise UsageError(
            f"{name} is not an answer: it has neither `sources` nor `data`.",
            hint=HINT,
        )
    quotes = []
    for at, entry in enumerate(listed, 1):
        fields = entry if isinstance(entry, dict) else {}
        source_id, location, quote = (
            fields.get("source_id"),
            fields.get("location"),
            fields.get("quote", fields.get("text")),
        )
        place = location if isinstance(location, dict) else {}
        has_place = all(isinstance(place.get(end), int) for end in PLACE_FIELDS)
        if not isinstance(source_id, str) or not isinstance(quote, str) or not has_place:
            raise UsageError(f"{name}: source {at} lacks a source_id, a quote or its character positions.")
        title = str(fields.get("title") or fields.get("filename") or source_id)
        # An answer numbers its quotes as its marks do.
        number = fields.get("number")
        number = number if isinstance(number, int) else at
        quotes.append(Quote(number=number, source_id=source_id, title=title, quote=quote, location=place))
    return quotes


def read_text(document: Any) -> str:
    """Return the text of an answer of the API, of either route; empty for anything else, such as search results."""
    try:
        messages = [choice["message"]["content"] for choice in document.get("choices", ())]
        parts = [part["text"] for message in document.get("output", ()) for part in message["content"]]
        return "".join([*messages, *parts])
    except (AttributeError, KeyError, TypeError):
        return ""


def judge(client: "Client", text: str, quotes: Sequence[Quote]) -> tuple[list[Proof], list[int]]:
    """Have the service prove the quotes, and compare the sentences of the text with those that they cite.

    Also returns the numbers in marks of the text that no quote has.
    """
    if not quotes and not text:
        return [], []
    sent: list[Any] = []
    for quote in quotes:
        place = {name: quote.location[name] for name in SENT_FIELDS if quote.location.get(name) is not None}
        named = {"number": quote.number, "title": quote.title, "source_id": quote.source_id}
        sent.append({**named, "quote": quote.quote, "location": place})
    judged = client.verify_citations(text, sent)
    proofs = []
    for quote, each in zip(quotes, judged["data"], strict=True):
        changes, message = tuple(each["changes"]), each["reason"] or ""
        proofs.append(
            Proof(
                number=quote.number,
                source_id=quote.source_id,
                title=quote.title,
                place=place_of(quote.location),
                quote=quote.quote,
                result=each["proof"] or "",
                message=f"quote proven, sentence not: {'; '.join(changes)}" if changes else message,
                sentence=each["result"],
                changes=changes,
            )
        )
    # An older service doesn't look for them.
    return proofs, judged.get("unknown_marks", [])
