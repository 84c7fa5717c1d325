"""LaTeX: sections, items and code, with the letters that commands stand for, and without comments.

Commands that only set type are taken out; others stay, because only TeX itself knows what they show.
"""

# ruff: noqa: RUF001 - dashes and letters that look like others

import re
import unicodedata

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.text.line_marks import CODE, ITEM, MarkedLines
from svc_daemon.extract.formats.text.texts import decode

_LEVELS = {
    "part": 1,
    "chapter": 2,
    "section": 3,
    "subsection": 4,
    "subsubsection": 5,
    "paragraph": 6,
    "subparagraph": 7,
    "frametitle": 5,
    "framesubtitle": 6,
    "addchap": 2,
    "addsec": 3,
    "minisec": 6,
}
_HEADING = re.compile(rf"\s*\\({'|'.join(_LEVELS)})\*?\s*(?:\[[^\]]*\]\s*)?(?=\{{)")
_TITLE = re.compile(r"\s*\\title\s*(?:\[[^\]]*\]\s*)?(?=\{)")
_FRAME = re.compile(r"\s*\\begin\{frame\}(?:<[^>]*>|\[[^\]]*\])*(?=\{)")
_BEGIN = re.compile(
    r"\s*(?:\\begin\{(verbatim\*?|Verbatim|lstlisting|minted|alltt|comment)\}.*|\\iffalse[ \t]*(?:%.*)?)"
)
_END_IF = re.compile(r"\s*\\(?:fi|else)\b.*")
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*(%)")
#: Headings have at most so many lines.
_HEADING_LINES = 5

_ACCENTS = {
    **dict(zip("`'^\"~=.", "\u0300\u0301\u0302\u0308\u0303\u0304\u0307", strict=True)),
    **dict(zip("uvHcdbkr", "\u0306\u030c\u030b\u0327\u0323\u0331\u0328\u030a", strict=True)),
}
_ACCENT = re.compile(
    r"\\(?:([`'^\"~=.])\s*|([uvHcdbkr])(?=[ {\\])\s*)(?:\{\\?([a-zA-Z])\}|\\([ij])(?![a-zA-Z])\s?|([a-zA-Z]))"
)
_LETTERS = dict(
    re.findall(
        r"(\S+)=(\S+)",
        "ss=ß o=ø O=Ø ae=æ AE=Æ oe=œ OE=Œ aa=å AA=Å l=ł L=Ł i=ı dots=… ldots=… textendash=– textemdash=— "
        "texteuro=€ euro=€ copyright=© pounds=£ S=§ LaTeX=LaTeX TeX=TeX textbackslash=\\",
    )
)
_LETTER = re.compile(rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![a-zA-Z])(?:\{{\}}|[ \t]+)?")
#: Commands whose argument is shown as it is, and those that show nothing.
_TYPE = re.compile(
    r"\\(?:emph|text(?:bf|it|tt|sc|sf|sl|rm|up|md|normal)?|underline|enquote|mbox|footnote|caption|thanks|url|hbox)\*?"
    r"\{([^{}]*)\}"
)
#: Texts that stand elsewhere on the page than the word before them.
_NOTE = re.compile(r"(?<=\S)\\(footnote|caption|thanks)\*?(?=\{)")
_UNSEEN = re.compile(
    r"\\(?:label|vspace|hspace|index|pagestyle|thispagestyle)\*?\{[^{}]*\}|\\(?:noindent|centering|maketitle)\b"
)
_SIGN = re.compile(r"\\([&%$#_{}])")


def read(given: Given) -> Document:
    """Read LaTeX. What is before the document, or after it, is code."""
    text, warnings = decode(given.data, given.charset)
    marked = MarkedLines(text)
    lines = marked.lines
    number = next((place for place, line in enumerate(lines) if line.lstrip().startswith("\\begin{document}")), -1)
    marked.mark(CODE, 0, number)
    for place in range(number + 1):
        if _TITLE.match(lines[place]) and (found := _find_argument(marked, place, _TITLE)):
            marked.title = show(found[0])
    number += 1
    while number < len(lines):
        number = max(number, _take(marked, number)) + 1
    return marked.finish(warnings)


def _take(marked: MarkedLines, number: int) -> int:
    """Mark what begins with this line. Returns the index of its last line."""
    line = marked.lines[number]
    if begin := _BEGIN.fullmatch(line):
        end = re.compile(rf".*\\end\{{{re.escape(begin[1])}\}}.*") if begin[1] else _END_IF
        last = marked.find(end, number + 1)
        if begin[1] in {"comment", None}:
            marked.hide(number, last)
        else:
            marked.mark(CODE, number, last)
        return last
    if line.lstrip().startswith("\\end{document}"):
        marked.hide(number, len(marked.lines) - 1, "after the end of the document")
        return len(marked.lines) - 1
    if "%" in line and (comment := _COMMENT.search(line)):
        marked.hide_end(number, comment.start(1))
    for pattern in (_HEADING, _TITLE, _FRAME):
        heading = pattern.match(marked.lines[number])
        found = _find_argument(marked, number, pattern) if heading else None
        if heading and found:
            marked.add_heading(_LEVELS.get(heading[1], 5) if heading.lastindex else 1, show(found[0]), number, found[1])
            return found[1]
    marked.lines[number] = show(marked.lines[number])
    if marked.lines[number].lstrip().startswith("\\item"):
        marked.kinds[number] = ITEM
    return number


def _find_argument(marked: MarkedLines, number: int, command: re.Pattern[str]) -> tuple[str, int] | None:
    """Return the argument of the command that begins a line, and the index of its last line; None if it has no end."""
    text = "\n".join(marked.lines[number : number + _HEADING_LINES])
    start = command.match(text)
    depth = 0
    for place in range(start.end() if start else len(text), len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth and start:
            return text[start.end() + 1 : place], number + text.count("\n", 0, place)
    return None


def show(line: str) -> str:
    """Return a line as it is shown, as far as single commands say."""
    if "\\" in line:
        line = _LETTER.sub(lambda found: _LETTERS[found[1]], _ACCENT.sub(_accented, line))
        line = _SIGN.sub(r"\1", _TYPE.sub(r"\1", _TYPE.sub(r"\1", _UNSEEN.sub("", _NOTE.sub(r" \\\1", line)))))
    return line.replace("~", " ").replace("``", "“").replace("''", "”").replace("---", "—").replace("--", "–")


def _accented(found: re.Match[str]) -> str:
    accent, letter = found[1] or found[2], found[3] or found[4] or found[5]
    return unicodedata.normalize("NFC", letter + _ACCENTS[accent])
