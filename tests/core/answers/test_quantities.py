"""Tests which amounts are in a range that a text has."""

from decimal import Decimal

import pytest

from svc_daemon.core.answers.quantities import Quantity, bounds_in


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("20 to 30 kg", (20, 30), (19, 31)),
        ("over 2 kg to 5 kg", (3, 5), (2, 6)),
        ("between 4 and 8 kg", (4, 8), (3, 9)),
        ("over 20 kg", (21,), (20, 19)),
        ("under 20 kg", (19,), (20, 21)),
        ("20 kg or more", (20, 21), (19,)),
        ("up to 1,000 kg", (999, 1000), (1001,)),
        # A bound that is denied is the other one.
        ("no more than 20 kg", (19, 20), (21,)),
        ("not under 20 kg", (20, 21), (19,)),
        # Two amounts, two units, dates, hours and figures of unknown size are no ranges of an amount.
        ("packs of 5 and 10 kg", (), (7,)),
        ("500 g to 900 kg", (), (600,)),
        ("2024-05 kg", (), (2024,)),
        ("10:20 - 14:30 kg", (), (12, 14)),
        ("up to 12,5 kg", (), (11,)),
        ("nicht über 20 kg", (19, 20), (21,)),
        ("moins de 20 kg", (19,), (20,)),
        # Another unit.
        ("over 30 m2", (), (31,)),
    ],
)
def test_a_range_has_what_it_says(text: str, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    bounds = list(bounds_in(text))
    for value, expected in [*((each, True) for each in inside), *((each, False) for each in outside)]:
        assert any(each.unit == "kg" and each.has(Quantity(Decimal(value), "kg")) for each in bounds) == expected, value
