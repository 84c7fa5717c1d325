"""Questions and answers as text."""

import pytest

from svc_daemon.core.questions import check_answer, check_question, question_text
from svc_daemon.errors import ServiceError
from svc_daemon.settings import Limits


@pytest.mark.parametrize(
    ("text", "question"),
    [("Why?", "Why?"), ("  Why\n\tnot? ", "Why not?"), ("Wh\u200by?", "Wh y?"), ("¿Por qué?", "¿Por qué?")],
)
def test_a_question_is_one_line(text: str, question: str) -> None:
    assert check_question(text, Limits()) == question


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "x" * 1025])
def test_a_blank_or_endless_question_is_refused_by_name(text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        check_question(text, Limits(), "alternate_questions.3")
    assert refused.value.details["errors"][0]["path"] == "alternate_questions.3"


@pytest.mark.parametrize("text", ["", " ", "?!", "\n"])
def test_an_answer_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match="answer"):
        check_answer(text)


def test_the_question_heads_its_answer() -> None:
    assert question_text("Why?", "Because.", ["How so?", "What for?"]) == (
        "# Why?\n\n- How so?\n- What for?\n\nBecause.\n"
    )
