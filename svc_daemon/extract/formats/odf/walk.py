"""Walks the XML of an OpenDocument file's body and adds what its reader sees to a document."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree

from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats.odf.cells import cell_value, count, plain_text
from svc_daemon.extract.formats.odf.styles import LEVELS, Look, Styles, attribute, full, short
from svc_daemon.extract.formats.superscripts import raised, write_exponents
from svc_daemon.extract.tables import COLUMNS, TableCell, TableLayout

_SPACES = re.compile(r"[ \t\r\n]+")
#: Elements whose text is no text of the page.
_SKIPPED = frozenset(
    {
        *("text:tracked-changes", "table:tracked-changes", "table:content-validations", "table:dde-links"),
        *("office:forms", "office:styles", "office:automatic-styles", "office:master-styles", "office:meta"),
        *("office:scripts", "office:settings", "office:font-face-decls", "office:binary-data", "text:note-citation"),
        *("text:table-of-content-source", "text:illustration-index-source", "text:table-index-source"),
        *("text:object-index-source", "text:user-index-source", "text:alphabetical-index-source"),
        *("text:bibliography-source", "presentation:notes", "presentation:footer-decl", "presentation:header-decl"),
        *("presentation:date-time-decl", "table:covered-table-cell", "office:event-listeners", "draw:image-map"),
        *("presentation:animations", "dc:creator", "dc:date", "meta:date-string", "meta:creator-initials"),
        *("loext:sender-initials", "text:label"),
    }
)
#: The family of styles of each element whose style says how text looks.
_FAMILIES = {
    **dict.fromkeys(("text:p", "text:h"), ("paragraph", "text:style-name")),
    **dict.fromkeys(("text:span", "text:a"), ("text", "text:style-name")),
    "text:section": ("section", "text:style-name"),
    "table:table": ("table", "table:style-name"),
    "table:table-row": ("table-row", "table:style-name"),
    "table:table-cell": ("table-cell", "table:style-name"),
}
_PLAIN, _SHAPE = Look(), Look(is_backed=True)
_CELL = full("table:table-cell")
_COLUMNS_SPANNED, _ROWS_SPANNED = full("table:number-columns-spanned"), full("table:number-rows-spanned")
_COLUMNS_REPEATED = full("table:number-columns-repeated")
#: Tables within more tables than this are not read.
_NESTED_TABLES = 50
#: A row that is filled alike this often is written no further.
REPEATED_ROWS = 1000


class OdfBlock(NamedTuple):
    """A block to add. `cells` are those of a row of the `table`, and `level` is its number."""

    kind: str
    text: str = ""
    level: int = 0
    cells: tuple[str, ...] = ()
    table: object = None
    #: Whether it is after the row of a table, and not in the cell.
    is_apart: bool = False


@dataclass
class ListState:
    """A list that is open, or may be continued."""

    style: str
    counts: list[int] = field(default_factory=lambda: [0] * LEVELS)


class BodyWalk:
    """Adds the text of elements to `flow`. Text that nobody sees is kept apart."""

    def __init__(self, flow: FlowDocument, styles: Styles, open_object: Callable[[str], etree._Element | None]) -> None:
        self.flow = flow
        self.styles = styles
        #: Returns the content of an embedded object, by its name in the package.
        self.open_object = open_object
        #: Where added pieces go: the document, else the innermost paragraph, cell or note that is open.
        self.places: list[list[OdfBlock]] = []
        #: The text of the paragraphs that are open.
        self.buffers: list[list[str]] = []
        self.readings: list[list[str]] = []
        self.looks = [styles.usual]
        self.unseen: defaultdict[str, list[str]] = defaultdict(list)
        self.tables: list[TableLayout] = []
        self.lists: list[ListState] = []
        self.known_lists: dict[str, ListState] = {}
        self.outline = ListState("")
        #: For each list item that is open: the number that it sets, or None if its paragraph has come already.
        self.items: list[str | None] = []
        #: By its id, the text of a control of a form.
        self.controls: dict[str, str] = {}
        self.skipped: set[etree._Element] = set()
        #: The text of the first paragraph with the style of a title.
        self.title = ""
        #: Whether a field has hidden the open paragraph.
        self.hides_paragraph = False
        self.starts = {name.replace("_", ":", 1).replace("_", "-"): getattr(self, f"start_{name}") for name in _STARTS}
        self.ends = {name.replace("_", ":", 1).replace("_", "-"): getattr(self, f"end_{name}") for name in _ENDS}

    def walk(self, root: etree._Element, look: Look | None = None) -> None:
        """Add all text below an element. Elements may be nested deeply, so this is no recursion."""
        self.looks.append((look or Look()).within(self.looks[-1]))
        events = etree.iterwalk(root, events=("start", "end"))
        passed: etree._Element | None = None
        for event, element in events:
            name = short(element.tag)
            if event == "start":
                self.enter(name, element)
                if name in _SKIPPED or element in self.skipped:
                    passed = element
                    events.skip_subtree()
                    continue
                if name in self.starts and self.starts[name](element):
                    events.skip_subtree()
                elif element.text:
                    self.say(element.text)
            else:
                if name in self.ends and element is not passed:
                    self.ends[name](element)
                self.looks.pop()
                if element.tail and element is not root:
                    self.say(element.tail)
        self.looks.pop()

    def enter(self, name: str, element: etree._Element) -> None:
        """Note how text within this element looks. Shapes may have any background."""
        look = _SHAPE if name.startswith("draw:") else _PLAIN
        if name in _FAMILIES:
            family, style = _FAMILIES[name]
            look = self.styles.look(family, attribute(element, style))
        self.looks.append(self.looks[-1] if look is _PLAIN else look.within(self.looks[-1]))

    def collect(self, root: etree._Element, look: Look | None = None) -> list[OdfBlock]:
        """Return the blocks below an element instead of adding them."""
        self.places.append([])
        self.walk(root, look)
        return self.places.pop()

    def say(self, text: str) -> None:
        """Add text to the open paragraph, with its spaces joined."""
        if self.buffers:
            self.write(_SPACES.sub(" ", text))

    def write(self, text: str) -> None:
        """Add text to the open paragraph as it is."""
        if not self.buffers:
            return
        if reason := self.looks[-1].reason:
            self.unseen[reason].append(text)
        else:
            self.buffers[-1].append(raised(text) if self.looks[-1].is_raised else text)

    def write_word(self, text: str) -> None:
        """Add text to the open paragraph as a word of its own, or as a paragraph if none is open."""
        if not self.buffers:
            self.put(OdfBlock("paragraph", text))
        elif text:
            self.write(text if not self.buffers[-1] or self.buffers[-1][-1].endswith(" ") else f" {text}")

    def put(self, piece: OdfBlock) -> None:
        """Add a block to the innermost place that is open."""
        if self.places:
            self.places[-1].append(piece)
        elif piece.kind == "heading":
            self.flow.add_heading(piece.level, piece.text)
        elif piece.kind == "row":
            self.flow.add_row(piece.cells, piece.table)
        else:
            self.flow.add(piece.kind, piece.text)

    def close(self) -> tuple[str, list[OdfBlock]]:
        """Close the innermost place: return its text as one line, and what is apart."""
        pieces = self.places.pop()
        inside = (piece.text or " ".join(filter(None, piece.cells)) for piece in pieces if not piece.is_apart)
        return one_line(" ".join(inside)), [piece for piece in pieces if piece.is_apart]

    # ------------------------------------------------------------------ paragraphs

    def start_text_p(self, element: etree._Element) -> None:
        self.buffers.append([])
        self.readings.append([])
        self.places.append([])
        if self.items and self.lists and self.items[-1] is not None:
            given, self.items[-1] = self.items[-1], None
            state, depth = self.lists[0], len(self.items)
            style = self.lists[-1].style or self.styles.first(
                "paragraph", attribute(element, "text:style-name"), "style:list-style-name"
            )
            self.buffers[-1].append(self.number(state.counts, style, min(depth, LEVELS), given))
        elif short(element.tag) == "text:h" and not self.items and not attribute(element, "text:is-list-header"):
            self.buffers[-1].append(self.number(self.outline.counts, "", _level(element), ""))

    def number(self, counts: list[int], style: str, level: int, given: str) -> str:
        """Count an item of a list, and return its number with a space, or an empty string."""
        before = counts[level - 1] or self.styles.start(style, level) - 1
        counts[level - 1] = int(given) if given.isdecimal() and len(given) < 9 else before + 1
        counts[level:] = [0] * (LEVELS - level)
        label = given if given and not given.isdecimal() else self.styles.label(style, counts[:level])
        return f"{label} " if label else ""

    def end_text_p(self, element: etree._Element) -> None:
        text = write_exponents("".join(self.buffers.pop())).strip()
        readings, after = self.readings.pop(), self.places.pop()
        if self.hides_paragraph:
            self.unseen["hidden"].append(text)
            text, self.hides_paragraph = "", False
        for reason, unseen in self.unseen.items():
            self.flow.hide("".join(unseen), reason, page=self.flow.page)
        self.unseen.clear()
        if readings and text:
            text = f"{text} ({' '.join(readings)})"
        is_heading = short(element.tag) == "text:h"
        if not is_heading and not self.title and self.is_title(element):
            self.title = text
        kind = "heading" if is_heading else "item" if self.items else "paragraph"
        if text:
            self.put(OdfBlock(kind, text, _level(element)))
        for piece in after:
            self.put(piece)

    start_text_h, end_text_h = start_text_p, end_text_p

    def is_title(self, element: etree._Element) -> bool:
        """Whether a paragraph has the style of a document's title."""
        chain = self.styles.chain("paragraph", attribute(element, "text:style-name"))
        return any(attribute(style, "style:name") == "Title" for style in chain)

    def start_text_s(self, element: etree._Element) -> None:
        count = attribute(element, "text:c")
        self.write(" " * min(int(count) if count.isdecimal() and len(count) < 6 else 1, 100))

    def start_text_tab(self, _element: etree._Element) -> None:
        self.write("\t")

    def start_text_line_break(self, _element: etree._Element) -> None:
        self.write("\n")

    def start_text_ruby_text(self, element: etree._Element) -> bool:
        if self.readings:
            self.readings[-1].append(one_line("".join(element.itertext())))
        return True

    def start_text_hidden_text(self, element: etree._Element) -> bool:
        if is_hidden := attribute(element, "text:is-hidden") == "true":
            self.flow.hide(attribute(element, "text:string-value"), "hidden", page=self.flow.page)
        return is_hidden

    def start_text_hidden_paragraph(self, element: etree._Element) -> None:
        self.hides_paragraph |= attribute(element, "text:is-hidden") == "true"

    def start_text_section(self, element: etree._Element) -> None:
        if attribute(element, "text:display") == "none" or attribute(element, "text:is-hidden") == "true":
            self.looks[-1] = self.looks[-1]._replace(is_hidden=True)

    # ------------------------------------------------------------------ lists

    def start_text_list(self, element: etree._Element) -> None:
        outer = self.lists[-1] if self.lists else None
        style = attribute(element, "text:style-name") or (outer.style if outer else "")
        earlier = self.known_lists.get(
            attribute(element, "text:continue-list")
            or (style if attribute(element, "text:continue-numbering") == "true" else "")
        )
        state = ListState(style, earlier.counts) if earlier and not outer else ListState(style)
        self.lists.append(state)
        if not outer:
            self.known_lists.update(dict.fromkeys((style, attribute(element, "xml:id")), state))

    def end_text_list(self, _element: etree._Element) -> None:
        self.lists.pop()

    def start_text_list_item(self, element: etree._Element) -> None:
        self.items.append(attribute(element, "text:start-value"))

    def start_text_list_header(self, _element: etree._Element) -> None:
        self.items.append(None)

    def end_text_list_item(self, _element: etree._Element) -> None:
        self.items.pop()

    end_text_list_header = end_text_list_item

    def start_textnumber_of(self, element: etree._Element) -> bool:
        # Another program may have written the number itself.
        if self.items and self.items[-1] == "":
            self.items[-1] = (element.text or "").strip()
        return True

    # ------------------------------------------------------------------ tables

    def start_table_table(self, _element: etree._Element) -> None:
        self.tables.append(TableLayout())

    def end_table_table(self, _element: etree._Element) -> None:
        self.tables.pop()

    def start_table_table_row(self, row: etree._Element) -> bool:
        """Add a row. Most cells have only plain text, and are read without a walk."""
        if len(self.tables) > _NESTED_TABLES:
            self.flow.warn(f"Tables within more than {_NESTED_TABLES} tables were not read.")
            return True
        cells: list[TableCell] = []
        after: list[OdfBlock] = []
        for cell in row.iterchildren(_CELL):
            text = plain_text(cell, self.styles)
            if text is None:
                self.places.append([])
                self.walk(cell)
                text, apart = self.close()
                after += apart
            columns, rows, again = cell.get(_COLUMNS_SPANNED), cell.get(_ROWS_SPANNED), cell.get(_COLUMNS_REPEATED)
            laid = TableCell(text or cell_value(cell), count(columns), count(rows))
            cells += [laid] * max(1, min(count(again), COLUMNS - len(cells)))
        table = self.tables[-1] if self.tables else TableLayout()
        for number in range(min(count(attribute(row, "table:number-rows-repeated")), REPEATED_ROWS)):
            texts = table.lay_out(cells)
            if not any(texts):
                break
            self.put(OdfBlock("row", "", table.rows, tuple(texts), self.tables[0] if self.tables else None))
            if number == REPEATED_ROWS - 1:
                self.flow.warn(f"A row that is repeated more than {REPEATED_ROWS} times was read so often only.")
        for piece in after:
            self.put(piece)
        return True

    # ------------------------------------------------------------------ comments, notes, drawings

    def start_office_annotation(self, _element: etree._Element) -> None:
        self.places.append([])

    def end_office_annotation(self, element: etree._Element) -> None:
        text, apart = self.close()
        author = one_line(element.findtext(full("dc:creator")) or "")
        if text:
            self.flow.note_part("comments")
            self.put(OdfBlock("paragraph", f"Comment{f' by {author}' if author else ''}: {text}", is_apart=True))
        for piece in apart:
            self.put(piece)

    def start_text_note(self, _element: etree._Element) -> None:
        self.places.append([])

    def end_text_note(self, element: etree._Element) -> None:
        text, apart = self.close()
        number = one_line(element.findtext(full("text:note-citation")) or "")
        if text:
            self.flow.note_part("notes")
            self.put(OdfBlock("paragraph", f"Note{f' {number}' if number else ''}: {text}", is_apart=True))
        for piece in apart:
            self.put(piece)

    def start_svg_desc(self, element: etree._Element) -> bool:
        if text := one_line(element.text or ""):
            self.flow.note_part("alt_texts")
            self.put(OdfBlock("paragraph", text, is_apart=True))
        return True

    start_svg_title = start_svg_desc

    def start_draw_frame(self, element: etree._Element) -> bool:
        return attribute(element, "presentation:placeholder") == "true"

    def start_draw_control(self, element: etree._Element) -> None:
        self.write_word(self.controls.get(attribute(element, "draw:control"), ""))

    def start_draw_object(self, element: etree._Element) -> None:
        root = self.open_object(attribute(element, "xlink:href"))
        if root is not None:
            for piece in self.collect(root):
                self.put(piece._replace(is_apart=True))

    def start_draw_object_ole(self, _element: etree._Element) -> None:
        self.flow.warn("An embedded file of another program was not read.")

    def start_chart_chart(self, _element: etree._Element) -> None:
        self.flow.note_part("charts")

    def start_math_math(self, element: etree._Element) -> bool:
        for source in element.iter(full("math:annotation"), full("math:annotation-xml")):
            source.clear(keep_tail=True)
        text = " ".join(one_line(words) for words in element.itertext() if words.strip())
        if text:
            self.flow.note_part("equations")
        self.write_word(text)
        return True


def _level(element: etree._Element) -> int:
    return min(number_of(element, "text:outline-level"), LEVELS)


def number_of(element: etree._Element, name: str) -> int:
    """Return a count that an attribute gives, at least 1."""
    return count(attribute(element, name))


_STARTS = [name.removeprefix("start_") for name in vars(BodyWalk) if name.startswith("start_")]
_ENDS = [name.removeprefix("end_") for name in vars(BodyWalk) if name.startswith("end_")]
