"""Tests whether cited passages support a sentence: paraphrases pass, other numbers and names don't."""

from decimal import Decimal

import pytest

from svc_daemon.core.answers.claims import Number, Reference, is_borne_out, numbers_of
from tests.core.answers.passages import passage
from tests.core.answers.statements import ALARMS, FOUND_OUT, MISSED, PROVED, Statement
from tests.core.limits import cpu_limit_s


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
    assert all(is_borne_out(sentence.text, [reference], "") for sentence in reference.sentences)


def test_words_of_the_question_may_be_repeated() -> None:
    repeated = Statement("Employees get 30 days.", "After 5 years with Meier Marine employees get 30 days.")
    assert is_supported(repeated, "What do employees get after 5 years with Meier Marine?")
    assert not is_supported(repeated)


def test_several_passages_together_can_support_a_sentence() -> None:
    both = [Reference(passage("The fee is 40 euros.")), Reference(passage("Refunds take 10 days."))]
    assert is_borne_out("The fee is 40 euros and refunds take 10 days.", both, "")
    assert not is_borne_out("The fee is 40 euros and refunds take 10 days.", both[:1], "")


def test_the_numbers_in_a_text_are_found() -> None:
    cases: list[tuple[str, list[tuple[str, str | None]]]] = [
        ("a 30-day trial of two weeks", [("30", None)]),
        ("1,000 or 1000.0", [("1000", None)] * 2),
        ("$40, € 40, 40 € and 40 %", [("40", "$"), ("40", "€"), ("40", "€"), ("40", "%")]),
        ("9:00, 09:00, 9:30", [("9", None), ("9", None), ("9", None), ("30", None)]),
        ("the 3rd, AES-256", [("3", None), ("256", None)]),
        # More digits than Python parses as an int.
        ("9" * 5000, [("9" * 5000, None)]),
        ("1" + ",000" * 2000, [("1" + "000" * 2000, None)]),
        ("", []),
    ]
    for text, numbers in cases:
        assert numbers_of(text) == [Number(Decimal(value), sign) for value, sign in numbers]


@pytest.mark.parametrize("part", ["not ", "5 ", "$5", "a, ", "Ab ", "% "])
def test_the_processor_time_grows_linearly_with_the_text(part: str) -> None:
    with cpu_limit_s(3):
        is_borne_out(part * (50_000 // len(part)), [Reference(passage(part * 500))], "")
