"""What is on a sheet beside its cells: comments, drawings, headers and footers for print."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats.open_xml.charts import add_graphic
from svc_daemon.extract.formats.open_xml.drawings import (
    description,
    graphic_reference,
    is_hidden,
    paragraphs,
    struck_text,
)
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, alternative, local_name
from svc_daemon.extract.formats.open_xml.sheets.cells import cell_text, column_number

_PLACE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_PRINTED = re.compile(rb"<(?:\w+:)?(?:odd|even|first)(Header|Footer)(?:\s[^<>]*)?>([^<]+)<")
#: Codes in headers: positions, fonts, sizes, colours, page numbers, dates and names of files.
_CODE = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f+-]{6}|K\d\d[+-]\d{3}|\d{1,3}|[LCR]|[A-Za-z])')
#: Excel writes an old comment for each thread, which says so, with an author that begins like this.
_OF_THREAD = "tc="


class Comment(NamedTuple):
    row: int
    column: int
    text: str


def sheet_comments(package: OfficePackage, part: str, people: dict[str, str]) -> list[Comment]:
    """Return the comments on a sheet, with their authors, in the order of their cells."""
    found: list[Comment] = []
    for name in package.related(part, "threadedComment"):
        root = package.parse(name)
        for each in () if root is None else root.iter("{*}threadedComment"):
            text = " ".join(words.text or "" for words in each.iterchildren("{*}text"))
            found += comment_on(each.get("ref"), people.get(each.get("personId") or "", ""), text)
    for name in package.related(part, "comments"):
        root = package.parse(name)
        authors = [] if root is None else [author.text or "" for author in root.iter("{*}author")]
        for each in () if root is None else root.iter("{*}comment"):
            number = number_of(each.get("authorId"), -1)
            author = authors[number] if 0 <= number < len(authors) else ""
            words = "".join(run.text or "" for run in each.iter("{*}t") if local_name(run.getparent()) != "rPh")
            if not (author.startswith(_OF_THREAD) and found):
                found += comment_on(each.get("ref"), author, words)
    return sorted(found, key=lambda comment: comment[:2])


def comment_on(place: str | None, author: str, text: str) -> Iterator[Comment]:
    """Yield the comment on a cell, such as C3, unless it has no words."""
    at = _PLACE.match(place or "")
    author = one_line(author)
    # The author's name is often the first line, too.
    words = one_line(text).removeprefix(f"{author}:").strip()
    if words:
        by = f" by {author}" if author else ""
        row, column = (int(at[2]), column_number(at[1])) if at else (0, 0)
        yield Comment(row, column, f"Comment{by}{f' on {at[0]}' if at else ''}: {words}")


def people_of(package: OfficePackage, main: str) -> dict[str, str]:
    """Return the names of those who wrote threaded comments, by their ids."""
    roots = (package.parse(part) for part in package.related(main, "person"))
    return {
        person.get("id") or "": person.get("displayName") or ""
        for root in roots
        if root is not None
        for person in root.iter("{*}person")
    }


def printed_texts(xml: bytes) -> Iterator[tuple[str, str]]:
    """Yield the texts above and below the printed pages of a sheet: `headers` or `footers`, and the text."""
    for kind, raw in _PRINTED.findall(xml):
        if shown := printed_text(cell_text(raw)):
            yield f"{kind.decode().lower()}s", shown


def printed_text(text: str) -> str:
    """Return the words of a header or footer without its codes; empty if it has none."""
    pieces = (one_line(piece).replace("\0", "&") for piece in re.split("&[LCR]", text.replace("&&", "\0")))
    shown = " | ".join(filter(None, (one_line(_CODE.sub(" ", piece)) for piece in pieces)))
    return shown if any(map(str.isalnum, shown)) else ""


def add_drawings(flow: FlowDocument, package: OfficePackage, part: str) -> None:
    """Add the text of shapes, the titles of charts, and the descriptions of pictures on a sheet."""
    for drawing in package.related(part, "drawing"):
        root = package.parse(drawing)
        if root is not None:
            _add_shapes(flow, package, drawing, root)
    for drawing in package.related(part, "vmlDrawing"):
        root = package.parse(drawing)
        for shape in () if root is None else root.iter("{*}shape"):
            # Comments have shapes, too, whose text is elsewhere.
            kinds = [each.get("ObjectType") for each in shape.iter("{*}ClientData")]
            if "Note" not in kinds:
                flow.add_all("paragraph", (one_line(" ".join(box.itertext())) for box in shape.iter("{*}textbox")))


def _add_shapes(flow: FlowDocument, package: OfficePackage, part: str, element: Any) -> None:
    for child in element:
        name = local_name(child)
        if name == "AlternateContent":
            _add_shapes(flow, package, part, alternative(child))
        elif name == "cNvPr":
            if flow.add("paragraph", description(child)):
                flow.note_part("alt_texts")
        elif name == "txBody":
            flow.hide(struck_text(child), "struck out", page=flow.page)
            flow.add_all("paragraph", map(one_line, paragraphs(child)))
        elif reference := graphic_reference(package, part, child):
            add_graphic(flow, package, *reference, with_values=False)
        elif (
            name in {"sp", "pic", "graphicFrame", "grpSp", "cxnSp"}
            and (properties := next(child.iter("{*}cNvPr"), None)) is not None
            and is_hidden(properties)
        ):
            flow.hide(" ".join(paragraphs(child)), "hidden shape", page=flow.page)
        else:
            _add_shapes(flow, package, part, child)
