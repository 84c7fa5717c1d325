"""Man pages, by the macros of man and mdoc: sections, items and code, with the words that requests and escapes show."""

# ruff: noqa: RUF001 - dashes and quotation marks that look like others

import re
import unicodedata
from collections.abc import Mapping

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.text.line_marks import BLANK, CODE, ITEM, MarkedLines
from svc_daemon.extract.formats.text.mdoc import MACROS, MdocLines, arguments
from svc_daemon.extract.formats.text.texts import decode, read_text

#: Only a file with one of these lines is a man page; others with such names are logs.
_MAN_PAGE = re.compile(r"^[.'][ \t]*(?:TH|SH|Dd|Dt|Sh|so)[ \t]", re.MULTILINE)
_REQUEST = re.compile(r"[.'][ \t]*(%?[A-Za-z0-9]{1,10}|\\\")?[ \t]*(.*)")
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*(\\[\"#])")
_LEVELS = {"SH": 1, "Sh": 1, "SS": 2, "Ss": 2}
#: Macros that show their arguments without spaces between them.
_JOINED = frozenset({"BR", "RB", "IR", "RI", "BI", "IB"})
_SHOWN = frozenset({"B", "I", "SM", "SB", "R", "UR", "MT", "TQ", "OP", "SY"})
_BREAKS = frozenset({"PP", "P", "LP", "Pp", "HP", "br", "sp", "RS", "RE", "El", "Ed"})
_ITEMS = frozenset({"IP", "It"})
_CODE = {"nf": "fi", "EX": "EE"}
#: Requests that take the lines after them for a macro or a comment, by how many arguments come before the end's name.
_DEFINITIONS = {"ig": 0, **dict.fromkeys(("de", "de1", "dei", "am", "am1", "ami"), 1)}
_CHOICES = frozenset({"if", "ie", "el"})
_MOST_LAYOUT_LINES, _MOST_CONTINUED, _MOST_CHOICES, _LONGEST_STRING = 20, 20, 20, 20
_CONDITION = re.compile(r"(?:(!?)'([^']*)'([^']*)'|([nt])|(\\n(?:\(\.g|\[\.g\])))[ \t]*(.*)")
_ESCAPES = re.compile(
    r"\\(?:f(?:\[[^\]]{0,99}\]|\(..|.)|s[-+]?(?:\d{1,2}|\[[^\]]{0,99}\])|\*?\((?P<two>..)|\*?\[(?P<long>[^\]]{0,99})\]|[hvwm]'[^']{0,99}'|m\[[^\]]{0,99}\]"
    r"|(?P<one>[-~ e0.\\'`])|[&|^)/,:%cdupztr]|\*(?P<string>.))"
)
_CHARACTERS: dict[str, str] = dict(
    re.findall(
        r"(\S+?)=(\S+)",
        "em=— en=– hy=- bu=• aq=' dq=\" lq=“ rq=” oq=‘ cq=’ co=© rg=® tm=™ ti=~ ha=^ rs=\\ ga=` mu=× de=° or=| "
        "->=→ <-=← ua=↑ da=↓ +-=± 12=½ Eu=€ ss=ß :a=ä :o=ö :u=ü :A=Ä :O=Ö :U=Ü Po=£ lB=[ rB=] lC={ rC=} la=⟨ "
        "ra=⟩ mi=− sc=§ at=@ sh=# Fo=« Fc=» fo=‹ fc=› Bq=„ bq=‚ ae=æ AE=Æ oe=œ OE=Œ /l=ł /L=Ł /o=ø /O=Ø -D=Ð Sd=ð "
        "Tp=þ TP=Þ oa=å oA=Å sl=/ pd=∂ **=* *p=π *b=β *m=μ ul=_ aa=´ ci=○ r!=¡ r?=¿ ts=ς Aq=' R=® Tm=™ Gt=> Lt=<",
    )
)
#: Signs that stand before a letter, and the characters that put them on it.
_ACCENTS = dict(zip("'`^~:,vo-", "\u0301\u0300\u0302\u0303\u0308\u0327\u030c\u030a\u0304", strict=True))
_CODE_POINT = re.compile(r"u(?!0000|D[89A-F]..$)([0-9A-F]{4,5})")


def read(given: Given) -> Document:
    """Read a man page, or another text whose name ends as one's."""
    text, warnings = decode(given.data, given.charset)
    if not _MAN_PAGE.search(text):
        return read_text(given)
    marked = MarkedLines(text)
    join_continued(marked.lines)
    page = _ManPage(marked)
    number = 0
    while number < len(marked.lines):
        number = max(number, page.take(number, marked.lines[number])) + 1
    return marked.finish(warnings)


def join_continued(lines: list[str]) -> None:
    """Put what continues a line, after a backslash at its end, on that line, and leave an empty line in its place."""
    first = 0
    for number in range(1, len(lines)):
        begun = lines[first]
        is_open = begun.endswith("\\") and not begun.endswith(("\\\\", "\\{\\")) and not _COMMENT.search(begun)
        if is_open and number - first <= _MOST_CONTINUED:
            lines[first], lines[number] = begun[:-1] + lines[number], ""
        else:
            first = number


class _ManPage:
    def __init__(self, marked: MarkedLines) -> None:
        self._marked = marked
        self._mdoc = MdocLines()
        #: The macro that ends the code that this line is in; empty outside of code.
        self._code_end = ""
        self._is_item = False
        #: Whether the last `ie` chose nothing, so that its `el` does.
        self._is_else = False
        self._is_table = False
        self._strings: dict[str, str] = {}

    def take(self, number: int, line: str) -> int:
        """Mark a line. Returns the index of the last line that belongs to it."""
        lines, kinds = self._marked.lines, self._marked.kinds
        if comment := _COMMENT.search(line):
            self._marked.hide_end(number, comment.start(1))
            line = lines[number]
        request = _REQUEST.fullmatch(line) if line.startswith((".", "'")) else None
        for _ in range(_MOST_CHOICES):
            if request is None or request[1] not in _CHOICES:
                break
            line = self._choose(request[1], request[2])
            request = _REQUEST.fullmatch(line) if line.startswith((".", "'")) else None
        if request is None:
            line = line.replace("T{", "").replace("T}", "") if self._is_table else line
            lines[number] = self._show(line)
            is_shown = bool(line.strip())
            kinds[number] = CODE if self._code_end else kinds[number] if not (self._is_item and is_shown) else ITEM
            self._is_item = self._is_item and not is_shown
            return number
        macro, rest = request[1] or "", request[2]
        if macro in _DEFINITIONS:
            return self._hide_definition(number, macro, rest)
        if macro in _LEVELS:
            return self._take_heading(number, macro, rest)
        if macro in {"TS", "T"}:
            return self._begin_table(number)
        self._is_table &= macro != "TE"
        shown = self._run(macro, rest)
        lines[number] = self._show(shown)
        is_item = macro in _ITEMS or (self._is_item and bool(shown))
        kinds[number] = BLANK if not shown else CODE if self._code_end else ITEM if is_item else "paragraph"
        self._is_item = macro == "TP" or (self._is_item and not shown)
        return number

    def _hide_definition(self, number: int, macro: str, rest: str) -> int:
        """Hide a definition to its end; only its first line if it has none, since the rest may be the page."""
        end = [*arguments(rest)[_DEFINITIONS[macro] :], "."][0]
        closing = re.compile(rf"[.'][ \t]*{re.escape(end)}(?:[ \t].*|\\\".*)?")
        last = self._marked.find(closing, number + 1)
        is_closed = last > number and closing.fullmatch(self._marked.lines[last])
        last = last if is_closed else number
        self._marked.hide(number, last, "macro")
        return last

    def _choose(self, macro: str, rest: str) -> str:
        """Return the line that a condition lets through on a terminal; an empty request if none."""
        if macro == "el":
            return rest.lstrip() if self._is_else else "."
        found = _CONDITION.fullmatch(rest)
        is_true = found is not None and (bool(found[5]) or found[4] == "n")
        if found and found[2] is not None:
            is_true = (found[2] == found[3]) != bool(found[1])
        self._is_else = macro == "ie" and not is_true
        return found[6] if found and is_true and not found[6].startswith("\\{") else "."

    def _begin_table(self, number: int) -> int:
        """Hide how a table is laid out: the lines to one that ends with a period."""
        last = self._marked.find(re.compile(r".*\.[ \t]*"), number + 1)
        last = last if last - number <= _MOST_LAYOUT_LINES else number
        self._marked.hide(number, last, "macro")
        self._is_table = True
        return last

    def _show(self, line: str) -> str:
        return show(line, self._strings)

    def _take_heading(self, number: int, macro: str, rest: str) -> int:
        """Make a heading of the macro's arguments, or of the next line if it has none."""
        is_mdoc = macro in {"Sh", "Ss"}
        title, last = self._mdoc.show("No", rest) if is_mdoc else " ".join(arguments(rest)), number
        if not title and number + 1 < len(self._marked.lines):
            last = number + 1
            title = self._marked.lines[last].lstrip(".' ")
        title = self._marked.lines[number] = self._show(title)
        if last > number:
            self._marked.lines[last] = ""
        self._marked.add_heading(_LEVELS[macro], title, number, last)
        self._code_end, self._is_item = "", False
        return last

    def _run(self, macro: str, rest: str) -> str:
        """Return what a macro shows, and note what it changes."""
        words = arguments(rest)
        if macro in {"TH", "Dt"}:
            section = f"({words[1]})" if len(words) > 1 else ""
            self._marked.title = self._show(words[0] + section) if words else None
        elif macro in _CODE or (macro == "Bd" and not {"-literal", "-unfilled"}.isdisjoint(words)):
            self._code_end = _CODE.get(macro, "Ed")
        elif macro == self._code_end:
            self._code_end = ""
        elif macro == "ds":
            name, _, value = rest.partition(" ")
            # Definitions for a printer come after those for a terminal.
            self._strings.setdefault(name, show(value.strip().removeprefix('"'), self._strings)[:_LONGEST_STRING])
        elif macro in {"URL", "MTO"} and words:
            return f"{words[1] if len(words) > 2 else ''} <{words[0]}>{words[-1] if len(words) > 1 else ''}".strip()
        elif macro in _JOINED:
            return "".join(words)
        elif macro == "IP":
            return "".join(words[:1])
        elif macro in _SHOWN:
            return " ".join(words)
        elif macro in MACROS:
            return self._mdoc.show(macro, rest)
        return ""


def show(line: str, strings: Mapping[str, str]) -> str:
    """Return a line with the characters and the strings that escapes stand for."""

    def escaped(found: re.Match[str]) -> str:
        if found["one"]:
            return {"e": "\\", "\\": "\\", "~": " ", "0": " "}.get(found["one"], found["one"])
        name = found["two"] or found["long"] or found["string"] or ""
        if found[0].startswith("\\*") and name in strings:
            return strings[name]
        return _CHARACTERS.get(name) or find_letter(name)

    return _ESCAPES.sub(escaped, line) if "\\" in line else line


def find_letter(name: str) -> str:
    """Return the letter with a sign, or with a code point, that has this name; empty if none."""
    if code_point := _CODE_POINT.fullmatch(name):
        return chr(int(code_point[1], 16))
    is_letter = len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha()
    return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]]) if is_letter else ""
