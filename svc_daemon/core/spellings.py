"""Spellings: how else people type the numbers in groups, the codes and the dates of a text.

Phone numbers, account numbers and cards are written in groups and typed without them, with other ones, or with another
prefix; dates have their month as a word or a number. What is found depends on more than one piece between blanks.
"""

import re
from typing import NamedTuple

from svc_daemon.core.dates import worded_in

#: How many digits a number in groups has; shorter ones are too often the same by chance.
LEAST_DIGITS, MOST_DIGITS = 7, 20
#: A row of more groups is a table.
MOST_GROUPS = 8
#: How many digits the code of a country has at most, and a year.
_COUNTRY, _YEAR_DIGITS = 3, 4
#: How many letters begin a code at most.
_LETTERS = 4

#: Between two groups of digits.
_BETWEEN = r"(?:\)[ \u00a0]?|[ \u00a0]?\(|[ \u00a0]?[-/][ \u00a0]?|[ \u00a0.\u2009\u202f])"
#: Digits, with what may be between groups of them. Whatever is spelled in several ways has some.
_DIGITS = re.compile(r"\d[\d ()/.\u00a0\u2009\u202f-]*")
_RUN = re.compile(r"\d[\d ()/.\u00a0\u2009\u202f-]{5,}\d(?!\w|,\d)")
_GROUPED = re.compile(rf"(?<!\d)\d+(?:{_BETWEEN}\d+)+(?!\w|,\d)|(?<!\d)\d{{9,15}}(?!\w|,\d)")
_PART_OF_MORE = re.compile(r"[\w.,-]\Z")
_ABROAD = re.compile(r"\+[ \u00a0]?\(?\Z")
#: What is dialled within a country only, as in +49 (0)30.
_TRUNK = re.compile(r"\(0\)")
#: An international number of a bank account, and another code of letters and groups of digits, in capitals.
_CODE = re.compile(
    r"(?<![\w-])[A-Z](?:[A-Z]\d\d(?:[ \u00a0]?[A-Z0-9]{4}){2,7}(?:[ \u00a0]?[A-Z0-9]{1,3})?|"
    r"[A-Z]{1,3}[- \u00a0]?\d+(?:[ \u00a0/-]\d+|\.\d{3}(?!\d)){1,6})(?!\w)"
)


class Spelling(NamedTuple):
    """Where a number, code or date is in a text, and how else it is typed."""

    start: int
    end: int
    forms: tuple[str, ...]

    def touches(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


def spellings_in(text: str) -> list[Spelling]:
    """Return the numbers in groups, the codes and the dates of a text."""
    joined, codes, dates = list[Spelling](), list[Spelling](), list[Spelling]()
    for digits in _DIGITS.finditer(text):
        start, end = digits.span()
        run = _RUN.match(text, start)
        for match in _GROUPED.finditer(text, *run.span()) if run else ():
            if match.end() - match.start() >= LEAST_DIGITS and (forms := _joined(text, match)):
                joined.append(Spelling(*match.span(), forms))
        if (code := _code_at(text, start)) and not (codes and codes[-1].touches(*code.span())):
            codes.append(Spelling(*code.span(), (re.sub(r"\W", "", code[0]).lower(),)))
        if end - start >= _YEAR_DIGITS:
            for first, last, day in worded_in(text, start, end):
                dates.append(Spelling(first, last, (day, day.replace("-", ""))))
    return joined + codes + dates


def _code_at(text: str, digit: int) -> "re.Match[str] | None":
    """Return the code whose first digit is here."""
    if not text[max(0, digit - 2) : digit].strip("- \u00a0").isupper():
        return None
    starts = range(max(0, digit - _LETTERS - 1), digit - 1)
    return next((code for start in starts if (code := _CODE.match(text, start))), None)


def _joined(text: str, number: "re.Match[str]") -> tuple[str, ...]:
    """Return the digits of all groups, and without the prefixes that depend on where a number is called from."""
    before = text[max(0, number.start() - 3) : number.start()]
    groups = re.findall(r"\d+", _TRUNK.sub("", number[0]))
    digits = "".join(groups)
    is_abroad = digits.startswith("00") or _ABROAD.search(before) is not None
    if (
        (len(groups) == 1 and not is_abroad)
        or len(groups) > MOST_GROUPS
        or not LEAST_DIGITS <= len(digits) <= MOST_DIGITS
        or _PART_OF_MORE.search(before)
    ):
        return ()
    bare = digits.lstrip("0")
    found = [digits, bare]
    if is_abroad and len(first := groups[0].lstrip("0")) <= _COUNTRY and len(groups) > 1:
        found.append(bare[len(first) :])
    elif is_abroad:
        found += [bare[size:] for size in range(1, _COUNTRY + 1)]
    return tuple(dict.fromkeys(each for each in found if len(each) >= LEAST_DIGITS))
