"""HTML in Markdown, read as HTML: tags and comments are taken out, line by line, outside of code.

Headings become Markdown's own, pictures their alternative texts. No line is added or removed.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from svc_daemon.extract.builders import fit, one_line
from svc_daemon.extract.formats import superscripts

#: Where something begins that may be markup, or code in which nothing is markup.
_OPENING = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$|(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*\n)+"
    r"|(?P<ticks>`+)|(?P<comment><!--)|(?P<jsx>\{/\*)"
    r"|^ {0,3}\[[^\]\n]{0,20}\]:[ \t]*(?:#|<>)[ \t]*[(\"'](?P<note>[^\n]*)[)\"'][ \t]*$"
    r"|<(?P<end>/?)(?P<tag>[a-zA-Z][a-zA-Z0-9]{0,15})(?P<attributes>\s(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)?/?>",
    re.MULTILINE,
)
_MARKUP = re.compile(r"<(?:!--|/?[a-zA-Z])|\]:[ \t]*(?:#|<>)")
_SIMPLE_CODE = re.compile(r"^```[^`]*^```$|`[^`\n]+`", re.MULTILINE)
_HIDDEN = re.compile(r"\shidden(?=[\s=/]|$)|display\s*:\s*none", re.IGNORECASE)
_ALT = re.compile(r"""\salt\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
#: Why the content of these elements isn't seen.
_UNSEEN = {"script": "script", "style": "style", **dict.fromkeys(("del", "s", "strike"), "struck out")}
_EXPONENT = re.compile(rf"{superscripts.NUMBER}</sup", re.IGNORECASE)
_NEXT_CELL = re.compile(r"\s*<t[dh]\b", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^<>]*>")
_INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font"),
    *("i", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike"),
    *("strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = _HEADINGS | {
    *("address", "article", "aside", "blockquote", "body", "br", "caption", "center", "col", "colgroup"),
    *("dd", "details", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
    *("head", "header", "hr", "html", "iframe", "input", "legend", "li", "main", "menu", "nav", "ol", "p"),
    *("picture", "pre", "section", "source", "summary", "table", "tbody", "td", "tfoot", "th", "thead"),
    *("tr", "ul", "video"),
}
_VOID = {"br", "hr", "img", "input", "source", "col", "wbr"}
#: Code within a line has at most so many characters.
_CODE_SPAN = 2000


class Cleaned(NamedTuple):
    text: str
    #: What no reader sees: the text, the reason and the line, from 1.
    hidden: list[tuple[str, str, int]]
    #: Indexes of the lines that are code by their tags.
    code: frozenset[int]


def clean(text: str, *, is_mdx: bool = False) -> Cleaned:
    """Take the markup of HTML out of a Markdown text."""
    # Most texts have markup in code only, if at all, and are not read twice.
    if not is_mdx and not (_MARKUP.search(text) and _MARKUP.search(_SIMPLE_CODE.sub("", text))):
        return Cleaned(text, [], frozenset())
    cleaner = _Cleaner(fit(text), is_mdx=is_mdx)
    pieces = "".join(cleaner.run())
    return Cleaned(pieces, cleaner.hidden, frozenset(cleaner.code))


class _Cleaner:
    def __init__(self, text: str, *, is_mdx: bool) -> None:
        self.hidden: list[tuple[str, str, int]] = []
        self.code: set[int] = set()
        self._text = text
        self._is_mdx = is_mdx
        self._at = 0
        #: An offset, and its line from 1.
        self._counted = 0, 1
        #: Patterns of ends that don't come any more.
        self._missing: set[str] = set()

    def run(self) -> Iterator[str]:
        while opening := _OPENING.search(self._text, self._at):
            yield self._text[self._at : opening.start()]
            self._at = opening.end()
            yield self._replace(opening)
        yield self._text[self._at :]

    def _replace(self, opening: re.Match[str]) -> str:
        """Return what stands for the markup that begins here, and go to its end."""
        if opening["fence"]:
            mark = opening["fence"]
            end = self._find(rf"^[ \t>]*{mark[0]}{{{len(mark)},}}[ \t]*$")
            self._at = end.end() if end else len(self._text)
        elif opening["ticks"]:
            span = self._text[self._at : self._at + _CODE_SPAN].partition("\n\n")[0]
            end = re.search(rf"(?<!`)`{{{len(opening['ticks'])}}}(?!`)", span)
            self._at += end.end() if end else 0
        elif opening["comment"] or (opening["jsx"] and self._is_mdx):
            return self._hide(opening, "-->" if opening["comment"] else r"\*/\}", "comment")
        elif opening["note"] is not None:
            self.hidden.append((opening["note"], "comment", self._line(opening.start())))
            return "\n" * opening[0].count("\n")
        elif opening["tag"]:
            return self._replace_tag(opening, opening["tag"].lower(), opening["attributes"] or "")
        return self._text[opening.start() : self._at]

    def _replace_tag(self, opening: re.Match[str], tag: str, attributes: str) -> str:
        breaks = "\n" * opening[0].count("\n")
        if tag == "img":
            alt = _ALT.search(attributes)
            return html.unescape(next(filter(None, alt.groups()), "")) + breaks if alt else breaks
        if not opening["end"]:
            reason = _UNSEEN.get(tag) or ("hidden by HTML" if _HIDDEN.search(attributes) and tag not in _VOID else "")
            if reason:
                return self._hide(opening, rf"</{tag}\s*>", reason)
            if tag == "sup" and self._is_exponent(opening):
                return f"^{breaks}"
            if tag == "pre" or tag in _HEADINGS:
                return self._convert(opening, tag)
        if tag in _BLOCKS:
            return breaks or (" | " if opening["end"] and _NEXT_CELL.match(self._text, self._at) else " ")
        return breaks if tag in _INLINE else opening[0]

    def _is_exponent(self, opening: re.Match[str]) -> bool:
        before = self._text[max(0, opening.start() - 1) : opening.start()]
        return before.isdecimal() and _EXPONENT.match(self._text, self._at) is not None

    def _convert(self, opening: re.Match[str], tag: str) -> str:
        """Return a heading as one of Markdown, and preformatted text as it is."""
        breaks, end = "\n" * opening[0].count("\n"), self._find(rf"</{tag}\s*>")
        if end is None:
            return breaks
        words = self._text[opening.end() : end.start()]
        if tag == "pre":
            self._at = end.end()
            first = self._line(opening.start()) - 1
            self.code.update(range(first, first + opening[0].count("\n") + words.count("\n") + 1))
            return breaks + html.unescape(_ANY_TAG.sub("", words))
        if self._text[self._text.rfind("\n", 0, opening.start()) + 1 : opening.start()].strip():
            return breaks or " "
        self._at = end.end()
        title = one_line(html.unescape(clean(words).text))
        return f"{'#' * int(tag[1])} {title}{breaks}" + "\n" * words.count("\n")

    def _hide(self, opening: re.Match[str], end_pattern: str, reason: str) -> str:
        """Leave out everything up to an end. If the end is missing, nothing is left out."""
        end = self._find(end_pattern)
        if end is None:
            return opening[0]
        self._at = end.end()
        inner = self._text[opening.end() : end.start()]
        self.hidden.append((_ANY_TAG.sub(" ", inner), reason, self._line(opening.start())))
        return "\n" * self._text.count("\n", opening.start(), end.end())

    def _find(self, pattern: str) -> re.Match[str] | None:
        """Find an end. What was once missing is not searched again, so that the whole takes linear time."""
        if pattern in self._missing:
            return None
        found = re.compile(pattern, re.IGNORECASE | re.MULTILINE).search(self._text, self._at)
        if found is None:
            self._missing.add(pattern)
        return found

    def _line(self, offset: int) -> int:
        counted, line = self._counted
        self._counted = offset, line + self._text.count("\n", counted, offset)
        return self._counted[1]
