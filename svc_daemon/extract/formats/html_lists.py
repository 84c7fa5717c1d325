"""Lists of a page: the numbers that its reader sees before the items."""

from collections.abc import Mapping

_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
#: Larger numbers are shown in digits.
_MOST_ROMAN = 3999


class OpenList:
    """A list that has begun."""

    def __init__(self, tag: str, attributes: Mapping[str, str | None], *, is_unmarked: bool = False) -> None:
        self._is_numbered = tag == "ol" and not is_unmarked
        self._type = attributes.get("type") or "1"
        self._step = -1 if "reversed" in attributes else 1
        self._next = _integer(attributes.get("start"), 1)

    def mark(self, value: str | None) -> str:
        """Return what stands before the next item, whose number may be given; empty if it has none."""
        if not self._is_numbered:
            return ""
        number = _integer(value, self._next)
        self._next = number + self._step
        shown = str(number)
        if self._type in {"a", "A"} and number > 0:
            shown = ""
            while number:
                number, rest = divmod(number - 1, 26)
                shown = chr(ord(self._type) + rest) + shown
        if self._type in {"i", "I"} and 0 < number <= _MOST_ROMAN:
            shown = ""
            for unit, letters in _ROMAN:
                shown += letters * (number // unit)
                number %= unit
            shown = shown if self._type == "i" else shown.upper()
        return f"{shown}. "


def _integer(digits: str | None, default: int) -> int:
    digits = (digits or "").strip()
    return int(digits) if digits.removeprefix("-").isdecimal() and len(digits) < 10 else default
