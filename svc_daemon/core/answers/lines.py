"""Lines: what a line of a text is, such as a field of a form, an entry of a log, or the beginning of a list's item."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, takewhile

from svc_daemon.core.text.sentences import MONTH_AFTER_DAY, Span

#: A form's line with a longer text after its name is prose.
_LONGEST_VALUE = 160
#: A paragraph's label, such as "Holiday.", has at most this many words; twice as many in bold or before a colon, as in
#: "17 Alder Street, 2nd floor: two rooms. Balcony to the yard."
LABEL_WORDS = 3
#: Words that make a short sentence more than a label.
_SAYS = re.compile(r"\b(?:is|are|was|were|do|does|did|has|have|had|may|can|must|will|should|not|yes)\b", re.IGNORECASE)

_NO_WORD = re.compile(r"[\W\d]+")
_TYPE_OR_PATH = re.compile(r"(?:[a-z\d.~_-][\w.+-]*)?/|[A-Z]:/")
_YEAR = re.compile(r"(?:19|20)\d\d")
_GAP = re.compile(r" {2,}|\t+")
_DOT = re.compile(r" +[·•] +")
#: What the entries of a log begin with.
STAMP = re.compile(r"\W{0,2}(?:\d{4}-\d\d-\d\d[T ]|\d\d[./]\d\d[./]\d{2,4} |[A-Z]\w\w +\d{1,2} \d\d:|\d\d:\d\d:\d\d)")
#: The label of a paragraph, in bold, or a few words with a full stop, a colon or spaces behind it.
_RUN_IN = re.compile(
    r"\W{0,3}?(?:(?P<gap>[^\W\d_][\w'-]*(?: [\w'-]+){0,2})(?= {3})|(\*\*|__)(?P<bold>[^*_\n]{1,60}?)\2|"
    r"(?P<stop>[^\W\d_][^.:!?;,\d\n]{1,40}?)(?=\.)|(?P<colon>[^\W_][^.:!?\n]{1,60}?)(?=:))[.:]?\s+"
)
_PATH_MARKS = re.compile(r"[-_/]+")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,4}$")
ITEM = re.compile(rf"[ \t]*(?:[-*+•‣▪◦][ \t]|(\d{{1,3}}|[a-z])[.)][ \t](?!{MONTH_AFTER_DAY}))", re.IGNORECASE)
FIELD = re.compile(
    r"(?P<indent>[ \t>]*(?:[-*+•][ \t]+|[#;][ \t]?(?=[\w.-]+[ \t]*=))?)"
    r"[\"'*_`]*(?P<key>[^\W\d_][^:=|\n\"*{}\[\]]{0,48}?)[\"'*_`]*"
    r"(?:[ \t]*=[ \t]*|(?:[ \t]*\.{3,}|[ \t]\.\.)[ \t]*|:(?!//)[*_]*(?:[ \t]+|$))(?P<value>[^\n]*)"
)
#: A form's line that no prose has: a quoted name, or spaces before its value.
SET_APART = re.compile(r"[ \t]*(?:\"[^\"\n]+\":|[^:=\n]{1,48}(?::[ \t]{2,}|[ \t]+=[ \t]|[ \t]*\.{3,})\S)")
#: A setting of a program, which stands among comments: `retries = 20`, also as one that is commented out; or the name
#: of several, `retries:`.
SETTING = re.compile(r"[ \t]*[#;]?[ \t]*[A-Za-z_][\w.-]*(?:[ \t]*=[ \t]*[^\s=]\S*|:)[ \t]*$")
#: A whole object of JSON in one line, and the pairs in it.
OBJECT = re.compile(r"[ \t]*\{[ \t]*\"[^\"\n]+\":[^\n]*\}[ \t]*,?[ \t]*")
PAIR = re.compile(r"\"([^\"\n]+)\":[ \t]*(\"[^\"\n]*\"|\[[^\]\n]*\]|[^,{}\n]+)")
#: An option of a program, or a directive of its formats; -q and -Q are two.
OPTION = re.compile(r"(?<![^\s`'\"(\[,=/|])(?:--?[A-Za-z][\w-]*|%[A-Za-z](?!\w))")
_DESCRIBED = re.compile(
    r"(?P<indent>[ \t]*)--?[A-Za-z?#@](?:(?>(?:\S| (?![ \t]))*)(?:[ \t]{2,}+|\t(?![ \t])))+?(?=[^\s-])"
)
#: The description of an option goes on so much farther to the right than the option.
_DEEPER = 4
#: What is below a heading begins so much farther to the right.
_INDENT = 2
#: A name, and the spaces that set a text beside it apart.
_HUNG = re.compile(r" {0,8}[^\W\d_][\w'-]*(?: [\w'-]+){0,2} {3,}(?=[^\s|])")
#: Two lines and more of a comment, as in a file of settings; the first one is too long for a heading.
_COMMENTS = re.compile(r"^[ \t]*#(?: \S+){5}[^\n]*(?:\n[ \t]*#(?: [^\n]*)?(?=\n|\Z))+", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#", re.MULTILINE)
_NOTE = re.compile(r"[ \t]*[#;]+[ \t]+(?=\S)")
#: What a line ends with if the next one doesn't go on with it.
_ENDED = re.compile(r"[.!?:)]\s*$")
#: Cells and values, in lower case, that are there but say nothing.
EMPTY = frozenset(("", "-", "–", "—", "n/a", "null", '""', "[]", "{}"))  # noqa: RUF001
_SENTENCES = re.compile(r"[.!?] +[A-Z]")
BRACKETS = re.compile(r"[\s{}\[\](),;]*")
COLON = re.compile(r"[.!?] +[A-Z][^.:!?\n]{1,60}?:")
GOES_BACK = re.compile(r"\W*(?:it|its|they|their|them|this|these|that|those|he|his|she|her|both)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FormLine:
    span: Span
    indent: int
    key: str
    value: str
    #: Whether a new record begins here, as after a list marker.
    begins: bool


def field_of(line: str) -> "re.Match[str] | None":
    match = FIELD.match(line)
    is_short = (
        match and (len(match["key"].split()) <= 6 or SET_APART.match(line)) and len(match["value"]) <= _LONGEST_VALUE
    )
    return match if is_short else None


def cells_of(line: str, size: int) -> list[str]:
    """Return the cells of a row of CSV, if it has so many; in quotes, a mark sets nothing apart."""
    for mark in "\t;|,":
        cells = (barred(line) if mark == "|" else line.split(mark)) if line.count(mark) >= size - 1 else []
        if cells and '"' in line:
            with suppress(csv.Error):
                cells = next(csv.reader([line], delimiter=mark, skipinitialspace=True), [])
        # Some programs write a mark behind the last cell, too.
        cells = cells[:size] if not "".join(cells[size:]).strip() else cells
        if len(cells) == size:
            return [cell.strip() for cell in cells]
    return []


def barred(line: str) -> list[str]:
    """Return the cells of a row that bars set apart; only a row with bars at both ends begins with a bar."""
    inner = line.strip()
    inner = inner[1:-1] if inner.startswith("|") and inner.endswith("|") else inner
    return [cell.strip() for cell in inner.split("|")]


def row_of(line: str, size: int, lines: Sequence[str]) -> list[str]:
    """Return the cells of a row of CSV, also if it has fewer than the others."""
    if whole := cells_of(line, size):
        return whole
    mark = next((mark for other in lines for mark in "\t;|," if other.count(mark) == size - 1), "")
    cells = [cell.strip() for cell in line.split(mark)] if mark and '"' not in line else []
    return [*cells, *[""] * (size - len(cells))] if 1 < len(cells) < size else []


def columns_in(heading: str, lines: Sequence[str]) -> list[str]:
    """Return the names of a table's columns, if a heading has them: a line has as many cells, and half are rows."""
    names, filled = heading.split(", "), [line for line in lines if line.strip()]
    if len(names) < 2 or any(map(ITEM.match, filled)):
        return []
    whole = sum(bool(cells_of(line, len(names))) for line in filled)
    # What ends with a full stop may be prose with commas.
    rows = sum(bool(row_of(line, len(names), lines)) and not line.rstrip().endswith(".") for line in filled)
    return names if whole and 2 * max(whole, rows) >= len(filled) else []


