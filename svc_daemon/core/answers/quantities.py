"""Quantities: numbers with their units, however these are written, and which of them are the same amount."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

#: Units, and what else they are called. The first of each group replaces the others.
_UNITS = (
    "°c celsius, °f fahrenheit, ° degree degrees deg, % percent pct, € eur euro euros, $ usd dollar dollars, "
    "£ gbp pound pounds, "
    "kg kilogram kilograms kilo kilos, g gram grams, mg milligram milligrams, km kilometre kilometres kilometer "
    "kilometers, m metre metres meter meters, cm centimetre centimetres centimeter centimeters, mm millimetre "
    "millimetres millimeter millimeters, l litre litres liter liters, ml millilitre millilitres, "
    "s second seconds sec secs, min minute minutes mins minuten minutos minuti, "
    "h hour hours hr hrs stunde stunden heure heures hora horas uur, "
    "day days tag tage tagen jour jours día días giorno giorni dag dagen, "
    "week weeks woche wochen semaine semaines semana semanas settimana settimane weken, "
    "month months monat monate monaten mois mes meses mese mesi maand maanden, "
    "year years jahr jahre jahren ans année año años anno anni jaar, "
    "kw kilowatt kilowatts, kwh, w watt watts, v volt volts, bar bars, kb, mb, gb, tb, km/h kph, mph, m2, m3, "
    "cent cents ct, page pages, inch inches, foot feet ft, mile miles, tonne tonnes, ¥ yen, ‰, night nights, "
    "quarter quarters, pm, am, hz, khz, mhz, rpm, psi, pa, kpa, hpa, amp amps ampere, ppm, hp horsepower, "
    "knot knots kn, m/s"
)
UNITS = {form: forms.split()[0] for forms in _UNITS.split(", ") for form in forms.split()}
#: Units that can be converted: the smallest of the same kind, and how many of it they have.
_MEASURES = {
    "s": ("s", 1),
    "min": ("s", 60),
    "h": ("s", 3600),
    "day": ("s", 86_400),
    "week": ("s", 604_800),
    "month": ("month", 1),
    "quarter": ("month", 3),
    "year": ("month", 12),
    "mm": ("mm", 1),
    "cm": ("mm", 10),
    "m": ("mm", 1000),
    "km": ("mm", 10**6),
    "mg": ("mg", 1),
    "g": ("mg", 1000),
    "kg": ("mg", 10**6),
    "ml": ("ml", 1),
    "l": ("ml", 1000),
}
#: The number of a paragraph or item, at its beginning.
_ITEM_NUMBER = re.compile(r"^\W{0,3}\d{1,3}(?:\.\d{1,3})*[.)]?(?=\s)")
#: Numbers that name a thing, a day or an hour.
_NAMING = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b(?:1[5-9]|20)\d\d\b(?! [^\W\d_])|\b\d{1,2}:\d\d\b|\b[a-z]{1,5}-?\d[\w-]*\b|"
    r"\b(?:no|nr|number|id|ref|art|section|page|room|phone|tel|line|part|patient|code)\.?:? ?#?\d[\w-]*|"
    r"\b\d{1,2}(?:st|nd|rd|th)?\.? (?:of )?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
    r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?: \d{4}\b)?",
    re.IGNORECASE,
)
#: A complete figure: 1,000 isn't 1, and what 12,5 is depends on the language.
_FIGURE = r"(\d+(?:,\d{3})*(?:\.\d+)?)(?![.,:]?\d)"
_UNIT = r"[^\W\d_]{1,12}(?:[23]|/[a-z]{1,2})?|[°%][cf]?"
_AMOUNT = rf"[€£$]?{_FIGURE} ?({_UNIT})?"
#: Amounts in a range: "20 to 30 kg", "over 20 kg", "up to 20 kg" and "20 kg or more".
_BETWEEN = re.compile(
    rf"(?<![\w.,:-])(?:(over|above|more than|über) )?(?P<both>between |zwischen |entre )?[€£$]?{_FIGURE}"
    rf"(?: ?({_UNIT}))??(?: ?- ?| (?(both)(?:and|und|y|et)|(?:to|until|bis|à|a)) ){_AMOUNT}"
)
#: Not after a negation: "no more than 20 kg" is at most that.
_NOT = r"(?<!\bno )(?<!\bnot )(?<!\bnicht )"
_MORE = "(?:more|older|longer|heavier|higher|larger|greater) than|over|above|beyond"
_LESS = "(?:less|fewer|younger|shorter|lighter|smaller) than|under|below"
#: For amounts from one on, above one, up to one, and below one, what is before and after it.
_FROM, _ABOVE, _UP_TO, _BELOW = (
    re.compile(rf"(?:\b{_NOT}(?:{words})|[{signs}]) ?{_AMOUNT}|{after or '(?!)'}")
    for words, signs, after in (
        (
            rf"from|at least|ab|mindestens|(?:no|not) (?:{_LESS})|nicht unter",
            "≥",
            rf"(?<![\w.,:-]){_AMOUNT} (?:or|and) (?:more|over|older|above|longer|up|heavier|higher|larger)\b",
        ),
        (rf"{_MORE}|über|plus de", ">", ""),
        (
            rf"up to|at most|bis|höchstens|(?:no|not) (?:{_MORE})|nicht über",
            "≤",
            rf"(?<![\w.,:-]){_AMOUNT} (?:or|and) (?:less|fewer|under|younger|below|shorter|lighter|smaller)\b",
        ),
        (rf"{_LESS}|unter|moins de", "<", ""),
    )
)


#: What is before an amount that a question asks for more or less than: "over 10 kg".
ABOVE_IT, BELOW_IT = (
    re.compile(rf"(?:\b{_NOT}(?:{words})|{sign}) ?[€£$]?$")
    for words, sign in ((f"{_MORE}|über|plus de", ">"), (f"{_LESS}|unter|moins de", "<"))
)
#: The place in an order that a word says: "second" and "2nd" are 2.
_SPELLED = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905
ORDER = {form: at for at, word in enumerate(_SPELLED, 1) for form in (word, f"{at}th")}
ORDER |= {"1st": 1, "2nd": 2, "3rd": 3}


class Quantity(NamedTuple):
    """A number with its sign and the unit beside it, if any."""

    value: Decimal
    unit: str = ""

    def is_in(self, found: "frozenset[Quantity]") -> bool:
        """Return whether a text with these quantities has this one: of the same unit, or one of both without."""
        return any(each.value == self.value and _is_one_unit(each.unit, self.unit) for each in found)

    def equals(self, other: "Quantity") -> bool:
        """Return whether both are the same amount: two weeks and 14 days, 3 pm and 15:00."""
        if not self.unit or not other.unit:
            return self.value == other.value
        (unit, factor), (same, by) = (_MEASURES.get(each.unit, (each.unit, 1)) for each in (self, other))
        return _is_one_unit(unit, same) and self.value * factor == other.value * by


def _is_one_unit(one: str, other: str) -> bool:
    return one == other or not one or not other or (one[0] == other[0] == "°" and "°" in (one, other))


class Bounds(NamedTuple):
    """A range of amounts of a unit; without an end, it is None."""

    low: Decimal | None
    high: Decimal | None
    unit: str
    #: An end that is no part of it: 20 kg of "over 20 kg".
    without: Decimal | None = None

    def has(self, quantity: Quantity) -> bool:
        """Return whether an amount of the same unit is in it."""
        if quantity.value == self.without:
            return False
        return (self.low is None or self.low <= quantity.value) and (self.high is None or quantity.value <= self.high)

    def goes_on(self, quantity: Quantity, side: int) -> bool:
        """Return whether more than an amount of the same unit is in it, or less if `side` is negative."""
        low, high = self.low, self.high
        if side > 0:
            return (low is None or low <= quantity.value) and (high is None or quantity.value < high)
        return (low is None or low < quantity.value) and (high is None or quantity.value <= high)


def bounds_in(text: str) -> Iterator[Bounds]:
    """Yield the ranges of amounts that a text in lower case has."""
    for match in _BETWEEN.finditer(text):
        low, high, unit = _decimal(match[3]), _decimal(match[5]), UNITS.get(match[6] or "", "")
        # "500 g to 2 kg" and 2024-05 are none.
        if low <= high and UNITS.get(match[4] or "", unit) == unit:
            yield Bounds(low, high, unit, low if match[1] else None)
    rest = _BETWEEN.sub(" ", text)
    for pattern in (_FROM, _ABOVE, _UP_TO, _BELOW):
        for match in pattern.finditer(rest):
            found = [*filter(None, match.groups()), ""]
            value, unit = _decimal(found[0]), UNITS.get(found[1], "")
            without = value if pattern in (_ABOVE, _BELOW) else None
            is_least = pattern in (_FROM, _ABOVE)
            yield Bounds(value, None, unit, without) if is_least else Bounds(None, value, unit, without)


def _decimal(figure: str) -> Decimal:
    return Decimal(figure.replace(",", ""))


def without_names(text: str, *, is_plain: bool) -> str:
    """Return a text without the numbers that name something: that of a paragraph, and of a year, day, hour or code.

    Unless a plain amount is asked for, such as a price, only the paragraph's is left out.
    """
    text = _ITEM_NUMBER.sub(" ", text)
    return _NAMING.sub(" ", text) if is_plain else text
