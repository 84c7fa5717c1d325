"""Quantities: the numbers of a text, in digits or in English words, and what they count.

`thirty days`, `30 days` and `30-day` are the same, and so are 24 hours and a day, 1,000 and `a thousand`, 17:00 and
5 pm. Ordinals are numbers too: `the 3rd`, `the third`.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_WORTH = {
    **{word: Fraction(worth) for worth, word in enumerate(_SMALL.split())},
    **{word: Fraction(worth * 10) for worth, word in enumerate(_TENS.split(), 2)},
    **{word: Fraction(worth) for worth, word in enumerate(_ORDINALS.split(), 3)},
    "dozen": Fraction(12),
    "half": Fraction(1, 2),
    "twice": Fraction(2),
    "double": Fraction(2),
    "both": Fraction(2),
}
_TIMES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
#: What counts of what, and how many of the smallest kind one is.
_UNITS = {
    "time": {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "day": 86400, "week": 604800},
    "months": {"month": 1, "quarter": 3, "year": 12, "decade": 120},
    "percent": {"%": 1, "percent": 1},
    "euro": {"€": 1, "euro": 1, "eur": 1},
    "dollar": {"$": 1, "dollar": 1, "usd": 1},
    "pound": {"£": 1, "gbp": 1},
    "length": {"mm": 1, "cm": 10, "metre": 1000, "meter": 1000, "m": 1000, "km": 10**6, "kilometre": 10**6},
    "mile": {"mile": 1},
    "weight": {"gram": 1, "g": 1, "kg": 1000, "kilo": 1000, "kilogram": 1000, "tonne": 10**6, "ton": 10**6},
    "bytes": {"byte": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "megabyte": 10**6, "gigabyte": 10**9},
    "degree": {"°": 1, "degree": 1},
}
_UNIT_OF = {name: (kind, size) for kind, names in _UNITS.items() for name, size in names.items()}
_TOKEN = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+|[%€$£°]|[^\w\s]")
#: Words between a number and its unit: `30 paid working days`.
_BETWEEN = 2
#: Clock times lose what says nothing, so that 9:00, 09:00 and 9 are one.
_CLOCK = re.compile(r"\b(\d{1,2}):00\b")
_HALF = re.compile(r"\bhalf an?\b")
_NOON = 12
_RATES = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
#: With these a unit is one of it, but for those that are other words as well: `a second person`.
_EACH = frozenset({"each", "every", "per", "a", "an"})
_ARTICLES = frozenset({"a", "an"})
_NOT_SINGLE = frozenset({"second", "quarter", "m", "g", "min", "sec"})
#: One of something is more often no number: `one of them`, `no one`, `a day`.
_ONE = Fraction(1)


class Quantity(NamedTuple):
    """A number, as counted in the smallest unit of its kind."""

    number: Fraction
    #: None where it counts something else, such as people.
    kind: str | None
    #: In the unit as it is written.
    written: Fraction
    #: One of a unit that no number stands before: `a year`, `per second`.
    is_single: bool = False


def quantities_of(text: str) -> list[Quantity]:
    """The quantities in order."""
    tokens = _TOKEN.findall(_HALF.sub("half", _CLOCK.sub(r"\1", text.lower())))
    return list(_read(tokens))


def _read(tokens: list[str]) -> Iterator[Quantity]:
    place = 0
    while place < len(tokens):
        number, end = _number(tokens, place)
        if number is not None:
            yield from _count(tokens, place, end, number)
        elif tokens[place] in _EACH and tokens[place + 1 : place + 2] and tokens[place + 1] in _UNIT_OF:
            kind, size = _UNIT_OF[tokens[place + 1]]
            if tokens[place + 1] not in _NOT_SINGLE or tokens[place] not in _ARTICLES:
                yield Quantity(Fraction(size), kind, _ONE, is_single=True)
        elif tokens[place] in _RATES:
            kind, size = _UNIT_OF[_RATES[tokens[place]]]
            yield Quantity(Fraction(size), kind, _ONE, is_single=True)
        place = end if number is not None else place + 1


def _count(tokens: list[str], start: int, end: int, number: Fraction) -> Iterator[Quantity]:
    if tokens[end : end + 1] == ["pm"] and number < _NOON:
        yield Quantity(number + _NOON, None, number)
        return
    kind, size = _unit(tokens, start, end)
    if kind is not None or number != _ONE or tokens[start].isdigit():
        yield Quantity(number * size, kind, number)


def _number(tokens: list[str], start: int) -> tuple[Fraction | None, int]:
    """The number that begins here, and where it ends: `two hundred and fifty`, `twenty-five`, `1.5 million`."""
    total, last, place = Fraction(0), None, start
    while place < len(tokens):
        token = tokens[place]
        if token[0].isdecimal() and last is None:
            # Python takes no more than 4300 digits for an int; a decimal has any number of them.
            last = Fraction(Decimal(token.replace(",", "")))
        elif token in _WORTH and _joins(last, _WORTH[token]):
            last = (last or 0) + _WORTH[token]
        elif token in _TIMES and last is not None:
            last *= _TIMES[token]
            total, last = (total + last, Fraction(0)) if _TIMES[token] > 100 else (total, last)
        elif token in ("-", "and") and last is not None and tokens[place + 1 : place + 2] and _goes_on(tokens, place):
            pass
        else:
            break
        place += 1
    return (None if last is None else total + last), place


def _joins(last: Fraction | None, worth: Fraction) -> bool:
    """Whether a number word goes on from the words before it: `twenty five` does, `five six` does not."""
    return last is None or (last % 10 == 0 and worth < 10 and last % 100 != 10) or (last % 100 == 0 and worth < 100)


def _goes_on(tokens: list[str], place: int) -> bool:
    before, after = tokens[place - 1], tokens[place + 1]
    if after not in _WORTH:
        return False
    return before in _TIMES if tokens[place] == "and" else before in _TENS.split()


def _unit(tokens: list[str], start: int, end: int) -> tuple[str | None, int]:
    if start and tokens[start - 1] in ("$", "€", "£"):
        return _UNIT_OF[tokens[start - 1]]
    for word in tokens[end : end + 1 + _BETWEEN]:
        name = word if word in _UNIT_OF else word.removesuffix("s")
        if name in _UNIT_OF:
            return _UNIT_OF[name]
        if word != "-" and (not word[0].isalpha() or word in _STOPS):
            break
    return None, 1


#: Behind these the next thing begins.
_STOP_WORDS = "a an and or to of in on at for per by from the with is are"
_STOPS = frozenset(_STOP_WORDS.split())
