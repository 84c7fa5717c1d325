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


@pytest.mark.parametrize(
    ("text", "fair", "false"),
    [
        (
            "Die Kaltmiete beträgt 1.845,50 €.",
            "Die Kaltmiete beträgt 1845,50 Euro.",
            "Die Kaltmiete beträgt 1.845,60 €.",
        ),
        ("Die Gebühr beträgt 845,00 €.", "Die Gebühr beträgt 845 €.", "Die Gebühr beträgt 84500 €."),
        ("Kara wynosi 0,50 zł.", "Kara wynosi 0,5 zł.", "Kara wynosi 50 zł."),
        ("Le loyer est de 1 745,50 €.", "Le loyer est de 1745,50 €.", "Le loyer est de 2 745,50 €."),
        ("Плата составляет 35 000 рублей.", "Плата составляет 35000 рублей.", "Плата составляет 36 000 рублей."),
        ("قيمة الإيجار ٣٥٠٠ ريال", "قيمة الإيجار 3500 ريال", "قيمة الإيجار ٤٥٠٠ ريال"),
        ("Am Montag geschlossen.", "Montags geschlossen.", "Am Dienstag geschlossen."),
        ("Der Laden ist montags geschlossen.", "Geschlossen ist der Laden montags.", "Der Laden ist montags geöffnet."),
        ("Ouvert du mardi au jeudi.", "Ouvert le mercredi.", "Ouvert du lundi au jeudi."),
        ("Договор заключён 3 марта 2024.", "Договор заключён 03.03.2024.", "Договор заключён 3 мая 2024."),
        ("Frist: elf Monate.", "Frist: 11 Monate.", "Frist: zwölf Monate."),
        ("Держать собак не разрешается.", "Держать собак запрещается.", "Держать собак разрешается."),
        ("Hunde sind erlaubt.", "Erlaubt sind Hunde.", "Hunde sind verboten."),
        ("Geöffnet 10.00-18.30 Uhr", "Geöffnet von 10:00 bis 18:30 Uhr", "Geöffnet 10.00-19.30 Uhr"),
    ],
)
def test_changes_are_found_in_other_languages(text: str, fair: str, false: str) -> None:
    assert [is_supported(Statement(text, sentence)) for sentence in (fair, false)] == [True, False]


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
