"""Statements: the parts of a passage that can answer a question, each with what it belongs to.

A statement is a sentence, a row of a table, or a line of a form ("Deposit: 400 EUR"). By itself it says little: what it
is about may be in the row's first cell or column headings, in other lines of the form, in the step's number, in the
line that the list hangs on, or in the headings and the title above it. These are its `around`, nearest first.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import dropwhile, takewhile

from svc_daemon.core.answers.lines import (
    BRACKETS,
    EMPTY,
    GOES_BACK,
    ITEM,
    LABEL_WORDS,
    OBJECT,
    OPTION,
    PAIR,
    SET_APART,
    SETTING,
    aligned_in,
    are_entries,
    are_heads,
    barred,
    beside,
    columns_in,
    described_at,
    field_of,
    fields_in,
    heads_block,
    hung_at,
    is_entry,
    is_form,
    is_option,
    label_in,
    listed_under,
    names_in,
    records_of,
    row_of,
    runs_on,
    stacked_names,
    stand_alone,
    uncommented,
)
from svc_daemon.core.answers.particulars import Need, is_in, is_within
from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.answers.readings import Reading
from svc_daemon.core.text.sentences import Span, sentences_of
from svc_daemon.core.text.words import stem_of

#: A line with more words or characters is no heading.
_MOST_WORDS, _MOST_CHARACTERS = 12, 80
#: So many lines may stand above what a document begins with.
_TOP_LINES = 3

_LINE = re.compile(r"[^\n]*(?:\n|$)")
_RULE = re.compile(r"[\s|:+=*_-]*")
#: Questions head their answers, and "Serves 4 · takes 35 minutes" heads nothing.
_ENDED = re.compile(r"[.!;,…:]['\"»”’)\]]*\s*$")  # noqa: RUF001
_CELL_END = re.compile(r"\s*[|;,\t]\s*|\s{2,}")
#: The word of a thing's number: "contract" of contract 7.
LABEL = re.compile(r"\D+")
reading_of = lru_cache(maxsize=4096)(Reading)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A part of a passage that can answer a question."""

    span: Span
    text: str
    #: `prose`, `row`, `record` (of JSON), `field`, `entry` (of a log), `line` (a line without a full stop), or `label`
    #: (what only heads others).
    kind: str
    #: What names its parts: the columns' headings, or the line above a line.
    heads: str = ""
    #: The line right above it that is like a heading.
    head: str = ""
    #: What it belongs to in the passage's text, nearest first.
    around: tuple[str, ...] = ()
    #: The headings and the title above it, nearest first.
    above: tuple[str, ...] = ()
    #: How many of these are headings.
    headings: int = 0

    @cached_property
    def scope(self) -> list[Reading]:
        """Return what is read to know what the statement is about, nearest first."""
        return [reading_of(text) for text in (self.text, *self.around, *self.above)]

    def has(self, need: Need) -> bool:
        """Return whether the statement is about what the question names.

        Of several numbers of one kind, as in "Contract 7" below "Contract 4", the nearest decides.
        """
        is_absent = need.key and not any(need.key in reading.low for reading in self.scope)
        if is_absent or (need.kind == "code" and self.kind == "prose" and self.begins_with_twin(need)):
            return False
        label = LABEL.match(need.value) if need.kind == "label" and isinstance(need.value, str) else None
        name, _, number = need.text.rpartition(" ")
        if label and self.subject == number and name:
            # The first cell of a row is its name, whatever the question calls it.
            return any(stem_of(name.split()[0]) in reading.words for reading in self.scope)
        for place, reading in enumerate(self.scope):
            if is_in(need, reading, has_units=not self.may_lack_units(place)):
                return True
            if place and label and label[0] in reading.labels:
                return False
        # "relayd 3" is relayd-v3. And the words of a name may be in several places, such as a heading and the title,
        # but not apart in one.
        is_version = label and any(f"v{number}" in reading.codes for reading in self.scope)
        parts = need.text.split()[:1] if is_version else need.text.lower().split() if need.kind == "name" else []
        # A row and the names of its columns are two places, although what is around it has both.
        scope = [self.scope[0], reading_of(self.heads), *self.scope[2:]] if self.kind == "row" else self.scope
        found = [[bool(reading.has_name([part.lower()])) for part in parts] for reading in scope]
        return bool(parts) and all(map(any, zip(*found, strict=True))) and (is_version or not any(map(all, found)))

    def covers(self, need: Need) -> bool:
        """Return whether the statement is about what the question names, or about a range that this is in."""
        return self.has(need) or any(is_within(need, reading) for reading in self.scope)

    def begins_with_twin(self, need: Need) -> bool:
        """Return whether a sentence is about another thing with a code like this one: LM42 for LM42-Q."""
        own = reading_of(self.text)
        if not own.tokens or not own.tokens[0].is_code or is_in(need, own):
            return False
        begin = LABEL.match(own.tokens[0].low)
        return begin is not None and need.text.lower().startswith(begin[0])

    def may_lack_units(self, place: int) -> bool:
        """Return whether the unit of a number in the scope may be in another place, as in a row or a form."""
        return self.kind in ("row", "field", "record") and place <= len(self.around)

    @cached_property
    def named(self) -> frozenset[str]:
        """Return the words of the row itself, or of a field's record, and of the line above, the headings and title."""
        own = (self.text,) if self.kind in ("row", "entry", "record") else self.around if self.kind == "field" else ()
        return frozenset[str]().union(*(reading_of(text).words for text in (*own, self.head, *self.above)))

    @cached_property
    def subject(self) -> str:
        """Return the first cell of a row."""
        return _CELL_END.split(self.text, maxsplit=1)[0] if self.kind == "row" else ""