def gapped(line: str) -> list[str]:
    """Return the parts of a line that are set apart by spaces."""
    stripped = line.strip()
    if "  " not in stripped and "\t" not in stripped:
        return [stripped] if stripped else []
    return [] if STAMP.match(line) else [cell for cell in _GAP.split(stripped) if cell]


def beside(record: Sequence[FormLine], place: int) -> Iterator[str]:
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
        yield from beside(record, above)


def records_of(fields: Sequence[FormLine]) -> list[list[FormLine]]:
    """Return the lines of a form by the records that they belong to."""
    records: list[list[FormLine]] = []
    for field in fields:
        begun = records[-1] if records else []
        if not begun or field.begins or (field.indent <= begun[0].indent and field.key == begun[0].key):
            records.append([])
        records[-1].append(field)
    return records


def listed_under(before: Sequence[FormLine], record: Sequence[FormLine]) -> Iterator[str]:
    """Yield what an entry of a list begins with, after the list's name: "tanks number 4"."""
    above = next((each for each in reversed(before) if each.indent < record[0].indent), None)
    if above and not above.value and record[0].begins:
        yield f"{above.key} {record[0].key} {record[0].value}"


def fields_in(line: str, start: int, before: str) -> Iterator[FormLine]:
    """Yield the fields of a form's line, which begins at an offset: one, or some that spaces or dots set apart."""
    begins = bool(ITEM.match(line)) or (bool(before.strip()) and bool(BRACKETS.fullmatch(before)))
    cells = _DOT.split(line.strip()) if _DOT.search(line) else gapped(line)
    is_split = len(cells) > 1 and all((field := FIELD.match(cell)) and field["value"] for cell in cells)
    for cell in cells if is_split else [line]:
        if match := field_of(cell):
            at = start + line.index(cell)
            span = Span(at + len(match["indent"]), at + len(cell.rstrip().rstrip(",;")))
            value = match["value"].strip().strip("\"',;*_")
            yield FormLine(span, len(match["indent"]), match["key"].strip(), value, begins)
            begins = False


