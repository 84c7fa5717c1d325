"""`svc cite verify`: proves each quote of an answer on the stored bytes, which the daemon opens and reads again."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import typer

from svc_cli.commands.options import Invocation, command, new_app
from svc_cli.errors import ApiError, PathMissing, UsageError
from svc_cli.exits import Exit
from svc_cli.render import place_of, table
from svc_daemon.wire import Json

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app("Check the quotes of an answer against the stored files.")


PROVEN = "proven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One quote of an answer, and where it is said to stand."""

    number: int
    source_id: str
    title: str
    quote: str
    location: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What became of one quote."""

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
    # With one command alone Typer would make no group.


@command(
    app,
    "verify",
    "svc ask who approves leave --json > answer.json && svc cite verify answer.json",
    "svc search parental leave --json | svc cite verify -",
)
def verify(
    call: Invocation,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The JSON of an answer or of search results, or - for standard input.")
    ],
) -> Exit:
    """Read the stored file behind each quote again, and check that the quote is where the answer says it is.

    Exits with code 3 if one is not.
    """
    quotes = read_quotes(_read(file), file)
    with call.client() as client:
        proofs = list(_prove_all(client, quotes))
    failed = sum(proof.result != PROVEN for proof in proofs)
    code = Exit.FAILED if failed else Exit.DONE
    items = [asdict(proof) for proof in proofs]
    counts = {PROVEN: len(proofs) - failed, "failed": failed}
    value = {"v": 1, "type": "cite.proofs", "items": items, "counts": counts, "exit_code": int(code)}
    call.console.show(value, lambda: _render(call, proofs, failed))
    if not proofs:
        call.console.warn(f"{file} has no quotes: there is nothing to prove.")
    return code


def read_quotes(document: Any, name: str) -> list[Quote]:
    """The quotes in an answer of `/v1/responses` or `/v1/chat/completions`, or in a page of search results.

    Raises UsageError for anything else.
    """
    listed = document.get("sources", document.get("data")) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise UsageError(
            f"{name} is no answer: it has neither `sources` nor `data`.",
            hint="`svc ask --json` and `svc search --json` print what can be verified.",
        )
    return [_quote(number, entry, name) for number, entry in enumerate(listed, 1)]


def _quote(number: int, entry: Any, name: str) -> Quote:
    fields = entry if isinstance(entry, dict) else {}
    source_id, location = fields.get("source_id"), fields.get("location")
    quote = fields.get("quote", fields.get("text"))
    if not isinstance(source_id, str) or not isinstance(quote, str) or not _is_place(location):
        raise UsageError(f"{name}: source {number} lacks a source_id, a quote or its place in characters.")
    title = str(fields.get("title") or fields.get("filename") or source_id)
    return Quote(number=number, source_id=source_id, title=title, quote=quote, location=location)


def _is_place(location: Any) -> TypeGuard[Json]:
    return isinstance(location, dict) and all(isinstance(location.get(end), int) for end in ("char_start", "char_end"))


def _read(file: str) -> Any:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        return json.loads(text)
    except FileNotFoundError as error:
        raise PathMissing(f"{file} does not exist.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no JSON: {error}") from error


def _prove_all(client: "Client", quotes: list[Quote]) -> Iterator[Proof]:
    """Each quote against its source, which is read once."""
    readings: dict[str, Json | None] = {}
    for quote in quotes:
        if quote.source_id not in readings:
            readings[quote.source_id] = _reread(client, quote.source_id)
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


def _reread(client: "Client", source_id: str) -> Json | None:
    try:
        return client.read_source_again(source_id)
    except ApiError as error:
        if error.code == "source_not_found":
            return None
        raise


def prove(quote: Quote, reading: Json | None) -> tuple[str, str]:
    """The result for one quote, and a sentence about it; `reading` is None for a source that is gone."""
    if reading is None:
        return "source_gone", "the source was deleted or replaced"
    return _fault_of(reading["content"]) or _look(quote, reading["text"]) or _look_around(quote, reading["chunks"])


def _fault_of(content: Json) -> tuple[str, str] | None:
    """Why nothing can be proven on these bytes."""
    if content["sha256"] is None:
        return "bytes_lost", "the stored bytes are gone"
    if not content["unchanged"]:
        return "bytes_changed", "the stored bytes are not those that were uploaded"
    return ("unreadable", content["error"]["message"]) if content["error"] else None


def _look(quote: Quote, text: str) -> tuple[str, str] | None:
    """Why the words don't stand at their place in the text."""
    if not quote.quote or quote.quote not in text:
        return "not_found", "these words don't stand in the source"
    start, end = quote.location["char_start"], quote.location["char_end"]
    if start < 0 or text[start:end] != quote.quote:
        return "elsewhere", "these words stand in the source, but not at this place"
    return None


def _look_around(quote: Quote, chunks: list[Json]) -> tuple[str, str]:
    """Whether page and lines are those of what stands there."""
    said = quote.location
    places = [chunk["location"] for chunk in chunks]
    around = [at for at in places if at["char_start"] < said["char_end"] and said["char_start"] < at["char_end"]]
    pages = {at["page"] for at in around}
    if said.get("page") not in pages:
        told = ", ".join(str(page) for page in sorted(page for page in pages if page))
        return "elsewhere", f"these words stand on page {told}" if told else "the source has no pages"
    if not _has_lines(around, said.get("line_start"), said.get("line_end")):
        return "elsewhere", "these words stand on other lines"
    return PROVEN, "stands in the stored bytes, word for word"


def _has_lines(around: list[Json], first: Any, last: Any) -> bool:
    """Whether the lines may be those of a quote in these pieces; None is what a format without lines has.

    The bucket may have been cut otherwise since: then the quote's piece was a part of these, or had them within it.
    """
    lines: list[tuple[int, int]] = [(at["line_start"], at["line_end"]) for at in around if at["line_start"] is not None]
    if not isinstance(first, int) or not isinstance(last, int) or not lines:
        return first is None and last is None and not lines
    starts, ends = zip(*lines, strict=True)
    return bool(min(starts) <= first <= last <= max(ends) or first <= min(starts) <= max(ends) <= last)


def _render(call: Invocation, proofs: list[Proof], failed: int) -> str:
    rows = [
        [f"[{each.number}]", each.title, each.place, each.result.replace("_", " "), each.message] for each in proofs
    ]
    summary = f"{len(proofs) - failed} of {len(proofs)} quotes proven."
    return f"{table(call.console, ('', 'source', 'place', 'result', ''), rows)}\n{summary}" if rows else summary
