"""Readings: the words, numbers with their units, codes and days that a text has, each in one spelling.

ST-04, "ST 04" and "st04" are one code, 14 March and 2024-03-14 one day, 1,000 and "a thousand" one number, and 40 € and
EUR 40 one amount.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from svc_daemon.core.answers.passages import is_familiar
from svc_daemon.core.answers.quantities import (
    CURRENCIES,
    NUMBER_WORDS,
    ORDER,
    UNITS,
    Bounds,
    Quantity,
    bounds_in,
    in_english,
)
from svc_daemon.core.dates import (
    ISO_DATE,
    MONTH_BEGUN,
    MONTH_NUMBERS,
    MONTHS,
    months_of,
    name_of,
    ranged_in,
    written_in,
)
from svc_daemon.core.text.words import STOP_WORDS, pairs_of, parts_of, stem_of

#: Dashes that mean the same before and between numbers.
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−﹣－", "-") | {"⁄": "/"})  # noqa: RUF001
_MINUS = re.compile(r"\bminus (?=\d)", re.IGNORECASE)
#: A minus is a sign only where nothing stands before it: 8-16 is a range.
_TOKEN = re.compile(
    r"(?P<sign>(?<![\w)\]%°])[-+])?(?P<word>[§$€£¥₽₺₴₹₩%‰#]|°[CFK]?|"
    r"[^\W_]+(?:(?:['’](?=[^\W\d_])|(?!(?<=:\d\d)-\d\d?:\d)[-./_]|(?<=\d):(?=\d)|(?<=\d),(?=\d{3}(?!\d)))[^\W_]+)*)"  # noqa: RUF001
)
#: A longer token is no code.
_LONGEST_CODE = 60
_COMPOUND = re.compile(r"[^\W_]+(?:[-./_'’][^\W_]+)*")  # noqa: RUF001
_COMPOUND_OR_BAR = re.compile(_COMPOUND.pattern + r"|[|;]")
#: How many words a bar between two cells counts.
_APART = 9
_UNIT_END = re.compile(r"(?:(?<=temp)|(?<=temperature))_[cfk]\b", re.IGNORECASE)
#: The C of "c'est" is none either.
_ELIDED = re.compile(r"^[^\W\d_]['’]")  # noqa: RUF001
_COMPOUNDED = re.compile(r"[-./_'’]")  # noqa: RUF001
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
#: A number with its unit or with the letters of a code, or the ends of a range.
_GLUED = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)[-/]?([^\W\d_]+)")
RANGE = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|(?<=\b1)er)", re.IGNORECASE)
#: The last letters and digits of a name such as `mix-p-12`.
_CODE_END = re.compile(r"(?:^|[-./_])([^\W\d_]+)[-._]?(\d[^\W_]*(?:[-./:][^\W_]+)*)$")
#: The version of a program: v3 or 3.x.
_VERSION = re.compile(r"v(\d+)|(\d+)\.x")
#: What is between a day and its month; "Jan: 10; Feb: 20" has no dates.
_IN_DATE = re.compile(r"[\s.*_-]*(?:(?:of|de)\s+)?(?:the\s+)?")
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6}
#: Words before a unit that stand for one of it.
_SINGLE = frozenset(["a", "an", "each", "every", "per", "one"])
_BEFORE_UNITS = frozenset(("working", "business", "calendar", "full", "whole", "consecutive", "square", "cubic"))
#: Words between a label and its number, as in "contract no. 7".
LINKS = frozenset(["no", "nr", "num", "number", "nummer", "numero", "número", "numéro", "#"])
_LABELS = {
    "ed": "edition",
    "edition": "edition",
    "section": "§",
    "sec": "§",
    "sect": "§",
    "paragraph": "§",
    "para": "§",
    "§": "§",
}


class TextToken(NamedTuple):
    text: str
    sign: str
    start: int
    end: int
    #: The text in lower case.
    low: str

    @property
    def has_digit(self) -> bool:
        return not self.text.isalpha() and any(map(str.isdigit, self.text))

    @property
    def is_code(self) -> bool:
        return not self.text.isalpha() and (self.has_digit or "_" in self.text or _is_coined(self.low))


class Reading:
    """The particulars of a text."""

    def __init__(self, text: str) -> None:
        #: With one kind of dash; and the same text with its figures as in English, character by character.
        self.written = _plain(text)
        self.text = _plain(figured) if (figured := in_english(text)) != text else self.written
        self.low = self.text.lower()

    @cached_property
    def tokens(self) -> list[TextToken]:
        return [
            TextToken(each["word"], each["sign"] or "", *each.span(), each["word"].lower())
            for each in _TOKEN.finditer(self.text)
        ]

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of the words. Compounds of capitalized words, such as North-East, are only found whole."""
        words = {*_COMPOUND.findall(self.text), *(word for name in parts_of(self.text) for word in name.split())}
        found = set(map(stem_of, words)) | (set() if self.text.isascii() else pairs_of(self.text))
        for word in words:
            if not word.isalnum():
                parts = _COMPOUNDED.split(word)
                found |= set() if all(part[:1].isupper() for part in parts) else set(map(stem_of, parts))
            elif (name := name_of(word.lower())) != word.lower():
                found.add(stem_of(name))
        found |= {stem_of(MONTHS[int(day[:2]) - 1]) for day in self.days}
        return frozenset(found | {stem_of(day) for _, day in self.ranged})

    @cached_property
    def joined(self) -> str:
        return f" {' '.join(token.low for token in self.tokens)} "

    def has_name(self, words: Sequence[str]) -> bool | None:
        """Return whether the words of a name stand together; None if not all are there.

        A name may have another word in it, or be turned round ("Berg, Anna").
        """
        # A name is also known by its plural, as "DVDs", or its singular.
        others = [word[:-1] if word.endswith("s") else f"{word}s" for word in words]
        places = [self.spelled.get(word) or self.spelled.get(other) for word, other in zip(words, others, strict=True)]
        if not all(places):
            return None
        near = range(1 - len(words), len(words) + 1)
        return any(all(any(at - first in near for at in place or ()) for place in places) for first in places[0] or ())

    @cached_property
    def spelled(self) -> dict[str, list[int]]:
        """Return where each word stands, in lower case. Compounds of capitalized words are only found whole."""
        found: dict[str, list[int]] = {}
        at = -1
        for word in _COMPOUND_OR_BAR.findall(self.text):
            # The words of a name are in one cell.
            at += 1 if word[0].isalnum() else _APART
            if word[0] in "|;":
                continue
            if word.isalnum():
                low = word.lower()
                for part in {low, name_of(low)}:
                    found.setdefault(part, []).append(at)
                continue
            # The C of `temp_c` is a unit.
            parts = [part for part in _COMPOUNDED.split(_ELIDED.sub("", _UNIT_END.sub("", word))) if part != "s"]
            is_name = len(parts) > 1 and all(part[0].isupper() for part in parts)
            for part in {"-".join(parts), *([] if is_name else parts), word}:
                found.setdefault(part.lower(), []).append(at)
        months = (*(MONTHS[int(day[:2]) - 1] for day in self.days), *months_of(self.text))
        for at, name in (*self.ranged, *((0, month) for month in months)):
            found.setdefault(name, []).append(at)
        return found

    @cached_property
    def ranged(self) -> list[tuple[int, str]]:
        """Return the days and months of ranges such as Mon-Fri, each with the number of words before it."""
        found = []
        for begin, names in ranged_in(self.text):
            before = _COMPOUND_OR_BAR.findall(self.text, 0, begin)
            at = sum(1 if word[0].isalnum() else _APART for word in before)
            found += [(at, name) for name in names]
        return found

    @cached_property
    def days(self) -> frozenset[str]:
        """Return the days, as `03-14`."""
        if not _DIGIT.search(self.text):
            return frozenset()
        found = set(written_in(self.text))
        for at, token in enumerate(self.tokens if MONTH_BEGUN.search(self.text) else ()):
            if (token.has_digit or token.low in MONTH_NUMBERS) and (day_at := self.day_at(at)):
                found.add(day_at[:2])
        return frozenset(f"{month:02}-{day:02}" for month, day in found if 1 <= month <= 12)

    def day_at(self, at: int) -> tuple[int, int, int] | None:
        """Return month, day and number of tokens of the date that begins at a token, such as 14 March or March 14th."""
        last = at + (2 if at + 2 < len(self.tokens) and self.tokens[at + 1].low in ("of", "de") else 1)
        if last >= len(self.tokens) or not _IN_DATE.fullmatch(self.text, self.tokens[at].end, self.tokens[last].start):
            return None
        pair = (self.tokens[at].low, self.tokens[last].low)
        for number, month in (pair, pair[::-1]):
            digits = ORDINAL.sub(r"\1", number)
            if month in MONTH_NUMBERS and digits.isdecimal() and len(digits) < 3:
                return MONTH_NUMBERS[month], int(digits), last - at + 1
        return None

    @cached_property
    def codes(self) -> frozenset[str]:
        """Return each token with digits in one spelling, and each number with the word that it belongs to."""
        found, label, former = set(), "", ""
        plain = ""
        for before, token in pairwise([TextToken("", "", 0, 0, ""), *self.tokens]):
            if not token.is_code:
                if place := ORDER.get(before.low):
                    found.add(f"{label_of(token.low)}{place}")
                plain = plain if token.low in LINKS or token.low in ("and", "or") else token.low
                continue
            label = label_of(plain) if plain else ""
            if len(token.text) > _LONGEST_CODE:
                continue
            code = code_of(token.text)
            if label and label not in STOP_WORDS:
                former = label
            # "The Kestrel 500 has one, the 520 has two."
            labels = {"", label, former if before.low == "the" else label}
            found |= (
                {f"-{code}"} if token.sign else {f"{each}{code}" for each in labels} if code[0].isdigit() else {code}
            )
            if version := _VERSION.fullmatch(token.low):
                found.add(f"v{version[1] or version[2]}")
            if (end := _CODE_END.search(token.text)) and end.start():
                found.add(code_of(f"{end[1]}-{end[2]}"))
            if end and (len(end[1]) > 3 or not end[2].isdecimal()):
                found.add(code_of(end[2]))
        return frozenset(found)

    @cached_property
    def labels(self) -> frozenset[str]:
        """Return the words that a number follows."""
        return frozenset(match[1] for match in map(re.compile(r"(\D{3,}|§)\d").match, self.codes) if match)

    @cached_property
    def quantities(self) -> frozenset[Quantity]:
        return frozenset(quantity for _, quantity in self.counted)

    @cached_property
    def counted(self) -> list[tuple[int, Quantity]]:
        """Return the numbers, in digits or words, with the index of the token of each."""
        return list(self.count())

    @cached_property
    def amounts(self) -> frozenset[Quantity]:
        """Return the quantities, and those that words imply: "a minute", "each quarter", "half a year"."""
        found = set(self.quantities)
        for before, token in pairwise(self.tokens):
            unit = UNITS.get(token.low, "")
            if unit and before.low in _SINGLE:
                found |= {Quantity(Decimal(1), unit), Quantity(Decimal("0.5"), unit)}
        return frozenset(found)

    @cached_property
    def bounds(self) -> list[Bounds]:
        """Return the ranges of amounts."""
        return list(bounds_in(self.low)) if _DIGIT.search(self.text) else []

    def count(self) -> Iterator[tuple[int, Quantity]]:
        tokens, at = self.tokens, 0
        while at < len(tokens):
            token, first = tokens[at], at
            at += 1
            if token.text.isalpha() and token.low not in NUMBER_WORDS and token.low not in _SCALES:
                continue
            if token.low.partition("-")[0] in NUMBER_WORDS or (token.low in _SCALES and first):
                value, at, unit = _spelled(tokens, first)
                yield first, _on_clock(value, unit or self.unit_at(at))
            elif date := ISO_DATE.fullmatch(token.text):
                yield first, Quantity(Decimal(date[1] or date[6]))
            elif ends := RANGE.fullmatch(token.text):
                unit = self.unit_at(at)
                yield from ((first, Quantity(Decimal(end), unit)) for end in ends.groups())
            elif token.has_digit and (value_unit := _split(token)):
                before = tokens[first - 1].text if first else ""
                currency = before if before in CURRENCIES else UNITS.get(before.lower(), "")
                unit = value_unit.unit or self.unit_at(at) or (currency if currency in CURRENCIES else "")
                if scale := _SCALES.get(tokens[at].low if at < len(tokens) else ""):
                    at += 1
                    yield first, Quantity(value_unit.value * scale, unit or self.unit_at(at))
                else:
                    yield first, _on_clock(value_unit.value, unit)

    def unit_at(self, at: int) -> str:
        """Return the unit that begins at a token; one of some words may stand before it."""
        if at + 1 < len(self.tokens) and self.tokens[at].low in _BEFORE_UNITS:
            unit = self.unit_at(at + 1)
            return {"square": {"m": "m2"}, "cubic": {"m": "m3"}}.get(self.tokens[at].low, {}).get(unit, unit)
        if at >= len(self.tokens):
            return ""
        unit = UNITS.get(self.tokens[at].low, "")
        if unit == "°" and at + 1 < len(self.tokens):
            # "degrees Celsius"
            return {"°c": "°c", "c": "°c", "°f": "°f", "f": "°f"}.get(
                UNITS.get(low := self.tokens[at + 1].low, low), unit
            )
        return unit