def statements_of(passage: Passage) -> list[Statement]:
    """Find the statements of a passage, in order."""
    chunk = passage.chunk
    return _read(chunk.text, chunk.headings, passage.title, passage.lead, chunk.ordinal == 0)


@lru_cache(maxsize=32)
def _read(text: str, headings: tuple[str, ...], title: str, lead: str, is_first: bool) -> list[Statement]:
    # An answer reads a passage more than once: for its quotes, beside others with a lead, and to check a model's words.
    found = _Structure(text, headings, title, lead, is_first=is_first or bool(lead)).read()
    size = len(lead)
    if not size:
        return list(found)
    own = (each for each in found if each.span.start >= size)
    return [replace(each, span=Span(each.span.start - size, each.span.end - size)) for each in own]


class _Structure:
    """Reads the lines of a passage: tables, forms, lists, lines that head others, and prose."""

    def __init__(self, text: str, headings: tuple[str, ...], title: str, lead: str, *, is_first: bool) -> None:
        self.text = uncommented(lead + text)
        self.lines = [
            Span(each.start(), each.start() + len(each[0].rstrip("\n"))) for each in _LINE.finditer(self.text)
        ]
        self.texts, self.raw = (
            [each[line.start : line.end] for line in self.lines] for each in (self.text, lead + text)
        )
        #: Of what ends before it, only what the rest belongs to is read.
        self.begin, self.is_first = len(lead), is_first
        self.above = (*reversed(headings), *names_in(title))
        self.headings = len(headings)
        #: The cells of lines whose columns are set apart by spaces.
        self.aligned = aligned_in([line for line in self.texts if not (line and _RULE.fullmatch(line))])
        self.names = columns_in(headings[-1] if headings else "", self.texts)
        #: The line that heads what follows, whether nothing has followed it yet, and the first line of the document.
        self.head, self.first, self.is_bare = "", "", False
        #: The lines that list items hang on, with their indents.
        self.stems: list[tuple[int, str]] = []
        #: What the front matter says.
        self.front = ""

    def read(self) -> Iterator[Statement]:
        at = 0
        while at < len(self.lines):
            line = self.texts[at]
            if not any(map(str.isalnum, line)):
                at += 1
                continue
            size, found = self.structure_at(at, line)
            yield from found
            self.is_bare = bool(found) and found[-1].kind in ("line", "label") and found[-1].text == self.head
            at += size

    def structure_at(self, at: int, line: str) -> tuple[int, Sequence[Statement]]:
        """Return how many lines belong together from a line on, and their statements."""
        described = described_at(self.texts, at)
        if not described and self.cells(line):
            size = self.run(
                at, lambda text: bool(self.cells(text)) or (bool(text) and _RULE.fullmatch(text) is not None)
            )
            return size, list(self.rows(at, size))
        if described or OBJECT.fullmatch(line) or is_entry(self.texts, at):
            return max(1, described), [self.whole(at, line, described)]
        if (field := field_of(line)) and (field["value"] or field_of(self.texts[min(at + 1, len(self.lines) - 1)])):
            size = self.run(at, lambda text: bool(text.strip()) and bool(field_of(text) or BRACKETS.fullmatch(text)))
            if size > 1 or stand_alone(self.texts, at, size):
                return size, list(self.fields(at, size))
        if item := ITEM.match(line):
            size = 1 + self.run(at + 1, lambda text: self.goes_on_in_item(line, text))
            return size, list(self.item(Span(self.lines[at].start, self.lines[at + size - 1].end), item))
        hung = hung_at(self.texts, at)
        if hung <= 1 and self.heads(at, line):
            indent = len(line) - len(line.lstrip(": \t"))
            span = Span(self.lines[at].start + indent, self.lines[at].start + len(line.rstrip()))
            self.head = self.head if self.is_bare else ""
            rest = next((place for place in range(at + 1, len(self.lines)) if self.texts[place].strip()), at)
            is_label = rest > at and not self.heads(rest, self.texts[rest])
            found = self.make(span, "label" if is_label else "line", heads=self.head)
            # A definition heads nothing: the next line is another term.
            self.head, self.stems = self.head if line.startswith(":") else found.text, []
            if self.is_first and not self.first and not self.text[: span.start].strip(" \n-#*=_"):
                # The first line is a title, unless others like it head what follows them.
                alike = re.compile(rf"\n[^\S\n]*\n\W{{0,99}}{re.escape(self.head.split()[0])}\b")
                self.first = "" if is_label and rest == at + 1 and alike.search(self.text, span.end) else self.head
            return 1, [found]
        size = hung or 1 + sum(1 for _ in takewhile(self.goes_on, range(at + 1, len(self.lines))))
        block = self.lines[at : at + size]
        is_list = self.is_bare and not hung and are_entries(self.texts[at : at + size])
        blocks = block if is_list else [Span(block[0].start, block[-1].end)]
        return size, [each for one in blocks for each in self.prose(one)]

    def whole(self, at: int, line: str, described: int) -> Statement:
        """Return the statement that a line is: an object of JSON, or an entry of a log; or the lines of an option."""
        start = self.lines[at].start
        if described:
            return self.make(Span(start + len(line) - len(line.lstrip()), self.lines[at + described - 1].end), "prose")
        if not OBJECT.fullmatch(line):
            return self.make(Span(start, start + len(line.rstrip())), "entry")
        span = Span(start + len(line) - len(line.lstrip()), start + len(line.rstrip().rstrip(",")))
        pairs = "; ".join(f"{key}: {value.strip()}" for key, value in PAIR.findall(line))
        return self.make(span, "record", around=(pairs, *(stem for _, stem in reversed(self.stems))))

    def goes_on(self, at: int) -> bool:
        """Return whether a line goes on with the paragraph above it, and begins no table, list or form."""
        line = self.texts[at]
        if not line.strip() or self.cells(line) or ITEM.match(line) or SETTING.match(line) or OBJECT.fullmatch(line):
            return False
        if is_entry(self.texts, at) or not runs_on(self.raw[at - 1], self.raw[at]):
            return False
        beside = (self.texts[place] for place in (at - 1, at + 1) if place < len(self.lines))
        is_field = field_of(line) and (SET_APART.match(line) or any(map(SET_APART.match, filter(field_of, beside))))
        return not is_field and not (OPTION.match(line.lstrip()) and self.heads(at, line))

    def goes_on_in_item(self, item: str, line: str) -> bool:
        """Return whether a line belongs to the item of a list above it, and is no setting beside the list."""
        field = field_of(line) if len(line) - len(line.lstrip()) <= len(item) - len(item.lstrip()) else None
        is_other = not line.strip() or ITEM.match(line) or self.cells(line)
        return not is_other and (field is None or " " in field["key"])

    def run(self, at: int, belongs: Callable[[str], bool]) -> int:
        return sum(1 for _ in takewhile(lambda place: belongs(self.texts[place]), range(at, len(self.lines))))

    def make(self, span: Span, kind: str, around: Sequence[str] = (), heads: str = "") -> Statement:
        # What heads a row's filled cells is around it; what heads empty ones says nothing of it.
        near = [*around, "" if kind == "row" else heads, self.head, self.front, self.first if " " in self.first else ""]
        around = tuple(dict.fromkeys(text for text in near if text))
        text, head, above, headings = self.text[span.start : span.end], self.head, self.above, self.headings
        return Statement(
            span=span, text=text, kind=kind, heads=heads, head=head, around=around, above=above, headings=headings
        )

    def heads(self, at: int, line: str) -> bool:
        """Return whether a line is like a heading: short, without a full stop, and not in the middle of a paragraph."""
        is_long = len(line.split()) > _MOST_WORDS or len(line) > _MOST_CHARACTERS
        if is_long or _ENDED.search(line.rstrip("*_ ")) or " · " in line or " • " in line:
            return False
        if is_option(*(self.texts[place] if 0 <= place < len(self.lines) else "" for place in (at - 1, at, at + 1))):
            return True
        if not (at == 0 or not self.texts[at - 1].strip() or self.head):
            return False
        following = self.texts[at + 1] if at + 1 < len(self.lines) else ""
        if (
            not following.strip()
            or _RULE.fullmatch(following)
            or field_of(following)
            or ITEM.match(following)
            or self.cells(following)
        ):
            return True
        # A short line right above a paragraph: "Vegan", and in the next line, "Mash four bananas and the sugar".
        is_short = 5 * len(line) < 3 * len(following) and following.lstrip()[:1].isupper()
        is_first = at == 0 or not self.texts[at - 1].strip()
        return following.startswith(":") or (is_first and (is_short or heads_block(self.texts, at)))

    def cells(self, line: str) -> list[str]:
        """Return the cells of a table row; empty for any other line."""
        if " | " in line or line.lstrip().startswith("|"):
            return [] if _RULE.fullmatch(line) else barred(line)
        return self.aligned.get(line) or (row_of(line, len(self.names), self.texts) if self.names else [])

    def rows(self, at: int, size: int) -> Iterator[Statement]:
        """Yield the rows of a table, each with the headings of its columns."""
        rows = [place for place in range(at, at + size) if self.cells(self.texts[place])]
        table = [self.cells(self.texts[place]) for place in rows]
        first = table[0]
        is_ruled, is_aligned = len(rows) > 1 and rows[1] > rows[0] + 1, self.texts[rows[0]] in self.aligned
        heads: Sequence[str] = []
        if len(self.names) == len(first) > 1:
            heads = self.names
            # Names in two rows are joined in these; the second row is still there.
            rows = rows[all(map(str.endswith, heads, first)) :]
        elif stacked := stacked_names(table):
            heads, rows = stacked, rows[2:]
        elif not is_form(table) and (is_ruled or (len(rows) > 1 and are_heads(table, is_aligned=is_aligned))):
            heads, rows = first, rows[1:]
        for place in (each for each in rows if self.lines[each].end > self.begin):
            line, cells = self.texts[place], self.cells(self.texts[place])
            inner = line.strip().strip("|").strip()
            start = self.lines[place].start + line.index(inner)
            pairs = [f"{head}: {cell}" for head, cell in zip(heads, cells, strict=False) if cell.lower() not in EMPTY]
            yield self.make(
                Span(start, start + len(inner)),
                "row",
                around=("; ".join(pairs or cells),),
                # Above the names of a table's rows, and a cell beside a merged one, may be nothing.
                heads=" | ".join(heads if cells[0] else [*dropwhile(lambda head: not head, heads)]),
            )

    def fields(self, at: int, size: int) -> Iterator[Statement]:
        """Yield the lines of a form; what they are about may be in other lines of the same record."""
        fields = [
            field
            for place in range(at, at + size)
            for field in fields_in(self.texts[place], self.lines[place].start, self.texts[place - 1] if place else "")
        ]
        for record in (each for each in records_of(fields) if each[-1].span.end > self.begin):
            listed = list(listed_under(fields[: fields.index(record[0])], record))
            for place, field in enumerate(record):
                if field.value and field.span.end > self.begin:
                    hung = (stem for depth, stem in reversed(self.stems) if depth < field.indent)
                    around = (f"{field.key} {field.value}", *beside(record, place), *listed, *hung)
                    yield self.make(field.span, "field", around=around)
        if self.is_first and not self.front and fields and fields[0].value:
            # What a document begins with is about all of it, unless it is the first of several records.
            lines = sum(map(bool, map(str.strip, self.text[: self.lines[at].start].splitlines())))
            again = re.compile(rf"^\W{{0,99}}{re.escape(fields[0].key)}\W{{0,99}}[:=]", re.MULTILINE)
            if lines <= _TOP_LINES and not again.search(self.text, self.lines[at + size - 1].end):
                self.front = "; ".join(f"{field.key} {field.value}" for field in fields)

    def item(self, block: Span, item: "re.Match[str]") -> Iterator[Statement]:
        indent = len(item[0]) - len(item[0].lstrip())
        self.stems = [(depth, stem) for depth, stem in self.stems if depth < indent]
        number = (f"step {item[1]}, point {item[1]}, item {item[1]}, no. {item[1]}",) if item[1] else ()
        around = (*number, *(stem for _, stem in reversed(self.stems)))
        if block.end > self.begin:
            yield from self.prose(Span(block.start + item.end(), block.end), around, is_item=True)
        self.stems.append((indent, self.text[block.start + item.end() : block.end]))

    def prose(self, block: Span, around: Sequence[str] = (), *, is_item: bool = False) -> Iterator[Statement]:
        text, before = self.text[block.start : block.end], ""
        if block.end <= self.begin:
            self.stems = [(-1, text)]
            return
        if text.startswith(":"):
            # The definition of a list of terms.
            block, text = Span(block.start + 1, block.end), text[1:]
        spans, outer = sentences_of(text), self.head
        if not around and (label := label_in(text)):
            # The sentence with the label says more of what the next ones are about.
            around = tuple(filter(None, (text[: spans[0].end] if label["colon"] or label["gap"] else "", outer)))
            self.head = next(filter(None, label.group("bold", "stop", "colon", "gap"))).strip()
            if size := label["bold"] and label.end():
                spans = [Span(size + start, size + end) for start, end in sentences_of(text[size:])]
        elif not around:
            # What follows may be a list that hangs on this paragraph.
            self.stems = [(-1, text[spans[-1].start : spans[-1].end] if spans else "")]
        for span in spans:
            sentence = text[span.start : span.end]
            back = [before] if before and GOES_BACK.match(sentence) else []
            place = Span(block.start + span.start, block.start + span.end)
            is_label = bool(self.head) and sentence.rstrip(".") == self.head
            # What an option does is said below it, and what is set in below a name is said of that.
            is_set_in = self.is_bare and text.startswith("  ") and len(self.head.split()) <= LABEL_WORDS
            is_below = is_set_in or OPTION.match(self.head)
            term = self.head if not before and not is_label and is_below else ""
            yield self.make(place, "label" if is_label else "prose", around=(*back, *around), heads=term)
            # What an item begins with names it: "`ttl`: how long an answer is kept. Default: 30 s."
            around = (sentence, *around) if is_item and not before else around
            before = sentence
        self.head = outer
