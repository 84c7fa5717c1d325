"""The text that `svc-ask` returns to clients that only read text."""

from typing import Any

from svc_daemon.tools.answers import NOT_AT_ALL, PARTLY, AnswerCitation, Answered

PLACE: dict[str, Any] = {"source_url": None, "page": 3, "line_start": None, "line_end": None, "headings": []}
NAMES = {"source_id": "src_1", "title": "Handbook", "filename": "handbook.pdf", "citation": "handbook.pdf, page 3"}
CITATION = AnswerCitation.model_validate({"number": 1, "quote": "They get 30 days.", **NAMES, **PLACE})


def lines(grounded: bool, citations: list[AnswerCitation], *warnings: str) -> list[str]:
    answered = Answered(answer="30 days. [1]", grounded=grounded, citations=citations, warnings=list(warnings))
    return answered.text().split("\n")


def test_text_of_an_answer_ends_with_its_grounding_and_warnings() -> None:
    assert lines(True, [CITATION])[1:-1] == []
    assert lines(False, [CITATION])[1:-1] == [PARTLY]
    assert lines(False, [])[1:] == [NOT_AT_ALL]
    assert lines(True, [CITATION], "It went by keyword.")[-1] == "Warning: It went by keyword."