def _plain(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_DASHES)
        text = "".join(str(unicodedata.decimal(each, each)) for each in text)
    return _MINUS.sub("-", text)


def _on_clock(value: Decimal, unit: str) -> Quantity:
    """Return 3 pm as 15; any other number as it is."""
    return Quantity(value + 12 * (unit == "pm" and value < 12), "" if unit in ("am", "pm") else unit)


def _split(token: TextToken) -> Quantity | None:
    """Return the number that the token is, with a unit such as in `30km` or `30-day`; None for a code."""
    sign = -1 if token.sign == "-" else 1
    if _NUMBER.fullmatch(token.text):
        return Quantity(sign * Decimal(token.text.replace(",", "")))
    if ordinal := ORDINAL.fullmatch(token.text):
        return Quantity(Decimal(ordinal[1]))
    if time := re.fullmatch(r"(\d{1,2}):00", token.text):
        return Quantity(Decimal(time[1]))
    glued = _GLUED.fullmatch(token.text)
    if glued and glued[2].lower() in UNITS:
        return Quantity(sign * Decimal(glued[1].replace(",", "")), UNITS[glued[2].lower()])
    return None


def _spelled(tokens: Sequence[TextToken], at: int) -> tuple[Decimal, int, str]:
    """Return the number that words spell from a token on, the index after it, and a unit as in `six-month`."""
    value = part = 0
    while at < len(tokens):
        parts = tokens[at].low.split("-")
        is_and = parts[0] == "and" and tokens[at - 1].low in _SCALES and at + 1 < len(tokens)
        if is_and and tokens[at + 1].low.partition("-")[0] in NUMBER_WORDS:
            parts = []
        elif parts[0] not in NUMBER_WORDS and parts[0] not in _SCALES:
            break
        at += 1
        for word in parts:
            if word in UNITS and word not in _SCALES:
                return Decimal(value + part), at, UNITS[word]
            if word in _SCALES:
                part = max(part, 1) * _SCALES[word]
                value, part = (value + part, 0) if _SCALES[word] > 100 else (value, part)
            else:
                part += NUMBER_WORDS.get(word, 0)
    return Decimal(value + part), at, ""


