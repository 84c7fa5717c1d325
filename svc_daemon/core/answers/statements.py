"""Statements: the parts of a passage that can answer a question, each with what it belongs to.

A statement is a sentence, a row of a table, or a line of a form ("Deposit: 400 EUR"). By itself it says little: what it
is about may be in the row's first cell or column headings, in other lines of the form, in the step's number, in the
line that the list hangs on, or in the headings and the title above it. These are its `around`, nearest first.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile

from svc_daemon.core.answers.particulars import Need, is_in
from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.answers.readings import Reading
from svc_daemon.core.text.sentences import Span, sentences_of

#: A line with more words or characters is no heading.
_MOST_WORDS, _MOST_CHARACTERS = 12, 80
#: A form's line with a longer text after its name is prose.
_LONGEST_VALUE = 160


_LINE = re.compile(r"[^\n]*(?:\n|$)")
_NO_WORD = re.compile(r"[\W\d]+")
_GAP = re.compile(r" {2,}|\t+")
_RULE = re.compile(r"[\s|:+=*_-]*")
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣▪◦][ \t]|(\d{1,3}|[a-z])[.)][ \t])", re.IGNORECASE)
_FIELD = re.compile(
    r"(?P<indent>[ \t>]*(?:[-*+•][ \t]+)?)[\"'*_`]*(?P<key>[^\W\d_][^:=|\n\"*{}\[\]]{0,48}?)[\"'*_`]*"
    r"(?:[ \t]*=[ \t]*|[ \t]*\.{3,}[ \t]*|:(?!//)[*_]*(?:[ \t]+|$))(?P<value>[^\n]*)"
)
_BRACKETS = re.compile(r"[\s{}\[\](),;]*")
_GOES_BACK = re.compile(r"\W*(?:it|its|they|their|them|this|these|that|those|he|his|she|her|both)\b", re.IGNORECASE)
#: Questions head their answers.
_ENDED = re.compile(r"[.!;,…:]['\"»”’)\]]*\s*$")  # noqa: RUF001
_PATH_MARKS = re.compile(r"[-_/]+")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,4}$")

reading_of = lru_cache(maxsize=4096)(Reading)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A part of a passage that can answer a question."""

    span: Span
    text: str
    #: `prose`, `row`, `field` or `line` (a line without a full stop).
    kind: str
    #: What names its parts: the columns' headings, or the line above a line.
    heads: str = ""
    #: The line right above it that is like a heading.
    head: str = ""
    #: What it belongs to in the passage's text, nearest first.
    around: tuple[str, ...] = ()
    #: The headings and the title above it, nearest first.
    above: tuple[str, ...] = ()

    @cached_property
    def scope(self) -> list[Reading]:
        """Return what is read to know what the statement is about, nearest first."""
        return [reading_of(text) for text in (self.text, *self.around, *self.above)]

    def has(self, need: Need) -> bool:
        """Return whether the statement is about what the question names.

        Of several numbers of one kind, as in "Contract 7" below "Contract 4", the nearest decides.
        """
        label = re.match(r"\D+", need.value) if need.kind == "label" and isinstance(need.value, str) else None
        for place, reading in enumerate(self.scope):
            if is_in(need, reading, has_units=not self.is_counted(place)):
                return True
            if place and label and label[0] in reading.labels:
                return False
        if need.kind != "name" or not isinstance(need.value, str) or " " not in need.value:
            return False
        # The words of a name may be in several places, such as a heading and the title, but not apart in one.
        found = [[reading.has_name([word]) for word in need.value.split()] for reading in self.scope]
        return all(map(any, zip(*found, strict=True))) and not any(map(all, found))

    def is_counted(self, place: int) -> bool:
        """Return whether the unit of a number in the scope may be in another place, as in a row or a form."""
        return self.kind in ("row", "field") and place <= len(self.around)

    @property
    def subject(self) -> str:
        """Return the first cell of a row."""
        return re.split(r"\s*[|;,\t]\s*|\s{2,}", self.text, maxsplit=1)[0] if self.kind == "row" else ""


def statements_of(passage: Passage) -> list[Statement]:
    """Find the statements of a passage, in order."""
    size = len(passage.lead)
    found = list(_Structure(passage).read())
    if not size:
        return found
    own = (each for each in found if each.span.start >= size)
    return [replace(each, span=Span(each.span.start - size, each.span.end - size)) for each in own]


@dataclass(frozen=True, slots=True)
class _FormLine:
    span: Span
    indent: int
    key: str
    value: str
    #: Whether a new record begins here, as after a list marker.
    begins: bool