def label_in(text: str) -> "re.Match[str] | None":
    """Return the label that a paragraph begins with, if any, and what is behind it."""
    label = _RUN_IN.match(text)
    if not label or label.end() == len(text) or GOES_BACK.match(text[label.end() :]):
        return None
    if label["colon"] and COLON.search(text, label.end()):
        # Each of its sentences has a label of its own: "Hotel: 125 euros. Dinner: 28 euros."
        return None
    name = next(filter(None, label.group("bold", "stop", "colon", "gap")))
    is_short = len(name.split()) <= LABEL_WORDS * (1 if label["stop"] else 3) and name.count("(") == name.count(")")
    return label if is_short and (name[0].isupper() or name[0].isdigit()) and not _SAYS.search(name) else None


def names_in(title: str) -> tuple[str, ...]:
    """Return what a title says: without the ending of a file, and with spaces for the marks between words."""
    name = _SUFFIX.sub("", title)
    return tuple(dict.fromkeys((name, _PATH_MARKS.sub(" ", name), title)))


def aligned_in(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the cells of lines whose columns are set apart by spaces, as those of the line above or below them are."""
    aligned: dict[str, list[str]] = {}
    for (line, cells), (following, others) in pairwise((each, gapped(each)) for each in lines):
        if len(cells) < 2 or len(others) < 2:
            continue
        is_prose = any(cell.endswith((".", ":")) for cell in (*cells, *others))
        if is_prose or all(map(FIELD.match, cells)):
            continue
        second = [text.find(parts[1], len(parts[0])) for text, parts in ((line, cells), (following, others))]
        if len(cells) == len(others) or second[0] == second[1]:
            aligned |= {line: cells, following: others}
    return aligned


def is_option(before: str, line: str, following: str) -> bool:
    """Return whether a line is an option of a program, with what it does in the line below it."""
    is_begun = not before.strip() or _ENDED.search(before) is not None
    return is_begun and bool(following.strip()) and OPTION.match(line.lstrip()) is not None


def described_at(lines: Sequence[str], at: int) -> int:
    """Return how many lines an option takes that has what it does beside it, and goes on in lines far to the right."""
    match = _DESCRIBED.match(lines[at])
    if match is None:
        return 0
    deep = len(match["indent"].expandtabs()) + _DEEPER
    rest = takewhile(lambda line: line.strip() and len(line) - len(line.lstrip()) >= deep, lines[at + 1 :])
    return 1 + sum(1 for _ in rest)


def heads_block(lines: Sequence[str], at: int) -> bool:
    """Return whether a line of a few words heads lines that are all further to the right, up to a blank one."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    block = [*takewhile(str.strip, map(lines.__getitem__, range(at + 1, len(lines))))]
    is_deeper = bool(block) and all(len(line) - len(line.lstrip()) >= indent + _INDENT for line in block)
    is_name = len(gapped(lines[at])) == 1 and len(lines[at].split()) <= LABEL_WORDS
    return is_deeper and is_name and not (lines[at].rstrip().endswith(",") or block[0].lstrip()[:1].islower())


def is_entry(lines: Sequence[str], at: int) -> bool:
    """Return whether a line and one beside it begin with a time, as in a log."""
    beside = (place for place in (at - 1, at + 1) if 0 <= place < len(lines))
    return bool(STAMP.match(lines[at]) and any(STAMP.match(lines[place]) for place in beside))


def stand_alone(lines: Sequence[str], at: int, size: int) -> bool:
    """Return whether nothing is beside some lines; a single one with several sentences is a paragraph."""
    is_prose = size == 1 and _SENTENCES.search(lines[at]) is not None
    beside = (lines[place] for place in (at - 1, at + size) if 0 <= place < len(lines))
    return bool(SETTING.match(lines[at])) or not (is_prose or any(map(str.strip, beside)))


def are_entries(lines: Sequence[str]) -> bool:
    """Return whether lines that are set in below a name are entries of a list, and no sentence goes on in the next."""
    inner = [line.strip() for line in lines]
    is_set_in = all(line.startswith(" " * _INDENT) for line in lines)
    is_wrapped = any(line.endswith(tuple(".!?:;,")) for line in inner[:-1])
    return len(lines) > 1 and is_set_in and not is_wrapped and not any(line[0].islower() for line in inner)


def hung_at(lines: Sequence[str], at: int) -> int:
    """Return how many lines a name takes with what is beside it, as in "Needs   scales, a heating block," and below.

    What goes on below begins where the text beside the name does. A single line has others like it around, or none.
    """
    match = _HUNG.match(lines[at])
    if match is None:
        return 0
    column, begun = match.end(), (lines[at - 1 : at] or [""])[0]

    def is_deeper(line: str) -> bool:
        return line[:column].isspace() and bool(line[column : column + 1].strip())

    size = 1 + sum(1 for _ in takewhile(is_deeper, map(lines.__getitem__, range(at + 1, len(lines)))))
    after = (lines[at + size : at + size + 1] or [""])[0]
    alike = [other.end() == column for other in map(_HUNG.match, (begun, after)) if other]
    is_alone = not begun.strip() and not after.strip()
    return size if size > 1 or is_alone or any(alike) or is_deeper(begun) else 0


def uncommented(text: str) -> str:
    """Return a text of the same length with spaces for the marks of comments of several lines, which are prose."""
    return _COMMENTS.sub(lambda match: _COMMENT.sub(lambda mark: " " * len(mark[0]), match[0]), text)


def runs_on(line: str, following: str) -> bool:
    """Return whether the next line may go on with the sentence of a line: each comment may be a note of its own."""
    notes = [_NOTE.match(each) for each in (line, following)]
    if not (notes[0] and notes[1]):
        return True
    return following[notes[1].end()].islower() and line.rstrip()[-1] not in ".:;)\"'"


def is_form(table: Sequence[Sequence[str]]) -> bool:
    """Return whether a table has names in its first column and values in its second, from its first row on."""
    if any(len(cells) != 2 for cells in table) or len(table) < 3:
        return False
    has_digit = [any(map(str.isdigit, value)) for _, value in table]
    is_name = len(table[0][1].split()) > 1 and table[0][1].istitle()
    return has_digit[0] or (is_name and len(set(has_digit[1:])) > 1)


def are_years(cells: Sequence[str]) -> bool:
    """Return whether the cells after the first one are years, one after another, which name columns."""
    years = [int(cell) if _YEAR.fullmatch(cell) else 0 for cell in cells[1:]]
    steps = {after - before for before, after in pairwise(years)}
    return len(years) > 1 and all(years) and steps in ({1}, {-1}) and not (cells[0] and _NO_WORD.fullmatch(cells[0]))


def are_heads(table: Sequence[Sequence[str]], *, is_aligned: bool) -> bool:
    """Return whether the first row is like headings: no cell is a value, or is in its column again.

    Where spaces set columns apart, headings have no digits.
    """
    first, *others = table
    # Options of a program, paths, and types such as application/pdf, head nothing.
    if any(OPTION.match(cell) or _TYPE_OR_PATH.match(cell) for cell in first):
        return False
    if any(cell and cell == other for cells in others for cell, other in zip(first, cells, strict=False)):
        return False
    if is_aligned:
        return not any(map(str.isdigit, "".join(first)))
    return are_years(first) or not any(_NO_WORD.fullmatch(cell) for cell in first if cell)


def stacked_names(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of a table's columns if its first two rows have them: 2023 above Q1 and Q2 is 2023 Q1, 2023 Q2.

    A cell of the first row spans the blank ones after it. The second row has names there, the same for each such cell,
    or what one of them begins with is that of the other or blank.
    """
    if len(table) < 3:
        return []
    width = max(map(len, table[:3]))
    above, below, first = ([*row, *[""] * (width - len(row))] for row in table[:3])
    starts = [0, *(at for at in range(1, width) if above[at]), width]
    groups = [range(start, end) for start, end in pairwise(starts)]
    spans = [group for group in groups if len(group) > 1 and above[group.start]]
    parts = [tuple(below[at] for at in group) for group in spans]
    is_named = not above[0] or below[0] in ("", above[0]) or (len(parts) > 1 and len(set(parts)) == 1)
    has_values = any(each and not _YEAR.fullmatch(each) and _NO_WORD.fullmatch(each) for each in below)
    has_figures = all(
        any(map(str.isdigit, first[at])) for group in groups if len(group) > 1 and above[group.start] for at in group
    )
    if not (parts and is_named and has_figures and all(map(all, parts))) or has_values:
        return []
    pairs = ((above[group.start], below[at]) for group in groups for at in group)
    return [name if name == part else f"{name} {part}".strip() for name, part in pairs]
