"""Pieces: cuts what is between two blanks of a text into words, and finds what is to be kept whole beside them.

Each piece becomes a string that shows the kind of each of its characters, such as `AAAA.aa` for `READ.me`, and is cut
by that.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from svc_daemon.core.dates import numbered
from svc_daemon.core.text.folding import fold, normalize

#: Maximum size of a term, in bytes.
TERM_BYTES = 255
#: A run of letters and digits of more parts is a name or a number in code, and stays whole.
MOST_PARTS = 8
#: Words joined by more signs than this are a list or a path: no whole of them is kept.
MOST_JOINED = 16


class TextUnitKind(Enum):
    """How the parts of a unit are searched."""

    #: One word of letters, or a number.
    WORD = "word"
    #: Several words and numbers, joined by signs such as hyphens, or only by capitals.
    COMPOUND = "compound"
    #: A run of characters of a script without spaces between its words.
    UNSPACED = "unspaced"
    #: A sign that is a word by itself, such as % and §.
    SYMBOL = "symbol"


class Part(NamedTuple):
    """One word of a unit, with its place in the text."""

    #: In lower case, otherwise as written; numbers without zeros before them.
    text: str
    start: int
    end: int
    #: Whether it is written in capitals.
    is_capital: bool = False
    #: The zeros that were before a number, as in `pep-0484`.
    zeros: str = ""


class TextUnit(NamedTuple):
    """What is searched as one: a word, or words without a blank between them."""

    kind: TextUnitKind
    parts: tuple[Part, ...]
    #: The parts and the signs between them, folded. Hyphens, underscores and apostrophes are left out, except between
    #: digits.
    whole: str

    @property
    def has_digits(self) -> bool:
        return any(part.text[0].isdecimal() for part in self.parts)

    @property
    def is_initials(self) -> bool:
        """Whether these are one or two letters each with dots between them, as in U.S. and Ph.D."""
        return re.fullmatch(r"[^\W\d_]{1,2}(?:\.[^\W\d_]{1,2})+", self.whole) is not None


#: Scripts without spaces, of which pairs of characters are searched: Han, kana, Hangul.
_WIDE = (
    *((0x3005, 0x3007), (0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF)),
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF), (0xAC00, 0xD7A3), (0x1100, 0x11FF)),
)
#: Scripts without spaces, of which pairs of consonants with their vowels and marks are searched: Thai and Lao, Burmese,
#: Khmer.
_STACKED = ((0xE00, 0xEFF), (0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0x1780, 0x17FF))
_SYMBOLS = "§%‰°€$£¥₹"


class _Shapes(dict[int, str]):
    """The kind of each character: `a` a letter, `A` a capital, `0` a digit, `w` and `t` scripts without spaces."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        shape = {"Lu": "A", "Lt": "A", "Nd": "0"}.get(category, "a" if category[0] in "LMN" else "*")
        if any(first <= code <= last for first, last in _WIDE):
            shape = "w"
        elif shape == "a" and any(first <= code <= last for first, last in _STACKED):
            shape = "t"
        elif chr(code) in _SYMBOLS:
            shape = "$"
        elif code < 128 and shape == "*":
            shape = chr(code) if chr(code) in "-._'@&:/\\+#," else "*"
        self[code] = shape
        return shape


_SHAPES = _Shapes()
#: One unit: a run of a script without spaces; signs; words and what joins them, with a dot before them, or plus or
#: number signs after them.
_UNIT = re.compile(
    r"(?P<wide>w+)|(?P<stacked>t+)|(?P<symbol>(?<![aA])\$+|\$+(?![aA0$]))|"
    r"(?:(?<![aA0wt.])\.(?=[aA]))?[aA0]+(?:(?:://|--|[-._'@&:/\\]|(?<=0),(?=0))[aA0]+)*"
    r"(?:(?<=[aA])\+\+?(?![aA+])|(?<![aA0][aA]{2})(?<=[aA])\#(?![aA0#])|(?<![aA0][aA])(?<=[aA])\#(?=0))?"
)
_RUN = re.compile("A?a+|0+|A+")
_SIMPLE = re.compile("""[("']?([A-Za-z][a-z]+)[.,;:!?)"']{0,2}""")
_JOINED = re.compile("[aA0]+")
#: Parts of a run: digits, capitals before a word, a word, capitals.
_PARTS = re.compile("0+|A+(?=Aa)|A?a+|A+")
#: A consonant with the vowels before, above, below and after it. In Khmer and Burmese another one is stacked below it.
_CLUSTER = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?.(?:[\u17d2\u1039].|[\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3]|"
    "[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e\u1056-\u1059"
    "\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u109a-\u109d\u17b6-\u17d1\u17d3\u17dd])*",
    re.DOTALL,
)


