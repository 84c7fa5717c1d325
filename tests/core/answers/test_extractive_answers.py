"""Tests answers that quote sentences of the sources."""

import pytest

from svc_daemon.core.answers.extractive_answers import MOST_SENTENCES, quote_best
from svc_daemon.core.answers.passages import Passage
from tests.core.answers.passages import passage

OFFICE = "Our policy is generous. Full-time employees get\n30 days of vacation a year. Part-time staff get 15 days."
VACATION = passage(OFFICE, headings=("Vacation",), vacation=3.0, days=2.0, employees=1.0)
GARAGE = passage("The garage opens at seven. Employees may park there.", employees=1.0)
ROWS = passage("Office | Opens\nOslo | at eight\nBergen | at nine |", oslo=2.0, office=1.0, opens=1.0)


def answer_to(question: str, *passages: Passage) -> str:
    return "".join(piece.text for piece in quote_best(question, question, passages).pieces)


def test_the_best_sentence_is_quoted_word_for_word_with_its_mark() -> None:
    answer = answer_to("How many vacation days do employees get?", VACATION, GARAGE)
    assert answer == "Full-time employees get 30 days of vacation a year. [1]"
    assert len({answer_to("employees", *[VACATION, GARAGE] * 3) for _ in range(20)}) == 1
    assert quote_best("anything", "anything", []).pieces == ()


def test_a_question_with_two_parts_gets_a_sentence_for_each() -> None:
    fees, refunds = passage("The annual fee is forty euros.", fee=3.0), passage("Refunds take ten days.", refunds=3.0)
    answer = answer_to("What is the fee, and are there refunds?", fees, refunds)
    assert answer == "The annual fee is forty euros. [1] Refunds take ten days. [2]"


def test_the_number_in_a_code_of_the_question_may_be_the_answer_too() -> None:
    for question, text in (
        ("What does room B12 cost?", "Room B12 costs 12 euros."),
        ("What is the fee of tank7?", "The fee of tank7 is 7 euros."),
    ):
        assert answer_to(question, passage(text, cost=1.0, fee=1.0)) == f"{text} [1]"


def test_sentences_of_one_passage_keep_their_order_and_are_limited() -> None:
    steps = passage("Fill in the form for travel. Then send the travel form to finance.", travel=1.0, form=1.0)
    assert answer_to("travel form", steps).startswith("Fill in the form for travel. [1] Then send")
    many = passage(" ".join(f"The quay number {number} is open." for number in range(20)), quay=1.0)
    assert len(quote_best("quay", "quay", [many]).pieces) == MOST_SENTENCES


def test_the_best_sentence_is_chosen() -> None:
    under = "Everyone gets thirty of them each year. Ask the office for the form."
    vacation = passage(under, headings=("Vacation days",), title="Handbook", vacation=2.0, days=1.0, year=1.0)
    trip = passage("The trip is nice by boat. The trip takes 3 hours by boat.", trip=1.0)
    refunds = passage("How are refunds paid? Refunds are paid by card.", refunds=1.0, paid=1.0)
    twice = [passage(f"The quay{gap}is closed in winter.", quay=1.0) for gap in (" ", "  ")]
    limits = passage("SVC_LIMIT_FILE bounds a file. A file has SVC_LIMIT_TAGS tags.", svc=1.0, limit=1.0, tags=1.0)
    prose = passage("The office in Oslo opens at eight.", oslo=2.0, office=1.0, opens=1.0)
    garage = passage("The office has a garage of its own.", office=1.0)
    bergen = passage(ROWS.text, bergen=3.0, open=1.0)
    for question, passages, answer in [
        # Words of the title and headings count too.
        ("vacation days a year", [vacation], "Everyone gets thirty of them each year."),
        # If the question asks for a number, a sentence with one is preferred.
        ("How long is the trip?", [trip], "The trip takes 3 hours by boat."),
        # A question in the source is not quoted.
        ("How are refunds paid?", [refunds], "Refunds are paid by card."),
        # A sentence that two sources have is quoted once.
        ("quay", twice, "The quay is closed in winter."),
        # A name with underscores is matched as a whole.
        ("What is SVC_LIMIT_TAGS?", [limits], "A file has SVC_LIMIT_TAGS tags."),
        # Prose is preferred to a table row where nothing is named, but a row is quoted if nothing else matches.
        ("When does the office open?", [ROWS, prose], "The office in Oslo opens at eight."),
        ("When does Bergen open?", [bergen, garage], "Bergen | at nine (Office | Opens)"),
    ]:
        assert answer_to(question, *passages) == f"{answer} [1]" + " [2]" * (passages == twice), question


def test_without_shared_words_the_best_passage_by_meaning_is_quoted() -> None:
    found = [passage("Staff may rest. They do so at noon."), passage("The sea is green.")]
    assert answer_to("siesta", *found).startswith("Staff may rest. [1]")


def test_code_is_quoted_only_if_there_is_nothing_else() -> None:
    code = "```sh\nsvc upload report.pdf --bucket reports\n```"
    prose = passage(f"{code}\n\nAn upload goes into the bucket that you name.", upload=1.0, bucket=1.0, reports=1.0)
    asked = "How do I upload reports to a bucket?"
    assert answer_to(asked, prose) == "An upload goes into the bucket that you name. [1]"
    assert "svc upload" in answer_to(asked, passage(code, upload=1.0, bucket=1.0))


