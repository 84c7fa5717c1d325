"""What `svc-ask` tells whoever reads no data."""

import pytest

from svc_daemon.tools.answers import NOT_AT_ALL, PARTLY, AnswerCitation, Answered

CITATION = AnswerCitation(
    number=1,
    quote="They get 30 days.",
    citation="handbook.pdf, page 3",
    source_id="src_1",
    title="Handbook",
    filename="handbook.pdf",
    source_url=None,
    page=3,
    line_start=None,
    line_end=None,
    headings=[],
)


@pytest.mark.parametrize(
    ("grounded", "citations", "doubt"),
    [(True, [CITATION], []), (False, [CITATION], [PARTLY]), (False, [], [NOT_AT_ALL])],
)
def test_how_far_an_answer_is_grounded_stands_under_it(
    grounded: bool, citations: list[AnswerCitation], doubt: list[str]
) -> None:
    lines = Answered(answer="30 days. [1]", grounded=grounded, citations=citations, warnings=[]).text().split("\n")
    assert lines[1 : len(lines) - len(citations)] == doubt


def test_what_the_search_has_to_say_stands_last() -> None:
    answered = Answered(answer="30 days. [1]", grounded=True, citations=[CITATION], warnings=["It went by keyword."])
    assert answered.text().split("\n")[-1] == "Warning: It went by keyword."
