"""Splits text into sentences, as positions in the text, so that answers can quote it exactly.

A line break separates sentences only at an empty line, beside a table row, before a list marker, or after a short line
such as a heading. `cost_of` lowers the score of sentences that are not prose.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

#: Maximum length of a sentence in characters; a longer one is cut at a space.
LONGEST = 400

_LINE_END = re.compile(r"\n")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
#: What follows the number of a day, as in German and the Nordic languages: "28. Februar".
MONTH_AFTER_DAY = (
    r"(?i:januari?|jänner|februari?|märz|mars|marts|april|mai|maj|juni|juli|augusti?|september|oktober|november|"
    r"de[zsc]ember)\b"
)
_NUMBERED = rf"\d{{1,3}}[.)]\s++(?!{MONTH_AFTER_DAY})"
#: The marker of a list item, quotation, heading or table row. "-18" has a sign, and "-k" and "--prune" are options.
_MARKED = re.compile(rf"[ \t]*(?:[-+]++(?=[ \t]|$)|-(?=[^\W\d_]{{2}})|[*•‣▪◦|>]|#{{1,6}}[ \t]|{_NUMBERED})")
#: Markers and white space before a sentence. "*.txt" has none, and ">= 3" says more than "3".
_LEADING = re.compile(rf"(?>(?:[-+*]++(?=\s|$)|[\s•‣▪◦|]++|>++(?!\s*+[\d=])|#{{1,6}}\s++|{_NUMBERED})*)")
#: The end of a sentence, with closing quotes and citation marks.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'»”’)\]]*(?:\s*\[\d+\])*(?=\s|$)|[。！？]+[」』”]*")  # noqa: RUF001
#: Abbreviations whose full stop does not end a sentence.
_SHORTENED = (
    "al approx bzw ca co corp dept dr e.g ed est etc ext hrs i.e inc incl jan feb mar apr jun jul aug sep sept oct nov "
    "dec ltd mr mrs ms prof ref resp sr st tel u.s u.k viz vs z.b abs bzgl d.h evtl ggf inkl mio mme mrd núm pág sra "
    "u.a vgl zzgl"
)
_SHORTENED_BEFORE_NUMBERS = "art cf ch eq fig max min no nos nr op p para pp sec vol"
_ABBREVIATIONS = frozenset(_SHORTENED.split())
_NUMBERING = frozenset(_SHORTENED_BEFORE_NUMBERS.split())
_DAY_END = re.compile(rf"\.\s{MONTH_AFTER_DAY}")
#: A number, or a date of only numbers, whose full stop is no end before a small letter: "Bis zum 31.05. zahlen."
_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,2}){0,2}")
_SMALL = re.compile(r"\. [^\W\d_]")
#: What a numeral follows in German: "Der 2. Stock ist zu."
_BEFORE_NUMERAL = re.compile(r"\b(?:de[rmns]|die|das|am|im|zum|zur|vom|beim|jede[rnms]?) \Z", re.IGNORECASE)
_SPACE = re.compile(r"\s*")
_LAST_WORD = re.compile(r"[\w.]+$")


class Span(NamedTuple):
    """A part of a text, as character offsets; the end is exclusive."""

    start: int
    end: int


def sentences_of(text: str, longest: int = LONGEST) -> list[Span]:
    """Find the sentences, in order, without list markers; each has a letter or a digit.

    A sentence of more than `longest` characters is returned in pieces.
    """
    breaks = list(_PARAGRAPH.finditer(text))
    ends = [*(each.start() for each in breaks), len(text)]
    paragraphs = map(Span, [0, *(each.end() for each in breaks)], ends)
    blocks = (block for paragraph in paragraphs for block in _blocks(text, paragraph))
    whole: list[Span] = []
    for block in blocks:
        stops: list[int] = []
        for match in _END.finditer(text, block.start, block.end):
            if not _goes_on(text, stops[-1] if stops else block.start, match.start()):
                stops.append(match.end())
        whole += map(Span, [block.start, *stops], [*stops, block.end])
    found = (piece for sentence in whole for piece in _cut(text, sentence, longest))
    return [span for span in found if any(map(str.isalnum, text[span.start : span.end]))]


def _blocks(text: str, paragraph: Span) -> Iterator[Span]:
    """Split a paragraph into groups of lines, so that no sentence continues from one group to the next."""
    breaks = [at.start() for at in _LINE_END.finditer(text, paragraph.start, paragraph.end)]
    lines = list(map(Span, [paragraph.start, *(at + 1 for at in breaks)], [*breaks, paragraph.end]))
    longest = max(line.end - line.start for line in lines)
    # Extraction separates the cells of a table row by " | ".
    rows = [text.find(" | ", line.start, line.end) >= 0 for line in lines]
    start = paragraph.start
    for place, (line, following) in enumerate(pairwise(lines)):
        is_marked = rows[place] or rows[place + 1] or _MARKED.match(text, following.start, following.end)
        is_short = (line.end - line.start) * 5 < longest * 3
        if is_marked or (is_short and text[following.start : following.end].lstrip()[:1].isupper()):
            yield Span(start, line.end)
            start = following.start
    yield Span(start, paragraph.end)


def _goes_on(text: str, start: int, stop: int) -> bool:
    """Return whether the sentence continues after the punctuation mark at `stop`.

    The mark may belong to an ellipsis, abbreviation or item number.
    """
    if text.startswith(("…", "..."), stop) and text[start:stop].endswith(" "):
        return True
    if text[stop] != ".":
        return False
    # Search only 12 characters: no abbreviation is longer, and a text may be one endless word.
    word = _LAST_WORD.search(text, max(start, stop - 12), stop)
    if word is None:
        return False
    if _NUMBER.fullmatch(word[0]):
        is_marker = word[0].isdigit() and not text[start : word.start()].strip()
        return is_marker or _DAY_END.match(text, stop) is not None or _is_within(text, word.start(), stop)
    if word[0].lower() in _NUMBERING:
        return text[stop + 1 : stop + 4].lstrip()[:1].isdigit()
    is_initial = len(word[0]) == 1 and word[0].isalpha() and word[0].isupper() and text[word.start() - 1] != "°"
    return word[0].lower() in _ABBREVIATIONS or is_initial


def _is_within(text: str, start: int, stop: int) -> bool:
    """Return whether the full stop of a number or date is none of a sentence."""
    following = _SMALL.match(text, stop)
    if following is None:
        return False
    return following[0][-1].islower() or _BEFORE_NUMERAL.search(text, max(0, start - 8), start) is not None


def _cut(text: str, sentence: Span, longest: int) -> Iterator[Span]:
    """Yield the sentence without list markers and table bars around it, in pieces if it is too long."""
    start = _skip(text, sentence, _LEADING)
    # Also remove the bar after the last cell of a table row.
    end = start + len(text[start : sentence.end].rstrip(" \t\r\n\f\v|"))
    while end - start > longest:
        space = max(text.rfind(" ", start, start + longest), text.rfind("\n", start, start + longest))
        stop = space if space > start else start + longest
        yield Span(start, stop)
        start = _skip(text, Span(stop, end), _SPACE)
    if start < end:
        yield Span(start, end)


def _skip(text: str, span: Span, leading: re.Pattern[str]) -> int:
    """Return the offset after the text that `leading` matches at the start of the span."""
    match = leading.match(text, span.start, span.end)
    return match.end() if match else span.start


#: Subtracted from the score (at most about 1) of a sentence that is not prose. A table row loses least, because it may
#: well contain the answer.
ROW, FRAGMENT, CODE = 0.2, 0.3, 0.5

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
#: The end of a sentence, with closing quotes, brackets, markup and citation marks.
_ENDED = re.compile(r"[.!?…。！？][\"'»”’)\]*_`]*(?:\s*\[\d+\])*$")  # noqa: RUF001
#: Boilerplate: dot leaders of a table of contents, copyright and cookie notices, page numbers.
_FURNITURE = re.compile(
    r"(?:\.[ \t]?){4,}|^(?:copyright|©|\(c\))|all rights reserved|^page \d+(?: of \d+)?\b|\bcookies?\b.*\baccept\b",
    re.IGNORECASE,
)
#: Symbols typical of code. Text with more than one of them per `_SYMBOLS_EVERY` characters counts as code.
_SYMBOL = re.compile(r"[{}<>=;$\\|/#~^&@_]|::|--")
_SYMBOLS_EVERY = 12
#: Text in backquotes counts as a name, not as code.
_NAMED = re.compile(r"`[^`\n]*`")
#: Text with fewer words than this and without end punctuation is a heading or a list item.
_FEWEST_WORDS = 6


def fences_of(text: str) -> list[Span]:
    """Find the spans of fenced code blocks."""
    return [Span(*match.span()) for match in _FENCE.finditer(text)]


def cost_of(text: str, span: Span, fences: Sequence[Span]) -> float:
    """Return how much to subtract from the sentence's score; 0 for prose."""
    sentence = text[span.start : span.end]
    if any(fence.start < span.end and span.start < fence.end for fence in fences) or _FURNITURE.search(sentence):
        return CODE
    if " | " in sentence:
        return ROW
    plain = _NAMED.sub("x", sentence)
    if len(_SYMBOL.findall(plain)) * _SYMBOLS_EVERY > len(plain):
        return CODE
    return 0.0 if _ENDED.search(sentence) or len(sentence.split()) >= _FEWEST_WORDS else FRAGMENT