def cut_piece(piece: str) -> Iterator[TextUnit]:
    """Find the units of a text without blanks, in order."""
    simple = _SIMPLE.fullmatch(piece)
    if simple:
        # Most pieces are a word of ASCII letters and signs of a sentence.
        start, end = simple.span(1)
        yield TextUnit(TextUnitKind.WORD, (Part(simple[1].lower(), start, end),), "")
        return
    text, starts, ends = normalize(piece)
    shape = text.translate(_SHAPES)
    for match in _UNIT.finditer(shape):
        first, last = match.span()
        kind = match.lastgroup
        if kind is None:
            yield from _cut_joined(text, shape, first, last, starts, ends)
        elif kind == "symbol":
            yield TextUnit(TextUnitKind.SYMBOL, (Part(text[first], starts[first], ends[last - 1]),), "")
        else:
            spans = (
                [(place, place + 1) for place in range(first, last)]
                if kind == "wide"
                else [each.span() for each in _CLUSTER.finditer(text, first, last)]
            )
            parts = (Part(fold(text[start:end]), starts[start], ends[end - 1]) for start, end in spans)
            yield TextUnit(TextUnitKind.UNSPACED, tuple(parts), "")


def _cut_joined(
    text: str, shape: str, first: int, last: int, starts: Sequence[int], ends: Sequence[int]
) -> Iterator[TextUnit]:
    """Cut words and numbers, and what joins them, into parts."""
    spans: list[tuple[int, int]] = []
    joined = [match.span() for match in _JOINED.finditer(shape, first, last)]
    for start, end in joined:
        spans += [(start, end)] if _RUN.fullmatch(shape, start, end) else _split_run(text, shape, start, end)
    # The dot of `.NET` and the signs of `C++` belong to their word.
    if shape[first] == ".":
        spans[0] = (first, spans[0][1])
    spans[-1] = (spans[-1][0], last)
    if len(spans) > 2 * MOST_JOINED:
        spans = joined
    if len(spans) > 1 and text[spans[-2][1] : last].lower() == "'s":
        # The ending of a genitive.
        spans.pop()
    parts = []
    for start, end in spans:
        written, zeros = text[start:end].lower(), ""
        # Digits after a number and a sign are a part of it, and three digits may be a group of it.
        is_group = end - start == 3 if start == first else shape[start - 1] in "aA" or shape[start - 2] == "0"
        if written[0] == "0" and written.isdecimal() and not is_group:
            zeros = written[: len(written) - len(written.lstrip("0") or "0")]
        if fold(written):
            is_capital = "a" not in shape[start:end]
            parts.append(Part(written[len(zeros) :], starts[start], ends[end - 1], is_capital, zeros))
    if len(parts) <= 1 or len(parts) > MOST_JOINED:
        yield from (TextUnit(TextUnitKind.WORD, (part,), "") for part in parts)
    else:
        whole = fold(text[spans[0][0] : spans[-1][1]])
        yield TextUnit(TextUnitKind.COMPOUND, tuple(parts), re.sub(r"(?<!\d)[-_'\\]+|[-_'\\]+(?!\d)", "", whole))


def _split_run(text: str, shape: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a run of letters and digits where one follows the other, and before capitals inside of a word."""
    parts: list[tuple[int, int]] = []
    for letters in re.finditer("0+|[aA]+", shape[start:end]):
        first, last = start + letters.start(), start + letters.end()
        inner = [match.span() for match in _PARTS.finditer(shape, first, last)]
        # `iPhone`, `kWh` and `PDFs` are words.
        is_word = last - first <= 8 and any(to - begin == 1 for begin, to in inner)
        is_plural = text[last - 1] == "s" and "a" not in shape[first : last - 1]
        parts += [(first, last)] if is_word or is_plural else inner
    return parts if len(parts) <= MOST_PARTS else [(start, end)]


def fit(term: str) -> str:
    """Return the term, or its beginning and a digest if it is longer than a term may be."""
    if len(term) * 4 <= TERM_BYTES:
        return term
    encoded = term.encode(errors="replace")
    if len(encoded) <= TERM_BYTES:
        return term
    return encoded[:200].decode(errors="ignore") + hashlib.blake2b(encoded, digest_size=16).hexdigest()


_GROUPED = re.compile(r"(\d{1,3})((?:,\d{3})+|(?:\.\d{3})+|(?:['_]\d{3})+|(?:,\d{2})+,\d{3})(?:[.,](\d+))?")
_DECIMAL = re.compile(r"(\d+)[.,](\d+)")
_HYPHENED = re.compile(r"\d+(?:-\d+){2,}")


def numbers(written: str) -> list[str]:
    """List the numbers that may be meant by digits with signs between them.

    `1,234.50` is 1234.50. `1.234` may be either number, as countries differ. 14.3.2024 is 2024-03-14 and 20240314, and
    with a slash or a hyphen the month may be the first.
    """
    found = []
    if decimal := _DECIMAL.fullmatch(written):
        found.append(f"{decimal[1]}.{decimal[2]}")
    if grouped := _GROUPED.fullmatch(written):
        digits = grouped[1] + re.sub(r"\D", "", grouped[2])
        found.append(f"{digits}.{grouped[3]}" if grouped[3] else digits)
        if grouped[3] and not grouped[3].strip("0"):
            found.append(digits)
    dates = [*numbered(written)]
    found += dates
    found += [each.replace("-", "") for each in dates or [written] if _HYPHENED.fullmatch(each)]
    return found
