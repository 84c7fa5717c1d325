"""Man pages, by the macros of man and mdoc: sections, items and code, with the words that requests and escapes show."""

# ruff: noqa: RUF001 - dashes and quotation marks that look like others

import re

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
_SHOWN = frozenset({"B", "I", "SM", "SB", "R", "UR", "MT", "TQ"})
_BREAKS = frozenset({"PP", "P", "LP", "Pp", "HP", "br", "sp", "RS", "RE", "El", "Ed"})
_ITEMS = frozenset({"IP", "It"})
_CODE = {"nf": "fi", "EX": "EE"}
#: Requests that take the lines after them for a macro or a comment, by how many arguments come before the end's name.
_DEFINITIONS = {"ig": 0, **dict.fromkeys(("de", "de1", "dei", "am", "am1", "ami"), 1)}
_ESCAPES = re.compile(
    r"\\(?:f(?:\[[^\]]{0,99}\]|\(..|.)|s[-+]?(?:\d{1,2}|\[[^\]]{0,99}\])|\*?\((?P<two>..)|\*?\[(?P<long>[^\]]{0,99})\]|[hvwm]'[^']{0,99}'|m\[[^\]]{0,99}\]"
    r"|(?P<one>[-~ e0.\\'`])|[&|^)/,:%cdupztr]|\*(?P<string>.))"
)
_CHARACTERS: dict[str, str] = dict(
    re.findall(
        r"(\S+?)=(\S+)",
        "em=— en=– hy=- bu=• aq=' dq=\" lq=“ rq=” oq=‘ cq=’ co=© rg=® tm=™ ti=~ ha=^ rs=\\ ga=` mu=× de=° or=| "
        "->=→ <-=← ua=↑ da=↓ +-=± 12=½ Eu=€ ss=ß :a=ä :o=ö :u=ü :A=Ä :O=Ö :U=Ü 'e=é `e=è Po=£ lB=[ rB=] lC={ rC=} la=⟨ "
        "ra=⟩ mi=− sc=§ at=@ sh=#",
    )
)


def read(given: Given) -> Document:
    """Read a man page, or another text whose name ends as one's."""
    text, warnings = decode(given.data, given.charset)
    if not _MAN_PAGE.search(text):
        return read_text(given)
    marked = MarkedLines(text)
    page = _ManPage(marked)
    number = 0
    while number < len(marked.lines):
        number = max(number, page.take(number, marked.lines[number])) + 1
    return marked.finish(warnings)


class _ManPage:
    def __init__(self, marked: MarkedLines) -> None:
        self._marked = marked
        self._mdoc = MdocLines()
        #: The macro that ends the code that this line is in; empty outside of code.
        self._code_end = ""
        self._is_item = False

    def take(self, number: int, line: str) -> int:
        """Mark a line. Returns the index of the last line that belongs to it."""
        lines, kinds = self._marked.lines, self._marked.kinds
        if comment := _COMMENT.search(line):
            self._marked.hide_end(number, comment.start(1))
            line = lines[number]
        request = _REQUEST.fullmatch(line) if line.startswith((".", "'")) else None
        if request is None:
            lines[number] = show(line)
            is_shown = bool(line.strip())
            kinds[number] = CODE if self._code_end else kinds[number] if not (self._is_item and is_shown) else ITEM
            self._is_item = self._is_item and not is_shown
            return number
        macro, rest = request[1] or "", request[2]
        if macro in _DEFINITIONS:
            return self._hide_definition(number, macro, rest)
        if macro in _LEVELS:
            return self._take_heading(number, macro, rest)
        shown = self._run(macro, rest)
        lines[number] = show(shown)
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

    def _take_heading(self, number: int, macro: str, rest: str) -> int:
        """Make a heading of the macro's arguments, or of the next line if it has none."""
        is_mdoc = macro in {"Sh", "Ss"}
        title, last = self._mdoc.show("No", rest) if is_mdoc else " ".join(arguments(rest)), number
        if not title and number + 1 < len(self._marked.lines):
            last = number + 1
            title = self._marked.lines[last].lstrip(".' ")
        title = self._marked.lines[number] = show(title)
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
            self._marked.title = show(words[0] + section) if words else None
        elif macro in _CODE or (macro == "Bd" and not {"-literal", "-unfilled"}.isdisjoint(words)):
            self._code_end = _CODE.get(macro, "Ed")
        elif macro == self._code_end:
            self._code_end = ""
        elif macro in _JOINED:
            return "".join(words)
        elif macro == "IP":
            return words[0] if words else ""
        elif macro in _SHOWN:
            return " ".join(words)
        elif macro in MACROS:
            return self._mdoc.show(macro, rest)
        return ""


def show(line: str) -> str:
    """Return a line with the characters that escapes stand for."""
    return _ESCAPES.sub(_escaped, line) if "\\" in line else line


def _escaped(found: re.Match[str]) -> str:
    if found["one"]:
        return {"e": "\\", "\\": "\\", "~": " ", "0": " "}.get(found["one"], found["one"])
    return _CHARACTERS.get(found["two"] or found["long"] or "", "")