CANAL = passage("Each lock costs £5. The map was drawn by Ann Field.", title="ferrow-canal.txt", lock=1.0, costs=1.0)
RAILWAY = passage("Each station costs £9. Ten rounds are played.", title="ferrow-railway.txt", costs=1.0, rounds=1.0)
GAME = "A player draws the top tile. A player may hold 7 tiles. Remove 20 marked stones with two players."
ROBIN = "| species | size cm | colour |\n| --- | --- | --- |\n| Robin alba | 14 | red |\n| Robin nigra | 13 | black |"
CARD = "# Quarry hut\n\n**Owner:** Alpine Club · **Warden:** Ada Moe · **Beds:** 40\n\nThe hut stands on a hill."
FORM = "Hut sheet\n\nBeds in all .. 40 / 12\nAssembly point ....... lower yard\n"
PAIRS = "| Beds | 118 in 29 rooms |\n| --- | --- |\n| Warden | Josef Schett |\n| Built | 1931 |"


def test_only_what_a_question_asks_for_answers_it() -> None:
    hut = passage(
        "The hut of Quarry Tarn is warm. Ada Moe curates it. It was shut because the roof leaks.", title="Quarry Tarn"
    )
    for question, passages, answer in [
        # Who: a name.
        ("Who curates Quarry Tarn?", [hut], "Ada Moe curates it."),
        ("Who painted Quarry Tarn?", [hut], ""),
        # Why: a reason.
        ("Why was Quarry Tarn shut?", [hut], "It was shut because the roof leaks."),
        # How many of a thing: a number of this thing, and of nothing else.
        (
            "How many tiles may a player of Saltmere hold?",
            [passage(GAME, title="Saltmere")],
            "A player may hold 7 tiles.",
        ),
        # The row one of whose cells has only words of the question.
        ("colour of Robin nigra", [passage(ROBIN)], "Robin nigra | 13 | black (species | size cm | colour)"),
        # The words that tell two titles apart name a thing.
        ("what does a lock cost in the ferrow canal", [CANAL, RAILWAY], "Each lock costs £5."),
        ("how many rounds are played in the ferrow railway", [CANAL, RAILWAY], "Ten rounds are played."),
        ("how many rounds are played in the ferrow canal", [CANAL, RAILWAY], ""),
    ]:
        found = quote_best(question, question, passages)
        assert "".join(piece.text for piece in found.pieces) == (f"{answer} [1]" if answer else ""), question
        assert answer or found.nearest


def test_of_two_alike_that_a_question_does_not_tell_apart_none_answers() -> None:
    huts = [
        passage(f"{name} hut. Beds cost {cost} euros.", title=f"hut-{name}.md") for name, cost in (("a", 9), ("b", 7))
    ]
    found = quote_best("what do beds cost", "what do beds cost", huts)
    assert (found.pieces, found.is_whole, len(found.nearest)) == ((), False, 2)


BEDS = "Beds of Tarn\n\nBed 3 has kale.\n\nApples\n\nStart moisture: 25 kPa\n\nPears\n\nStart moisture: 35 kPa\n"
WINES = "# Wines\n\n## Pinot\n\nAcidity: 5.4 g/l\n\n## Muscat\n\nAcidity: 5.9 g/l\n\nOur Tarn Riesling is sold out.\n"


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        (BEDS, "What is the start moisture of bed 3?", ""),
        (BEDS, "start moisture of pears", "Start moisture: 35 kPa [1]"),
        (WINES, "acidity of the Tarn Riesling", ""),
        (WINES, "acidity of the Tarn Muscat", "Acidity: 5.9 g/l [1]"),
    ],
)
def test_of_values_of_other_things_in_a_document_that_names_the_thing_elsewhere_none_answers(
    text: str, question: str, answer: str
) -> None:
    found = quote_best(question, question, [passage(text, title="tarn.md")])
    assert "".join(piece.text for piece in found.pieces) == answer


def test_a_line_of_a_form_that_says_only_what_was_asked_does_not_answer() -> None:
    record = passage("service: image-resizer\nseverity: 2\n\nservice: login\nseverity: 3\n", title="2025-01.txt")
    asked = "What stopped image-resizer in January 2025?"
    assert quote_best(asked, asked, [record]).pieces == ()


def test_the_document_that_is_called_by_what_is_named_comes_before_others_that_mention_it() -> None:
    own = passage("Note: 484\nAuthor: Ada Moe, Josef Schett\n", title="note-0484.txt")
    other = passage("Ann Field is the author of note 484 and of note 526.", title="note-0729.txt")
    assert answer_to("Who is the author of note 484?", other, own).startswith("Author: Ada Moe, Josef Schett")


def test_lines_of_names_and_values_are_read_however_they_are_set() -> None:
    for text, question, answer in [
        (CARD, "Who is the warden of the Quarry hut?", "**Warden:** Ada Moe"),
        (FORM, "beds in all at Quarry", "Beds in all .. 40 / 12"),
        (FORM, "assembly point at Quarry", "Assembly point ....... lower yard"),
        (PAIRS, "How many beds has Quarry?", "Beds | 118 in 29 rooms"),
        (PAIRS, "Who is the warden of Quarry?", "Warden | Josef Schett"),
    ]:
        assert answer_to(question, passage(text, title="Quarry")) == f"{answer} [1]", question
