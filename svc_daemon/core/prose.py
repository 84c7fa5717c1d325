"""Prose: which sentences of a passage read as one, and which are rows of tables, code, headings or page furniture."""

import re
from collections.abc import Sequence

from svc_daemon.core.sentences import Span

#: What each costs a sentence in an answer, beside the 1 that the whole question is worth. A row may well be the answer.
ROW, FRAGMENT, CODE = 0.2, 0.3, 0.5

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
#: An end of a sentence, with what may close behind it.
_ENDED = re.compile(r"[.!?…。！？][\"'»”’)\]*_`]*(?:\s*\[\d+\])*$")  # noqa: RUF001
#: Dots that lead to a page's number, a notice, a page's own number.
_FURNITURE = re.compile(
    r"(?:\.[ \t]?){4,}|^(?:copyright|©|\(c\))|all rights reserved|^page \d+(?: of \d+)?\b|\bcookies?\b.*\baccept\b",
    re.IGNORECASE,
)
#: More of these than one in so many characters that are no spaces is no language.
_SYMBOL = re.compile(r"[{}<>=;$\\|/#~^&@_]|::|--")
_SYMBOLS_EVERY = 12
#: What stands in backquotes is a name in the sentence, however it looks.
_NAMED = re.compile(r"`[^`\n]*`")
#: With fewer words and without an end it is a heading or an item of a list.
_FEWEST_WORDS = 6


def fences_of(text: str) -> list[Span]:
    """Where code stands that is marked as such."""
    return [Span(*match.span()) for match in _FENCE.finditer(text)]


def cost_of(text: str, span: Span, fences: Sequence[Span]) -> float:
    """What the sentence loses by what it is; 0 for prose."""
    said = text[span.start : span.end]
    if any(fence.start < span.end and span.start < fence.end for fence in fences) or _FURNITURE.search(said):
        return CODE
    if " | " in said:
        return ROW
    plain = _NAMED.sub("x", said)
    if len(_SYMBOL.findall(plain)) * _SYMBOLS_EVERY > len(plain):
        return CODE
    return 0.0 if _ENDED.search(said) or len(said.split()) >= _FEWEST_WORDS else FRAGMENT
