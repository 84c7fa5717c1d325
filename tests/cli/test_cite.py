"""`svc cite verify`: which files it accepts as answers."""

from typing import Any

import pytest

from svc_cli.commands.daily.cite import Quote, read_quotes
from svc_cli.errors import UsageError

QUOTE = "The quay opens at dawn."
LOCATION: dict[str, Any] = {"page": 2, "line_start": None, "line_end": None, "char_start": 11, "char_end": 34}


def quote(text: str = QUOTE, **location: Any) -> Quote:
    return Quote(number=1, source_id="src_1", title="a", quote=text, location={**LOCATION, **location})


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
