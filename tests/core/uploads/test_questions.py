"""Tests the questions and answers of Q&A sources."""

import pytest

from svc_daemon.core.uploads import questions
from svc_daemon.settings.limits import Limits
from tests.core.refusals import field_of, refusal

LIMITS = Limits()


def test_a_question_becomes_one_line_or_is_refused() -> None:
    asked = [("Why?", "Why?"), ("  Why\n\tnot? ", "Why not?"), ("Wh\u200by?", "Wh y?"), ("¿Por qué?", "¿Por qué?")]
    for text, question in asked:
        assert questions.check_question(text, LIMITS) == question, text
    for text in ["", " \n", "\u200b", "x" * 1025]:
        refused = refusal(questions.check_question, text, LIMITS, "alternate_questions.3")
        assert field_of(refused) == ("invalid_request", "alternate_questions.3"), text


@pytest.mark.parametrize("text", ["", " ", "?!", "\n"])
def test_an_answer_without_a_word_is_refused(text: str) -> None:
    assert "answer" in str(refusal(questions.check_answer, text))


def test_the_text_of_a_question_has_its_answer_below() -> None:
    text = questions.question_text("Why?", "Because.", ["How so?", "What for?"])
    assert text == "# Why?\n\n- How so?\n- What for?\n\nBecause.\n"
