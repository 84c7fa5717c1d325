"""What `svc cite verify` takes for an answer, and when a quote counts as proven."""

import copy
from typing import Any

import pytest

from svc_cli.commands.cite import PROVEN, Quote, prove, read_quotes
from svc_cli.errors import UsageError

TEXT = "One page.\n\nThe quay opens at dawn. The quay opens at dawn."
QUOTE = "The quay opens at dawn."
PLACE: dict[str, Any] = {
    "page": 2,
    "line_start": None,
    "line_end": None,
    "char_start": 11,
    "char_end": 34,
    "headings": [],
}
CHUNKS: list[dict[str, Any]] = [
    {"location": {"page": 1, "line_start": None, "line_end": None, "char_start": 0, "char_end": 9}},
    {"location": {"page": 2, "line_start": None, "line_end": None, "char_start": 11, "char_end": 58}},
]
READING: dict[str, Any] = {
    "content": {"sha256": "ab", "unchanged": True, "error": None},
    "text": TEXT,
    "chunks": CHUNKS,
}


def quote(text: str = QUOTE, **place: Any) -> Quote:
    return Quote(number=1, source_id="src_1", title="a", quote=text, location={**PLACE, **place})


def with_content(**content: Any) -> dict[str, Any]:
    return {**READING, "content": {**READING["content"], **content}}


CASES = [
    (quote(), READING, PROVEN),
    (quote("The quay opens at dawm."), READING, "not_found"),
    (quote("the quay opens at dawn."), READING, "not_found"),
    (quote(""), READING, "not_found"),
    (quote(char_start=35, char_end=58), READING, PROVEN),
    (quote(char_start=12, char_end=35), READING, "elsewhere"),
    (quote(char_end=33), READING, "elsewhere"),
    (quote(char_start=-47, char_end=-24), READING, "elsewhere"),
    (quote(char_start=10**9, char_end=10**9 + 23), READING, "elsewhere"),
    (quote(page=1), READING, "elsewhere"),
    (quote(page=None), READING, "elsewhere"),
    (quote(line_start=1, line_end=1), READING, "elsewhere"),
    (quote(), None, "source_gone"),
    (quote(), with_content(unchanged=False), "bytes_changed"),
    (quote(), with_content(sha256=None, unchanged=False), "bytes_lost"),
    (quote(), with_content(error={"message": "The PDF is damaged."}), "unreadable"),
]


@pytest.mark.parametrize(("quoted", "reading", "result"), CASES)
def test_a_quote_is_proven_by_its_very_words_at_their_very_place(
    quoted: Quote, reading: dict[str, Any] | None, result: str
) -> None:
    assert prove(quoted, reading)[0] == result


@pytest.mark.parametrize(
    ("first", "last", "result"),
    [
        (3, 3, PROVEN),
        (3, 5, PROVEN),
        (2, 3, "elsewhere"),
        (5, 6, "elsewhere"),
        (None, None, "elsewhere"),
        (5, 3, "elsewhere"),
    ],
)
def test_lines_must_be_among_those_of_the_place(first: int | None, last: int | None, result: str) -> None:
    reading = copy.deepcopy(READING)
    reading["chunks"][1]["location"].update(line_start=3, line_end=5)
    assert prove(quote(line_start=first, line_end=last), reading)[0] == result


@pytest.mark.parametrize(
    ("lines", "first", "last", "result"),
    [
        # The quote goes over two of the smaller pieces that its own became, or over all of a larger one.
        ([(3, 4), (4, 6)], 3, 6, PROVEN),
        ([(3, 4), (4, 6)], 2, 7, PROVEN),
        ([(3, 4), (4, 6)], 7, 8, "elsewhere"),
        ([(3, 4), (4, 6)], 1, 2, "elsewhere"),
        ([(1, 90)], 3, 6, PROVEN),
    ],
)
def test_a_quote_stays_proven_where_its_document_was_cut_anew(
    lines: list[tuple[int, int]], first: int, last: int, result: str
) -> None:
    pieces = [
        {"page": 2, "char_start": 11 + 10 * place, "char_end": 58, "line_start": start, "line_end": end}
        for place, (start, end) in enumerate(lines)
    ]
    reading = {**READING, "chunks": [CHUNKS[0], *({"location": piece} for piece in pieces)]}
    assert prove(quote(line_start=first, line_end=last), reading)[0] == result


ANSWER = {"sources": [{"number": 1, "source_id": "src_1", "title": "a", "quote": QUOTE, "location": PLACE}]}
PAGE = {"data": [{"source_id": "src_1", "filename": "a", "text": QUOTE, "location": PLACE}]}


@pytest.mark.parametrize("document", [ANSWER, PAGE])
def test_answers_and_results_have_quotes(document: dict[str, Any]) -> None:
    assert read_quotes(document, "x.json") == [quote()]


NO_ANSWERS: list[Any] = [
    None,
    5,
    [],
    {},
    {"sources": None},
    {"sources": {}},
    {"sources": [5]},
    {"sources": [{}]},
    {"sources": [{"source_id": "src_1", "quote": 5, "location": PLACE}]},
    {"sources": [{"source_id": 5, "quote": "x", "location": PLACE}]},
    {"sources": [{"source_id": "src_1", "quote": "x", "location": {}}]},
    {"sources": [{"source_id": "src_1", "quote": "x", "location": {"char_start": "1", "char_end": 2}}]},
]


@pytest.mark.parametrize("document", NO_ANSWERS)
def test_what_is_no_answer_is_said_to_be_none(document: Any) -> None:
    with pytest.raises(UsageError, match=r"x\.json"):
        read_quotes(document, "x.json")


def test_an_answer_without_sources_has_nothing_to_prove() -> None:
    assert read_quotes({"sources": []}, "x.json") == []
