"""`svc cite verify`: which files it accepts as answers, and when a quote is proven."""

import copy
from typing import Any

import pytest

from svc_cli.commands.daily.cite import PROVEN, Quote, prove, read_quotes
from svc_cli.errors import UsageError

TEXT = "One page.\n\nThe quay opens at dawn. The quay opens at dawn."
QUOTE = "The quay opens at dawn."
LOCATION: dict[str, Any] = {"page": 2, "line_start": None, "line_end": None, "char_start": 11, "char_end": 34}
FIRST_LOCATION = {"page": 1, "char_start": 0, "char_end": 9}
CHUNKS: list[dict[str, Any]] = [{"location": LOCATION | each} for each in (FIRST_LOCATION, {"char_end": 58})]
CONTENT = {"sha256": "ab", "unchanged": True, "error": None}
READING: dict[str, Any] = {"content": CONTENT, "text": TEXT, "chunks": CHUNKS}


def quote(text: str = QUOTE, **location: Any) -> Quote:
    return Quote(number=1, source_id="src_1", title="a", quote=text, location={**LOCATION, **location})


@pytest.mark.parametrize(
    ("quoted", "result"),
    (
        *((quote(), PROVEN), (quote(char_start=35, char_end=58), PROVEN)),
        *((quote(text), "not_found") for text in ("The quay opens at dawm.", "the quay opens at dawn.", "")),
        *((quote(char_start=12, char_end=35), "elsewhere"), (quote(char_end=33), "elsewhere")),
        *((quote(char_start=start, char_end=start + 23), "elsewhere") for start in (-47, 10**9)),
        *((quote(page=1), "elsewhere"), (quote(page=None), "elsewhere")),
        (quote(line_start=1, line_end=1), "elsewhere"),
    ),
)
def test_quote_is_proven_only_by_its_exact_text_at_its_exact_location(quoted: Quote, result: str) -> None:
    assert prove(quoted, READING)[0] == result


def test_deleted_changed_or_unreadable_source_proves_no_quote() -> None:
    assert prove(quote(), None)[0] == "source_gone"
    for content, result in (
        ({"unchanged": False}, "bytes_changed"),
        ({"sha256": None, "unchanged": False}, "bytes_lost"),
        ({"error": {"message": "The PDF is damaged."}}, "unreadable"),
    ):
        assert prove(quote(), READING | {"content": CONTENT | content})[0] == result


def test_lines_of_a_quote_must_be_within_those_of_its_chunk() -> None:
    reading = copy.deepcopy(READING)
    reading["chunks"][1]["location"].update(line_start=3, line_end=5)
    proven = {(3, 3): True, (3, 5): True, (2, 3): False, (5, 6): False, (None, None): False, (5, 3): False}
    for (first, last), is_proven in proven.items():
        found = prove(quote(line_start=first, line_end=last), reading)[0]
        assert found == (PROVEN if is_proven else "elsewhere"), (first, last)


def test_quote_is_still_proven_after_its_document_is_split_differently() -> None:
    smaller, larger = [(3, 4), (4, 6)], [(1, 90)]
    for lines, first, last, is_proven in (
        *((smaller, 3, 6, True), (smaller, 2, 7, True), (smaller, 7, 8, False), (smaller, 1, 2, False)),
        (larger, 3, 6, True),
    ):
        pieces = [
            {"page": 2, "char_start": 11 + 10 * index, "char_end": 58, "line_start": start, "line_end": end}
            for index, (start, end) in enumerate(lines)
        ]
        reading = {**READING, "chunks": [CHUNKS[0], *({"location": piece} for piece in pieces)]}
        found = prove(quote(line_start=first, line_end=last), reading)[0]
        assert found == (PROVEN if is_proven else "elsewhere"), (lines, first, last)


def test_read_quotes_accepts_answers_and_search_results() -> None:
    answer = {"sources": [{"number": 1, "source_id": "src_1", "title": "a", "quote": QUOTE, "location": LOCATION}]}
    page = {"data": [{"source_id": "src_1", "filename": "a", "text": QUOTE, "location": LOCATION}]}
    assert read_quotes(answer, "x.json") == read_quotes(page, "x.json") == [quote()]
    assert read_quotes({"sources": []}, "x.json") == []


def test_read_quotes_refuses_documents_that_are_not_answers() -> None:
    valid = {"source_id": "src_1", "quote": "x", "location": LOCATION}
    wrong: list[Any] = [{"quote": 5}, {"source_id": 5}, {"location": {}}]
    wrong += [{"location": {"char_start": "1", "char_end": 2}}]
    sources: list[Any] = [None, {}, [5], [{}], *([valid | fields] for fields in wrong)]
    documents: list[Any] = [None, 5, [], {}, *({"sources": each} for each in sources)]
    for document in documents:
        with pytest.raises(UsageError, match=r"x\.json"):
            pytest.fail(f"{document} has the quotes {read_quotes(document, 'x.json')}")
