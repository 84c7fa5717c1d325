"""Whether a sentence says what its passage says: paraphrases pass, lies are found out, and what slips by is known."""

import time

import pytest

from svc_daemon.core.claims import is_borne_out
from svc_daemon.core.references import Reference
from tests.core.passages import passage
from tests.core.statements import FAIR, FAIR_UNSEEN, LYING, LYING_UNSEEN, Statement

#: Fair, and told as ungrounded all the same.
ALARMS = {
    "Rooms have to be left by 11 in the morning at the latest.",
    "Unlike the index, the state can't be made again from the blobs.",
}
#: Lies that nothing here finds out.
MISSED = {
    "Shipping costs are never paid by the customer, they are refunded.",
    "The garage doesn't close at 22:00.",
    "Two-factor login is optional for staff.",
    "Cats are welcome for 12 euros a night.",
    "Subletting is allowed.",
    "Repairs under 100 euros are paid by the landlord.",
}


def is_judged_fair(statement: Statement, question: str = "") -> bool:
    return is_borne_out(statement.sentence, [Reference(passage(statement.passage))], question)


def name(statement: Statement) -> str:
    return statement.sentence


@pytest.mark.parametrize("statement", [*FAIR, *FAIR_UNSEEN], ids=name)
def test_a_fair_sentence_is_borne_out(statement: Statement) -> None:
    assert is_judged_fair(statement) is (statement.sentence not in ALARMS)


@pytest.mark.parametrize("statement", [*LYING, *LYING_UNSEEN], ids=name)
def test_a_lie_is_not_borne_out(statement: Statement) -> None:
    assert is_judged_fair(statement) is (statement.sentence in MISSED)


@pytest.mark.parametrize("statement", [*FAIR, *FAIR_UNSEEN], ids=name)
def test_what_the_passage_says_itself_is_borne_out(statement: Statement) -> None:
    reference = Reference(passage(statement.passage))
    assert all(is_borne_out(each.text, [reference], "") for each in reference.sentences)


def test_what_the_question_says_may_be_said_again() -> None:
    told = Statement("Employees get 30 days.", "After 5 years with Meier Marine employees get 30 days.")
    assert is_judged_fair(told, "What do employees get after 5 years with Meier Marine?")
    assert not is_judged_fair(told)


def test_words_of_several_passages_bear_a_sentence_out_together() -> None:
    both = [Reference(passage("The fee is 40 euros.")), Reference(passage("Refunds take ten days."))]
    assert is_borne_out("The fee is 40 euros and refunds take 10 days.", both, "")
    assert not is_borne_out("The fee is 40 euros and refunds take 10 days.", both[:1], "")


@pytest.mark.parametrize("part", ["not ", "and ", "5 ", "twenty-", "a, ", "Ab ", ": but ", "% "])
def test_the_time_grows_with_the_text_and_not_faster(part: str) -> None:
    began_s = time.process_time()
    is_borne_out(part * (50_000 // len(part)), [Reference(passage(part * 500))], "")
    assert time.process_time() - began_s < 3
