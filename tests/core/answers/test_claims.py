"""Tests whether cited passages support a sentence: paraphrases pass, other numbers and names don't."""

import pytest

from svc_daemon.core.answers.claims import Reference, is_borne_out
from tests.core.answers.passages import passage
from tests.core.answers.statements import ALARMS, FOUND_OUT, MISSED, PROVED, Statement
from tests.limits import cpu_limit_s


def is_supported(statement: Statement, question: str = "") -> bool:
    return is_borne_out(statement.sentence, [Reference(passage(statement.passage))], question)


@pytest.mark.parametrize(
    ("statements", "supported"), [(PROVED, True), (ALARMS, False), (FOUND_OUT, False), (MISSED, True)]
)
def test_fair_and_false_sentences_are_judged_as_listed(statements: list[Statement], supported: bool) -> None:
    assert [each.sentence for each in statements if is_supported(each) is not supported] == []


@pytest.mark.parametrize("each", sorted({each.passage for each in (*PROVED, *ALARMS)}))
def test_sentences_of_the_passage_itself_are_supported(each: str) -> None:
    reference = Reference(passage(each))
    assert all(is_borne_out(each.text, [reference], "") for each in reference.statements)


def test_words_of_the_question_may_be_repeated() -> None:
    repeated = Statement("Employees get 30 days.", "After 5 years with Meier Marine employees get 30 days.")
    assert is_supported(repeated, "What do employees get after 5 years with Meier Marine?")
    assert not is_supported(repeated)


def test_several_passages_together_can_support_a_sentence() -> None:
    both = [Reference(passage("The fee is 40 euros.")), Reference(passage("Refunds take 10 days."))]
    assert is_borne_out("The fee is 40 euros and refunds take 10 days.", both, "")
    assert not is_borne_out("The fee is 40 euros and refunds take 10 days.", both[:1], "")


@pytest.mark.parametrize("part", ["not ", "5 ", "$5", "a, ", "Ab ", "% "])
def test_the_processor_time_grows_linearly_with_the_text(part: str) -> None:
    with cpu_limit_s(3):
        is_borne_out(part * (50_000 // len(part)), [Reference(passage(part * 500))], "")