#: Beginnings of words that a hyphen follows.
_PREFIXES = frozenset("co re pre non sub un ex mid bi tri de pro anti semi multi self e".split())  # noqa: SIM905


#: What French questions have behind their verb: "a-t-il", "faut-il".
_INVERTED = frozenset(("il", "elle", "ils", "elles", "on", "je", "tu", "vous", "nous"))


@lru_cache(maxsize=8192)
def _is_coined(low: str) -> bool:
    """Return whether a compound without digits names one thing: `sw-osl-core`, `vol/gamma`, `shop.example`."""
    parts = re.split(r"[-./]", low)
    if parts[-1] in _INVERTED and "-" in low:
        return False
    if len(parts) < 2 or not all(part.isalpha() for part in parts):
        return False
    odd = [part for part in parts if len(part) > 1 and part not in STOP_WORDS | _PREFIXES and not is_familiar(part)]
    if "/" in low or "." in low:
        return bool(odd) and all(len(part) > 2 for part in parts)
    short = [part for part in odd if len(part) < 4]
    return bool(short) and (len(parts) > 2 or any(re.fullmatch(r"[^aeiouy]+", part) for part in short))


#: A year that begins in one and ends in the next: 24/25, 2024/25, 2024-25.
_SEASON = re.compile(r"(?:20)?(\d\d)/(?:20)?(\d\d)|20(\d\d)-(?:20)?(\d\d)")


def code_of(text: str) -> str:
    """Return the one spelling of a code: ST-04, st 04 and St04 are `st04`, v2.1 is 2.1, and 3-4 stays as it is."""
    low = re.sub(r"^v(?=\d)", "", text.lower()).replace(",", "")
    if (season := _SEASON.fullmatch(low)) and int(season[2] or season[4]) == int(season[1] or season[3]) + 1:
        return "/".join(filter(None, season.groups()))
    letters = re.match(r"([^\W\d_]+)[-._ ]?(?=\d)", low)
    if not letters:
        return re.sub(r"(?<=\d)[- ](?=[^\W\d_])", "", low)
    return label_of(letters[1]) + re.sub(r"(?<=\d)[- ](?=[^\W\d_])", "", low[letters.end() :])


def label_of(word: str) -> str:
    low = word.lower()
    return _LABELS.get(low) or (stem_of(low) if len(low) > 3 else low)
