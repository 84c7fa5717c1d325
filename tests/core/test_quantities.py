"""Numbers of a text, however they are written."""

from fractions import Fraction

import pytest

from svc_daemon.core.quantities import quantities_of

DAY = 86400
CASES: list[tuple[str, list[tuple[int | Fraction, str | None]]]] = [
    ("thirty days", [(30 * DAY, "time")]),
    ("30-day", [(30 * DAY, "time")]),
    ("a 30 day trial", [(30 * DAY, "time")]),
    ("two weeks", [(14 * DAY, "time")]),
    ("24 hours, one day, a day", [(DAY, "time")] * 3),
    ("half a year", [(6, "months")]),
    ("five paid working days", [(5 * DAY, "time")]),
    ("twenty-five", [(25, None)]),
    ("two hundred and fifty", [(250, None)]),
    ("three thousand four hundred", [(3400, None)]),
    ("1,000 or 1.5 million", [(1000, None), (1_500_000, None)]),
    ("$40, €40 and 40 euros", [(40, "dollar"), (40, "euro"), (40, "euro")]),
    ("2.50 and 2.5", [(Fraction(5, 2), None)] * 2),
    ("9:00, 09:00", [(9, None)] * 2),
    ("5 pm", [(17, None)]),
    ("25 MB", [(25_000_000, "bytes")]),
    ("per second, each quarter, daily", [(1, "time"), (3, "months"), (DAY, "time")]),
    ("five, six", [(5, None), (6, None)]),
    ("the 3rd, the third", [(3, None)] * 2),
    ("one of them, no one, a second person, someone", []),
    # More digits than Python reads as an int.
    ("9" * 5000, [(10**5000 - 1, None)]),
    ("1" + ",000" * 2000, [(10**6000, None)]),
    ("", []),
]


@pytest.mark.parametrize(("text", "quantities"), CASES)
def test_quantities_of_a_text(text: str, quantities: list[tuple[int | Fraction, str | None]]) -> None:
    assert [(each.number, each.kind) for each in quantities_of(text)] == [
        (Fraction(number), kind) for number, kind in quantities
    ]