class _Structure:
    """Reads the lines of a passage: tables, forms, lists, lines that head others, and prose."""

    def __init__(self, passage: Passage) -> None:
        self.text = passage.lead + passage.text
        self.lines = [
            Span(each.start(), each.start() + len(each[0].rstrip("\n"))) for each in _LINE.finditer(self.text)
        ]
        self.is_first = passage.chunk.ordinal == 0 or bool(passage.lead)
        title = _SUFFIX.sub("", passage.title)
        names = dict.fromkeys((title, _PATH_MARKS.sub(" ", title), passage.title))
        self.above = (*reversed(passage.chunk.headings), *names)
        #: The cells of lines whose columns are set apart by spaces.
        self.aligned: dict[str, list[str]] = {}
        split = [
            (each, [cell for cell in _GAP.split(each.strip()) if cell])
            for each in map(self.line, range(len(self.lines)))
        ]
        for (line, cells), (following, others) in pairwise(split):
            if len(cells) == len(others) > 1 and not any(cell.endswith((".", ":")) for cell in (*cells, *others)):
                self.aligned |= {line: cells, following: others}
        self.columns = passage.chunk.headings[-1] if passage.chunk.headings else ""
        #: The line that heads what follows, and the first line of the document.
        self.head = self.first = ""
        #: The lines that list items hang on, with their indents.
        self.stems: list[tuple[int, str]] = []
        #: What the front matter says.
        self.front = ""

    def read(self) -> Iterator[Statement]:
        at = 0
        while at < len(self.lines):
            line = self.line(at)
            if not any(map(str.isalnum, line)):
                at += 1
                continue
            size, found = self.structure_at(at, line)
            yield from found
            at += size

    def structure_at(self, at: int, line: str) -> tuple[int, Sequence[Statement]]:
        """Return how many lines belong together from a line on, and their statements."""
        if self.cells(line):
            size = self.run(
                at, lambda text: bool(self.cells(text)) or (bool(text) and _RULE.fullmatch(text) is not None)
            )
            return size, list(self.rows(at, size))
        if (field := _field(line)) and (field["value"] or _field(self.line(min(at + 1, len(self.lines) - 1)))):
            size = self.run(at, lambda text: bool(text.strip()) and bool(_field(text) or _BRACKETS.fullmatch(text)))
            if size > 1 or self.stands_alone(at, size):
                return size, list(self.fields(at, size))
        if item := _ITEM.match(line):
            size = 1 + self.run(
                at + 1, lambda text: bool(text.strip()) and not _ITEM.match(text) and not self.cells(text)
            )
            return size, list(self.item(Span(self.lines[at].start, self.lines[at + size - 1].end), item))
        if self.heads(at, line):
            indent = len(line) - len(line.lstrip(": \t"))
            span = Span(self.lines[at].start + indent, self.lines[at].start + len(line.rstrip()))
            found = self.make(span, "line", heads=self.head)
            self.head, self.stems = line.strip(), []
            self.first = self.first or (self.head if self.is_first and not at else "")
            return 1, [found]
        size = self.run(at, lambda text: bool(text.strip()) and not (self.cells(text) or _ITEM.match(text)))
        return size, list(self.prose(Span(self.lines[at].start, self.lines[at + size - 1].end)))

    def line(self, at: int) -> str:
        return self.text[self.lines[at].start : self.lines[at].end]

    def run(self, at: int, belongs: Callable[[str], bool]) -> int:
        return sum(1 for _ in takewhile(lambda place: belongs(self.line(place)), range(at, len(self.lines))))

    def stands_alone(self, at: int, size: int) -> bool:
        before = at == 0 or not self.line(at - 1).strip()
        return before and (at + size >= len(self.lines) or not self.line(at + size).strip())

    def make(self, span: Span, kind: str, around: Sequence[str] = (), heads: str = "") -> Statement:
        near = [*around, heads, self.head, self.front, self.first if " " in self.first else ""]
        around = tuple(dict.fromkeys(text for text in near if text))
        text = self.text[span.start : span.end]
        return Statement(span=span, text=text, kind=kind, heads=heads, head=self.head, around=around, above=self.above)

    def heads(self, at: int, line: str) -> bool:
        """Return whether a line is like a heading: short, without a full stop, and not in the middle of a paragraph."""
        if len(line.split()) > _MOST_WORDS or len(line) > _MOST_CHARACTERS or _ENDED.search(line.rstrip("*_ ")):
            return False
        following = self.line(at + 1) if at + 1 < len(self.lines) else ""
        is_last = not following.strip() or _field(following) or _ITEM.match(following) or self.cells(following)
        return bool((at == 0 or not self.line(at - 1).strip() or self.head) and (is_last or following.startswith(":")))

    def cells(self, line: str) -> list[str]:
        """Return the cells of a table row; empty for any other line."""
        if " | " in line or line.lstrip().startswith("|"):
            return [] if _RULE.fullmatch(line) else [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line in self.aligned:
            return self.aligned[line]
        names = self.columns.count(", ")
        for mark in "\t;|,":
            if names and line.count(mark) == names:
                return [cell.strip().strip('"') for cell in line.split(mark)]
        return []

    def rows(self, at: int, size: int) -> Iterator[Statement]:
        """Yield the rows of a table, each with the headings of its columns."""
        rows = [place for place in range(at, at + size) if self.cells(self.line(place))]
        first = self.cells(self.line(rows[0]))
        is_ruled = len(rows) > 1 and rows[1] > rows[0] + 1
        names = self.columns.split(", ")
        if len(names) == len(first) > 1:
            heads = names
        elif is_ruled or (len(rows) > 1 and not any(_NO_WORD.fullmatch(cell) for cell in first if cell)):
            heads, rows = first, rows[1:]
        else:
            heads = []
        for place in rows:
            line, cells = self.line(place), self.cells(self.line(place))
            inner = line.strip().strip("|").strip()
            start = self.lines[place].start + line.index(inner)
            pairs = [f"{head} {cell}" for head, cell in zip(heads, cells, strict=False) if cell]
            yield self.make(
                Span(start, start + len(inner)),
                "row",
                around=("; ".join(pairs or cells),),
                heads=" | ".join(filter(None, heads)),
            )

    def fields(self, at: int, size: int) -> Iterator[Statement]:
        """Yield the lines of a form; what they are about may be in other lines of the same record."""
        fields = [self.field_at(place) for place in range(at, at + size) if _field(self.line(place))]
        records: list[list[_FormLine]] = []
        for field in fields:
            begun = records[-1] if records else []
            if not begun or field.begins or (field.indent <= begun[0].indent and field.key == begun[0].key):
                records.append([])
            records[-1].append(field)
        for record in records:
            for place, field in enumerate(record):
                if field.value:
                    hung = (stem for depth, stem in reversed(self.stems) if depth < field.indent)
                    around = (f"{field.key} {field.value}", *_outer(record, place), *hung)
                    yield self.make(field.span, "field", around=around)
        if at and self.line(at - 1).strip() == "---" and self.is_first and at < 2:
            self.front = "; ".join(f"{field.key} {field.value}" for field in fields)

    def field_at(self, at: int) -> _FormLine:
        line = self.line(at)
        match = _FIELD.match(line)
        assert match  # noqa: S101
        start = self.lines[at].start
        end = start + len(line.rstrip().rstrip(",;"))
        before = self.line(at - 1) if at else ""
        begins = bool(_ITEM.match(line)) or (bool(before.strip()) and bool(_BRACKETS.fullmatch(before)))
        value = match["value"].strip().strip("\"',;*_")
        return _FormLine(
            Span(start + len(match["indent"]), end), len(match["indent"]), match["key"].strip(), value, begins
        )

    def item(self, block: Span, item: "re.Match[str]") -> Iterator[Statement]:
        indent = len(item[0]) - len(item[0].lstrip())
        self.stems = [(depth, stem) for depth, stem in self.stems if depth < indent]
        number = (f"step {item[1]}, point {item[1]}, item {item[1]}, no. {item[1]}",) if item[1] else ()
        around = (*number, *(stem for _, stem in reversed(self.stems)))
        yield from self.prose(Span(block.start + item.end(), block.end), around)
        self.stems.append((indent, self.text[block.start + item.end() : block.end]))

    def prose(self, block: Span, around: Sequence[str] = ()) -> Iterator[Statement]:
        text, before = self.text[block.start : block.end], ""
        if text.startswith(":"):
            # The definition of a list of terms.
            block, text = Span(block.start + 1, block.end), text[1:]
        for span in sentences_of(text):
            sentence = text[span.start : span.end]
            back = [before] if before and _GOES_BACK.match(sentence) else []
            place = Span(block.start + span.start, block.start + span.end)
            yield self.make(place, "prose", around=(*back, *around))
            before = sentence
        if not around:
            # What follows may be a list that hangs on this paragraph.
            self.stems = [(-1, before)]


def _field(line: str) -> "re.Match[str] | None":
    match = _FIELD.match(line)
    is_short = match and len(match["key"].split()) <= 6 and len(match["value"]) <= _LONGEST_VALUE
    return match if is_short else None


def _outer(record: Sequence[_FormLine], place: int) -> Iterator[str]:
    """Yield what a line of a record belongs to: the lines beside it, then its name above and the lines beside that."""
    indent = record[place].indent
    before = list(takewhile(lambda each: each.indent >= indent, reversed(record[:place])))
    after = list(takewhile(lambda each: each.indent >= indent, record[place:]))
    yield "; ".join(
        f"{each.key} {each.value}" for each in (*before[::-1], *after) if each.indent == indent and each.value
    )
    if len(before) < place:
        above = place - len(before) - 1
        yield record[above].key
        yield from _outer(record, above)
