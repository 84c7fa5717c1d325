"""Tests which days and months a text names."""

import pytest

from svc_daemon.core.answers.readings import Reading
from svc_daemon.core.dates import ranged_in


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 14 March and 2024-05-09", {"03-14", "05-09"}),
        ("am 24.09. um 19:30, nicht am 1.10.2024", {"09-24", "10-01"}),
        ("le 3 août, el 8 de abril, 5. Oktober, il 2 maggio, 7 mei", {"08-03", "04-08", "10-05", "05-02", "05-07"}),
        (
            "3 marca, 14 апреля, 5 Μαΐου, 6 Haziran, 7 ביולי, 2024年8月9日",
            {"03-03", "04-14", "05-05", "06-06", "07-07", "08-09"},
        ),
        ("version 2.1 costs 11.09 euros. Section 4.2.1. On 32.13. nothing", set()),
    ],
)
def test_days_are_read_in_each_form(text: str, days: set[str]) -> None:
    assert Reading(text).days == days


@pytest.mark.parametrize(
    ("text", "within", "outside"),
    [
        ("open April\u2013October, Saturdays", ("april", "july", "october"), "march"),
        ("from 1 November to 28 Feb", ("november", "january", "february"), "march"),
        ("Mon-Fri 9-5", ("monday", "weekday", "friday"), "saturday"),
        ("Sat to Mon", ("saturday", "sunday", "monday"), "weekday"),
        ("Dienstag bis Freitag", ("tuesday", "wednesday", "friday"), "saturday"),
        ("du mardi au dimanche", ("tuesday", "sunday"), "monday"),
        ("montags und am Mittwoch", ("monday", "wednesday"), "tuesday"),
    ],
)
def test_ranges_have_the_names_within_them(text: str, within: tuple[str, ...], outside: str) -> None:
    reading = Reading(text)
    assert all(name in reading.spelled for name in within)
    assert outside not in reading.spelled


def test_names_apart_are_no_range() -> None:
    assert list(ranged_in("May we go to Marchwood? Monday or Friday.")) == []
