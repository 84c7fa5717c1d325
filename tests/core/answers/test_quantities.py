"""Tests which amounts are in a range that a text has."""

from decimal import Decimal

import pytest

from svc_daemon.core.answers.quantities import Quantity, bounds_in, in_english


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


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("1.234,50 €, 8,5 kg and -18,5 °C", "1,234.50 €, 8.5 kg and -18.5 °C"),
        ("1 745,50 und 1\u202f745 und 35 000 рублей", "1,745.50 und 1,745 und 35,000 рублей"),
        ("1'234.50 CHF, 3.000 Euro, 1.234.567 Einwohner", "1,234.50 CHF, 3,000 Euro, 1,234,567 Einwohner"),
        ("8,50-9,50 €; 0,125 mg", "8.50-9.50 €; 0.125 mg"),
        ("10.00 - 18.30 Uhr", "10:00 - 18:30 Uhr"),
        *(
            (same, same)
            for same in (
                "1,234.50 and 1,234",
                "12,5",
                "a,22,13,80,6",
                "2025-06-07,13:00,0.74,28.4,172,Una",
                "Tel. 0341 123 456, 600 555 218",
                "192.168.100.200, v1.234, 3.1.2",
                "in 1990, 20 people in rooms 4, 5",
            )
        ),
    ],
)
def test_figures_of_other_languages_are_read_as_in_english(text: str, english: str) -> None:
    assert in_english(text) == english
    assert len(english) == len(text)
