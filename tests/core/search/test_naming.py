"""Which documents a query names."""

import pytest

from svc_daemon.core.search.naming import choose_named, names_of, rate_names
from svc_daemon.core.text.queries import parse_query

TITLES = (
    "minutes_march_2024.md",
    "wedding, 7 June.md",
    "pricelist_2024_Q2.csv",
    "honey-pricelist-2024.csv",
    "pep-0008.rst",
    "2024-09-13_team_meeting.md",
)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("what does PEP 8 say about line length", ["pep-0008.rst"]),
        ("minutes march 2024", ["minutes_march_2024.md"]),
        ("valid until 15 March 2024", []),
        ("agreement of 7 June 2023", []),
        ("the meeting of 13 January agreed", []),
        ("No. 9 of 2024, harbour", []),
        (r"C:\Users\ana\pricelist_2024_Q2.csv", ["pricelist_2024_Q2.csv"]),
        ("pricelist 2024 q2 bolts", ["pricelist_2024_Q2.csv"]),
        ("honey pricelist 2024", ["honey-pricelist-2024.csv"]),
    ],
)
def test_a_query_names_a_document_by_its_words_or_its_number_but_not_by_parts_of_a_date(
    query: str, named: list[str]
) -> None:
    parsed = parse_query(query)
    rated = [(number, rate_names(parsed, names_of(title, ""), "en")) for number, title in enumerate(TITLES)]
    assert [TITLES[number] for number in choose_named(rated)] == named
