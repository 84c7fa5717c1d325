"""`svc cite verify`: checks each quote of an answer against the stored file."""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.errors import ApiError, PathMissing, UsageError
from svc_cli.exits import Exit
from svc_cli.given_files import read_given
from svc_cli.render import place_of, table
from svc_daemon.wire import Json, JsonMapping
from svc_daemon.wire.parsing import parse_json

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app("Check the quotes of an answer against the stored files.")


PROVEN = "proven"
#: The fields with the offsets at which a quote starts and ends in its source's text.
PLACE_FIELDS = ("char_start", "char_end")


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
    """Check that each quote is in the stored file, at the location that the answer gives.

    Exits with code 3 if a quote is not there.
    """
    try:
        document = parse_json(sys.stdin.read() if file == "-" else read_given(Path(file)).decode("utf-8"))
    except FileNotFoundError as error:
        raise PathMissing(f"{file} does not exist.") from error
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}.", code="svc_file_refused") from error
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}") from error
    quotes = read_quotes(document, file)
    with call.client() as client:
        proofs = list(_prove_all(client, quotes))
    failed = sum(proof.result != PROVEN for proof in proofs)
    code = Exit.FAILED if failed else Exit.DONE
    items = [asdict(proof) for proof in proofs]
    counts = {PROVEN: len(proofs) - failed, "failed": failed}
    value = {"v": 1, "type": "cite.proofs", "items": items, "counts": counts, "exit_code": int(code)}
    heads = ("", "source", "place", "result", "")
    rows = [
        [f"[{each.number}]", each.title, each.place, each.result.replace("_", " "), each.message] for each in proofs
    ]
    lines = [table(call.console, heads, rows)] if rows else []
    lines.append(f"{len(proofs) - failed} of {len(proofs)} quotes proven.")
    call.console.show(value, lambda: "\n".join(lines))
    if not proofs:
        call.console.warn(f"{file} has no quotes: there is nothing to prove.")
    return code


def read_quotes(document: Any, name: str) -> list[Quote]:
    """Read the quotes from an answer of the API or a page of search results. Raises UsageError for anything else."""
    listed = document.get("sources", document.get("data")) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise UsageError(
            f"{name} is not an answer: it has neither `sources` nor `data`.",
            hint="`svc ask --json` and `svc search --json` print what can be verified.",
        )
    quotes = []
    for number, entry in enumerate(listed, 1):
        fields = entry if isinstance(entry, dict) else {}
        source_id, location, quote = (
            fields.get("source_id"),
            fields.get("location"),
            fields.get("quote", fields.get("text")),
        )
        place = location if isinstance(location, dict) else {}
        has_place = all(isinstance(place.get(end), int) for end in PLACE_FIELDS)
        if not isinstance(source_id, str) or not isinstance(quote, str) or not has_place:
            raise UsageError(f"{name}: source {number} lacks a source_id, a quote or its character positions.")
        title = str(fields.get("title") or fields.get("filename") or source_id)
        quotes.append(Quote(number=number, source_id=source_id, title=title, quote=quote, location=place))
    return quotes


def _prove_all(client: "Client", quotes: list[Quote]) -> Iterator[Proof]:
    """Check each quote; each source is read only once."""
    readings: dict[str, JsonMapping | None] = {}
    for quote in quotes:
        if quote.source_id not in readings:
            try:
                readings[quote.source_id] = client.read_source_again(quote.source_id)
            except ApiError as error:
                if error.code != "source_not_found":
                    raise
                readings[quote.source_id] = None
        result, message = prove(quote, readings[quote.source_id])
        yield Proof(
            number=quote.number,
            source_id=quote.source_id,
            title=quote.title,
            place=place_of(quote.location),
            quote=quote.quote,
            result=result,
            message=message,
        )


def prove(quote: Quote, reading: JsonMapping | None) -> tuple[str, str]:
    """Return the result for one quote, and a sentence that explains it. `reading` is None if the source was deleted."""
    if reading is None:
        return "source_gone", "the source was deleted or replaced"
    content = reading["content"]
    if content["sha256"] is None:
        return "bytes_lost", "the stored bytes are gone"
    if not content["unchanged"]:
        return "bytes_changed", "the stored bytes are not those that were uploaded"
    if content["error"]:
        return "unreadable", content["error"]["message"]
    return _find_quote(quote, reading["text"], reading["chunks"])


def _find_quote(quote: Quote, text: str, chunks: list[JsonMapping]) -> tuple[str, str]:
    """Check that the quote is at its location in the text, and on its page and lines."""
    place = quote.location
    if not quote.quote or quote.quote not in text:
        return "not_found", "the source does not contain these words"
    if place["char_start"] < 0 or text[place["char_start"] : place["char_end"]] != quote.quote:
        return "elsewhere", "the source contains these words, but not at this place"
    places = [chunk["location"] for chunk in chunks]
    around = [at for at in places if at["char_start"] < place["char_end"] and place["char_start"] < at["char_end"]]
    pages = {at["page"] for at in around}
    if place.get("page") not in pages:
        listed = ", ".join(str(page) for page in sorted(page for page in pages if page))
        return "elsewhere", f"these words are on page {listed}" if listed else "the source has no pages"
    if not _has_lines(around, place.get("line_start"), place.get("line_end")):
        return "elsewhere", "these words are on other lines"
    return PROVEN, "in the stored bytes, word for word"


def _has_lines(around: list[JsonMapping], first: Any, last: Any) -> bool:
    """Whether the quote's lines fit those of the passages around it.

    Line numbers are None for formats without lines. Passages may have been split differently since the answer, so
    either range may contain the other.
    """
    lines: list[tuple[int, int]] = [(at["line_start"], at["line_end"]) for at in around if at["line_start"] is not None]
    if not isinstance(first, int) or not isinstance(last, int) or not lines:
        return first is None and last is None and not lines
    starts, ends = zip(*lines, strict=True)
    return bool(min(starts) <= first <= last <= max(ends) or first <= min(starts) <= max(ends) <= last)
