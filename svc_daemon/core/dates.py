"""Dates: the days of the week and the months that a text names, alone, with a day, or in a range.

Months have their English name, whatever the language; the names of days of the week are read in English only.
"""

import re
from collections.abc import Iterator, Sequence

MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
#: The months in German, French, Spanish, Italian and Dutch.
_FOREIGN_MONTHS = (
    "januar jänner janvier enero gennaio januari, februar février febrero febbraio februari, märz mars marzo maart, "
    "avril abril aprile, mai mayo maggio mei, juni juin junio giugno, juli juillet julio luglio, août agosto augustus, "
    "septembre septiembre settembre, oktober octobre octubre ottobre, novembre noviembre, dezember décembre diciembre "
    "dicembre"
)
_SHORT_MONTHS = {month[:3]: month for month in MONTHS} | {"sept": "september"}
_SHORT_DAYS = {day[:3]: day for day in DAY_NAMES}
#: The number of each month by its names and short forms.
MONTH_NUMBERS = {form: MONTHS.index(month) + 1 for form, month in _SHORT_MONTHS.items()}
MONTH_NUMBERS |= {month: at for at, month in enumerate(MONTHS, 1)}
MONTH_NUMBERS |= {form: at for at, forms in enumerate(_FOREIGN_MONTHS.split(","), 1) for form in forms.split()}
ISO_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})|(\d{1,2})\.(\d{1,2})\.(\d{4})")
#: A date as in "am 24.09. um 19:30", without its year.
DOTTED_DATE = re.compile(r"(?<![\d.,])(\d{1,2})\.(\d{1,2})\.(?![\d.])")
#: What a text has that names a day of the week or a month; nothing else can be one.
_DAY_BEGUN = re.compile("|".join(name[:3] for name in DAY_NAMES), re.IGNORECASE)
MONTH_BEGUN = re.compile("|".join(sorted({name[:3] for name in MONTH_NUMBERS})), re.IGNORECASE)
_TO = r"(?: ?- ?| to | through | until | till )"
_DAY = "|".join(f"{day}s?|{day[:3]}" for day in DAY_NAMES)
_DAY_RANGE = re.compile(rf"\b({_DAY}){_TO}({_DAY})\b", re.IGNORECASE)
_MONTH = "|".join(f"{month}|{month[:3]}" for month in MONTHS)
_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_MONTH_RANGE = re.compile(rf"\b({_MONTH})(?: {_NUMBER})?{_TO}(?:{_NUMBER} )?({_MONTH})\b", re.IGNORECASE)
#: A month as in the name of a file, `2024-04`.
_YEAR_MONTH = re.compile(r"(?<!\d)(?<!\d-)(?:19|20)\d\d[-_](0[1-9]|1[0-2])(?![\w-])")


def name_of(word: str) -> str:
    """Return the whole name of a day of the week or month in lower case; any other word as it is."""
    return _SHORT_DAYS.get(word) or _SHORT_MONTHS.get(word, word)


def written_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the month and day of the dates of a text that are numbers only."""
    for match in ISO_DATE.finditer(text):
        month, day = (match[2], match[3]) if match[1] else (match[5], match[4])
        yield int(month), int(day)
    for match in DOTTED_DATE.finditer(text):
        if int(match[2]) <= len(MONTHS) and int(match[1]) <= 31:
            yield int(match[2]), int(match[1])


def months_of(text: str) -> Iterator[str]:
    """Yield the months of a text that are numbers, such as `2024-04`."""
    return (MONTHS[int(month) - 1] for month in _YEAR_MONTH.findall(text))


def ranged_in(text: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield where a range such as Mon-Fri or "April to October" begins in a text, and the names within it."""
    for begun, ranges, names in ((_DAY_BEGUN, _DAY_RANGE, DAY_NAMES), (MONTH_BEGUN, _MONTH_RANGE, MONTHS)):
        for match in ranges.finditer(text) if begun.search(text) else ():
            first, last = (names.index(name_of(end[:3].lower())) for end in match.groups())
            within = names[first : last + 1] if first <= last else names[first:] + names[: last + 1]
            is_week = names is DAY_NAMES and len(within) == 5 and not first
            yield match.start(), [*within, *(["weekday"] if is_week else [])]
