"""DOCX: headers, then headings, paragraphs, list items and table rows in order, then footers.

Text boxes, charts, notes and comments follow the paragraph or table that they hang on. Files that a Word file imports
whole, such as a page of HTML, are read by the readers of their own formats.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.media_types import detect
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.formats.open_xml.charts import add_graphic
from svc_daemon.extract.formats.open_xml.equations import equation_text
from svc_daemon.extract.formats.open_xml.numbering import Numbering, number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, alternative, is_on, open_package, qname
from svc_daemon.extract.formats.open_xml.word.notes import WordNotes
from svc_daemon.extract.formats.open_xml.word.runs import SILENT, Attached, RunReader
from svc_daemon.extract.formats.open_xml.word.styles import StyleLook, WordStyles, has_background, marks_of
from svc_daemon.extract.tables import REPEATED_CHARACTERS, TableCell, TableLayout


def add_imported(flow: FlowDocument, package: OfficePackage, part: str, element: Any, given: Given) -> None:
    """Add the blocks of the file that `w:altChunk` names; a warning if it can't be read."""
    target = package.target(part, element)
    data = None if target is None else package.read(target)
    if target is None or data is None:
        return
    name = posixpath.basename(target)
    # A file within a file within this one isn't opened.
    if given.depth:
        flow.warn(f"The imported part {name} was not read, because it is in an imported part.")
        return
    content_type = detect(data, name)
    try:
        document = find_reader(content_type)(
            replace(given, data=data, filename=name, content_type=content_type, depth=given.depth + 1)
        )
    except ExtractionFailed as failure:
        flow.warn(f"The imported part {name} was not read. {failure.message}")
        return
    flow.add_document(document)


_VALUE = qname("w:val")
_PARAGRAPH, _TABLE, _ROW, _CELL = qname("w:p"), qname("w:tbl"), qname("w:tr"), qname("w:tc")
_PROPERTIES, _CELL_PROPERTIES, _ROW_PROPERTIES = qname("w:pPr"), qname("w:tcPr"), qname("w:trPr")
_RUN, _RUN_PROPERTIES = qname("w:r"), qname("w:rPr")
_STYLE, _NUMBERED, _OUTLINE, _FRAME = (qname(f"w:{name}") for name in ("pStyle", "numPr", "outlineLvl", "framePr"))
_SPANS = (qname("w:gridSpan"), qname("w:vMerge"), qname("w:hMerge"))
#: Marks of a paragraph whose end was deleted or moved away.
_GONE = (qname("w:del"), qname("w:moveFrom"))
_ALTERNATIVES, _IMPORT, _TEXT = qname("mc:AlternateContent"), qname("w:altChunk"), qname("w:t")
_EQUATIONS = frozenset({qname("m:oMath"), qname("m:oMathPara")})
#: Nested tables and boxes are followed so deep; what is deeper is added without its structure.
_DEPTH = 20


def read(given: Given) -> Document:
    """Read a Word file or one of its variants. Raises ExtractionFailed if it is damaged or over the limits."""
    flow = FlowDocument()
    package = open_package(given, flow)
    main = package.main("word", "document.xml")
    root = package.parse(main)
    if root is None or next(root.iter(qname("w:body")), None) is None:
        raise documents.unreadable("The Word file is damaged: its text can't be read.")
    walker = _Walker(flow, given, package, main)
    headers, footers = (_printed_parts(flow, package, main, root, kind) for kind in ("header", "footer"))
    walker.add_printed(headers, "headers")
    walker.add_story(main, root, root)
    walker.add_left_comments()
    flow.headings.clear()
    walker.add_printed(footers, "footers")
    return flow.finish(title=package.title() or walker.title or flow.headings.first)


