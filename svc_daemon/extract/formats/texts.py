"""Plain text, source code, JSON and CSV, with the line numbers of the file."""

import csv
import re

from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.media_types import text_encoding
from svc_daemon.extract import documents
from svc_daemon.extract.builders import HEADING_CHARACTERS, LineDocument
from svc_daemon.extract.formats import Given

_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))")
_PLAIN = {'"': '"', "\\": "\\", "/": "/"}
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"[-+]?[\d.,:/ %]+")


def decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode text, with a warning if the encoding was guessed. Raises ExtractionFailed for binary data."""
    codec = text_encoding(data)
    if codec is None:
        raise documents.unsupported("The file is binary, not text.")
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        text = data.decode(codec, "replace")
        places = text.count("\ufffd")
        return text, (f"{places} places of the text are not valid {codec.removesuffix('-sig')} and were replaced.",)
    return text, ("The text is not UTF-8; it was read as Windows-1252.",) if codec == "cp1252" else ()


def read_text(given: Given) -> Document:
    """Read plain text. Blank lines separate paragraphs."""
    text, warnings = decode(given.data)
    document = LineDocument(text)
    document.add_paragraphs("paragraph", 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def read_code(given: Given) -> Document:
    """Read source code. Blank lines separate blocks."""
    text, warnings = decode(given.data)
    document = LineDocument(text)
    document.add_paragraphs("code", 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def read_json(given: Given) -> Document:
    r"""Read JSON or NDJSON, with escape sequences replaced by their characters.

    Otherwise, searches would miss words with `\u00e9`, and the `n` of `\n` would become part of the next word. The JSON
    is not parsed, so line numbers stay correct, and comments are allowed.
    """
    text, warnings = decode(given.data)
    document = LineDocument(_ESCAPE.sub(_unescape, text))
    kind = "row" if given.content_type == "application/x-ndjson" else "code"
    document.add(kind, 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def _unescape(escape: re.Match[str]) -> str:
    high, low, single, plain = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if single:
        # Replace control characters, since a line break would change the numbers of later lines.
        return chr(int(single, 16)) if int(single, 16) >= ord(" ") else " "
    return _PLAIN.get(plain, " ")


def read_csv(given: Given) -> Document:
    """Read each line of a CSV or TSV file as a row, under a heading of the column names.

    Every chunk repeats the heading, because a row means little without it.
    """
    text, warnings = decode(given.data)
    document = LineDocument(text)
    first = next((number for number, line in enumerate(document.lines) if line.strip()), 0)
    line = document.lines[first]
    cells: list[str] = []
    # Look for column names only if all quotes are closed and the csv module can read the line.
    if line.count('"') % 2 == 0 and len(line) <= csv.field_size_limit():
        cells = next(csv.reader([line], delimiter=max(_DELIMITERS, key=line.count)), [])
    header = column_heading(cells)
    if header:
        document.add_heading(1, header, first, first)
        first += 1
    if first < len(document.lines):
        document.add("row", first, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def column_heading(cells: list[str]) -> str | None:
    """Join the first row's cells to a heading. Returns None if the cells are data, not names."""
    names = [" ".join(cell.split()) for cell in cells]
    is_header = len(names) > 1 and all(names) and not any(_NUMBER.fullmatch(name) for name in names)
    heading = ", ".join(names)
    return heading if is_header and len(heading) <= HEADING_CHARACTERS else None
