"""Quantities: numbers with their units, however these are written, and which of them are the same amount."""

from decimal import Decimal
from typing import NamedTuple

#: Units, and what else they are called. The first of each group replaces the others.
_UNITS = (
    "°c celsius, °f fahrenheit, ° degree degrees deg, % percent pct, € eur euro euros, $ usd dollar dollars, "
    "£ gbp pound pounds, "
    "kg kilogram kilograms kilo kilos, g gram grams, mg milligram milligrams, km kilometre kilometres kilometer "
    "kilometers, m metre metres meter meters, cm centimetre centimetres centimeter centimeters, mm millimetre "
    "millimetres millimeter millimeters, l litre litres liter liters, ml millilitre millilitres, h hour hours hr hrs, "
    "min minute minutes mins, s second seconds sec secs, day days, week weeks, month months, year years, kw kilowatt "
    "kilowatts, kwh, w watt watts, v volt volts, bar bars, kb, mb, gb, tb, km/h kph, mph, m2, m3, cent cents ct, page "
    "pages, inch inches, foot feet ft, mile miles, tonne tonnes, ¥ yen, ‰, night nights, quarter quarters, pm, am, "
    "hz, khz, mhz, rpm, psi, pa, kpa, hpa, amp amps ampere, ppm, hp horsepower, knot knots kn, m/s"
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