def _printed_parts(flow: FlowDocument, package: OfficePackage, main: str, root: Any, kind: str) -> list[str]:
    """Return the parts of the headers or footers of all sections, each once.

    Word keeps those of first and even pages when they are turned off.
    """
    settings = [root for root in map(package.parse, package.related(main, "settings")) if root is not None]
    even = next((root.find(qname("w:evenAndOddHeaders")) for root in settings), None)
    is_shown = {
        "first": any(is_on(each, _VALUE) for each in root.iter(qname("w:titlePg"))),
        "even": is_on(even, _VALUE),
    }
    shown: dict[str, None] = {}
    for mark in root.iter(qname(f"w:{kind}Reference")):
        part = package.target(main, mark)
        if part is not None and is_shown.get(mark.get(qname("w:type")) or "", True):
            shown[part] = None
        elif part is not None and (story := package.parse(part)) is not None:
            flow.hide(" ".join(story.itertext()), f"{kind} that is turned off")
    return [*shown]


class _Walker:
    """Adds the text of a Word file's parts to a document, as blocks."""

    def __init__(self, flow: FlowDocument, given: Given, package: OfficePackage, main: str) -> None:
        self._flow, self._given, self._package = flow, given, package
        related = {kind: package.related(main, kind) for kind in ("styles", "numbering")}
        styles, numbering = (package.parse(parts[0]) if parts else None for parts in related.values())
        self._styles, self._numbering = WordStyles(styles), Numbering(numbering)
        self._notes = WordNotes(package, main)
        self._runs = RunReader(flow, package, self._styles)
        self.title: str | None = None
        self._printed: set[str] = set()
        #: Text that continues in the next paragraph: a large first letter, or a paragraph whose end was deleted.
        self._carried = ""
        self._depth = 0
        #: The table whose row has the nested tables that are read.
        self._table: object = None

    def add_story(self, part: str, root: Any, element: Any) -> None:
        """Add the blocks of a part."""
        self._runs.begin_story(part, root)
        self._walk(element)
        if self._carried:
            self._flow.add("paragraph", self._carried)
            self._carried = ""

    def add_printed(self, parts: list[str], kind: str) -> None:
        """Add headers or footers, each text once."""
        for part in parts:
            root = self._package.parse(part) if self._package.has(part) else None
            words = "" if root is None else "\n".join(one_line("".join(each.itertext())) for each in root)
            if root is not None and words not in self._printed:
                self._printed.add(words)
                before = self._flow.count
                self.add_story(part, root, root)
                if self._flow.count > before:
                    self._flow.note_part(kind)

    def add_left_comments(self) -> None:
        """Add the comments that hang on nothing."""
        self._add_attached([Attached("comment", identity) for identity in self._notes.unused_comments()])

    def _walk(self, element: Any) -> None:
        """Add an element's contents, in order."""
        handlers: dict[str, Callable[[Any], None]] = {
            _PARAGRAPH: self.add_paragraph,
            _TABLE: self.add_table,
            _ALTERNATIVES: lambda each: self._walk(alternative(each)),
            _IMPORT: lambda each: add_imported(self._flow, self._package, self._runs.part, each, self._given),
            _RUN: lambda each: self._add_text("paragraph", self._runs.read([each], self._styles.look(None), {})),
            **dict.fromkeys(_EQUATIONS, self.add_equation),
        }
        for child in element:
            handler = handlers.get(child.tag)
            if handler:
                handler(child)
            elif child.tag not in SILENT:
                self._walk(child)

    def add_equation(self, element: Any) -> None:
        if self._flow.add("paragraph", equation_text(element)):
            self._flow.note_part("equations")

    def add_paragraph(self, paragraph: Any) -> None:
        kind, level, text = self._read(paragraph)
        if level is not None:
            if level == 0 and self.title is None:
                self.title = text
            self._flow.add_heading(level, text)
            self._flush_attached()
        else:
            self._add_text(kind, text)

    def _add_text(self, kind: str, text: str) -> None:
        self._flow.add(kind, text)
        self._flush_attached()

    def _flush_attached(self) -> None:
        attached, self._runs.attached = self._runs.attached, []
        self._add_attached(attached)

    def _read(self, paragraph: Any) -> tuple[str, int | None, str]:
        """Return a paragraph's kind, heading level and text with its number."""
        marks = marks_of(paragraph.find(_PROPERTIES))
        style = marks.get(_STYLE)
        name = None if style is None else style.get(_VALUE)
        look = self._styles.look(name)
        text = self._runs.read(paragraph, look, marks)
        if marks and _continues(marks):
            self._carried += text
            return "paragraph", None, ""
        label, level = self._label(marks, look, name), _level(marks, look)
        text, self._carried = self._carried + text, ""
        is_item = label is not None
        return "item" if is_item else "paragraph", level, f"{label} {text}" if label and text.strip() else text

    def _label(self, marks_of_paragraph: Mapping[str, Any], look: StyleLook, style: str | None) -> str | None:
        """Count a numbered paragraph, and return its number; None if it isn't numbered."""
        own = marks_of_paragraph.get(_NUMBERED)
        marks = [None if own is None else own.find(qname(f"w:{name}")) for name in ("numId", "ilvl")]
        identity = look.list_id if marks[0] is None else marks[0].get(_VALUE)
        if identity is None or identity == "0":
            return None
        if marks[1] is not None:
            level = number_of(marks[1].get(_VALUE), 0)
        elif marks[0] is None and look.list_level is None:
            level = self._numbering.level_of_style(identity, style or "")
        else:
            level = look.list_level or 0
        label = self._numbering.next_label(identity, level)
        # An item of a list that the file doesn't have is shown without a number.
        return "" if label is None and own is not None else label

    def add_table(self, table: Any) -> None:
        """Add a table's rows, and after each row the tables and other things in its cells."""
        described = [
            table.find(f"{qname('w:tblPr')}/{qname(f'w:{name}')}") for name in ("tblCaption", "tblDescription")
        ]
        for each in described:
            if each is not None and self._flow.add("paragraph", each.get(_VALUE) or ""):
                self._flow.note_part("alt_texts")
        was_on_colour = self._runs.on_colour
        self._runs.on_colour = was_on_colour or self._styles.is_coloured_table(table)
        layout = TableLayout()
        #: By column: what a cell that spans rows says.
        above: dict[int, str] = {}
        for row in _inside(table, _ROW, _TABLE):
            properties = row.find(_ROW_PROPERTIES)
            if properties is None or properties.find(qname("w:del")) is None:
                self.add_table_row(row, properties, layout, above)
        self._runs.on_colour = was_on_colour

    def add_table_row(self, row: Any, properties: Any, layout: TableLayout, above: dict[int, str]) -> None:
        elements = [*_inside(row, _CELL, _ROW)]
        if len(elements) == 1 and len(elements[0].findall(_PARAGRAPH)) + 2 * len(elements[0].findall(_TABLE)) > 1:
            # A table of one column arranges a page, so that its cells hold blocks and not values.
            self._walk_deeper(elements[0])
            return
        before = None if properties is None else properties.find(qname("w:gridBefore"))
        skipped = 0 if before is None else max(0, min(number_of(before.get(_VALUE), 0), 60))
        cells, tables, column = [TableCell("")] * skipped, [], skipped
        for element in elements:
            text, width, nested = self.read_cell(element, above, column)
            if text is None:
                # An old kind of merged cells: this one belongs to the one before it.
                last = cells.pop() if cells else TableCell("")
                cells.append(TableCell(last.text, last.columns + width))
            else:
                cells.append(TableCell(text, width))
            tables += nested
            column += width
        outer, self._table = self._table, self._table or layout
        self._flow.add_row(layout.lay_out(cells), self._table)
        attached, self._runs.attached = self._runs.attached, []
        for table in tables:
            self._walk_deeper([table])
        self._table = outer
        self._add_attached(attached)

    def read_cell(self, cell: Any, above: dict[int, str], column: int) -> tuple[str | None, int, list[Any]]:
        """Return a cell's text, how many columns it spans, and the tables in it."""
        marks = marks_of(cell.find(_CELL_PROPERTIES))
        span, merge, old_merge = (marks.get(name) for name in _SPANS)
        width = 1 if span is None else max(1, min(number_of(span.get(_VALUE), 1), 1000))
        was_on_colour = self._runs.on_colour
        self._runs.on_colour = was_on_colour or has_background(marks)
        texts, tables = [], []
        for each in _inside(cell, {_PARAGRAPH, _TABLE}, _CELL):
            if each.tag == _TABLE:
                tables.append(each)
            else:
                texts.append(self._read(each)[2])
        self._runs.on_colour = was_on_colour
        text = " ".join([*texts, self._carried])
        self._carried = ""
        if old_merge is not None and old_merge.get(_VALUE) != "restart":
            return None, width, tables
        if merge is None:
            above.pop(column, None)
        elif merge.get(_VALUE) == "restart" or column not in above:
            above[column] = text if len(text) <= REPEATED_CHARACTERS else ""
        else:
            if text.strip():
                self._flow.hide(text, "merged cell")
            text = above[column]
        return text, width, tables

    def _walk_deeper(self, element: Any) -> None:
        """Add the contents of a box or a nested table."""
        if self._depth >= _DEPTH:
            texts = (text.text or "" for each in element for text in each.iter(_TEXT))
            self._flow.add("paragraph", " ".join(texts))
            return
        self._depth += 1
        self._walk(element)
        self._depth -= 1

    def _add_attached(self, attached: list[Attached]) -> None:
        for kind, value in attached:
            if kind == "box":
                carried, self._carried = self._carried, ""
                was_on_colour, self._runs.on_colour = self._runs.on_colour, True
                self._walk_deeper(value)
                self._carried, self._runs.on_colour = carried, was_on_colour
            elif kind in {"text", "alt_text"}:
                if self._flow.add("paragraph", value) and kind == "alt_text":
                    self._flow.note_part("alt_texts")
            elif kind in {"chart", "diagram"}:
                add_graphic(self._flow, self._package, kind, value)
            else:
                self.add_note(kind, value)

    def add_note(self, kind: str, identity: str) -> None:
        """Add a note or comment, with what it is and who wrote it."""
        note = self._notes.take(kind, identity)
        if note is None:
            return
        part, self._runs.part = self._runs.part, note.part
        texts = [self._read(paragraph)[2] for paragraph in note.element.iter(_PARAGRAPH)]
        attached, self._runs.attached = self._runs.attached, []
        text = "\n".join(one_line(text) for text in texts if text.strip())
        if text:
            self._flow.add("paragraph", f"{note.label}: {text}")
            self._flow.note_part("comments" if kind == "comment" else "notes")
        self._add_attached([each for each in attached if each.kind not in {"footnote", "endnote", "comment"}])
        self._runs.part = part


def _inside(element: Any, tags: Any, boundary: str) -> Iterator[Any]:
    """Yield the elements of a table or cell that belong to it, whatever is around them."""
    wanted = {tags} if isinstance(tags, str) else tags
    for child in element:
        if child.tag == _ALTERNATIVES:
            yield from _inside(alternative(child), wanted, boundary)
        elif child.tag in wanted:
            yield child
        elif child.tag not in SILENT and child.tag != boundary:
            yield from _inside(child, wanted, boundary)


def _level(marks: Mapping[str, Any], look: StyleLook) -> int | None:
    """Return the heading level of a paragraph: its own, or that of its style."""
    outline = marks.get(_OUTLINE)
    if outline is None or look.level == 0:
        return look.level
    level = number_of(outline.get(_VALUE), 9)
    return level + 1 if level < 9 else None


def _continues(marks: Mapping[str, Any]) -> bool:
    """Whether a paragraph's text goes on in the next one."""
    frame = marks.get(_FRAME)
    if frame is not None and (frame.get(qname("w:dropCap")) or "none") != "none":
        return True
    mark = marks.get(_RUN_PROPERTIES)
    return mark is not None and next(mark.iterchildren(*_GONE), None) is not None
