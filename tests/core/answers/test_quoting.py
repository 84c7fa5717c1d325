"""The answer that is put together from sentences of the sources."""

from svc_daemon.core.answers.passages import Passage, quote_of
from svc_daemon.core.answers.quoting import MOST_SENTENCES, quote_best
from tests.core.answers.passages import passage

VACATION = passage(
    "Our policy is generous. Full-time employees get\n30 days of vacation a year. Part-time staff get 15 days.",
    headings=("Vacation",),
    vacation=3.0,
    days=2.0,
    employees=1.0,
)
GARAGE = passage("The garage opens at seven. Employees may park there.", employees=1.0)


def told(question: str, *passages: Passage) -> str:
    return "".join(piece.text for piece in quote_best(question, question, passages))


def test_the_best_sentence_comes_word_for_word_with_its_mark() -> None:
    answer = told("How many vacation days do employees get?", VACATION, GARAGE)
    assert answer == "Full-time employees get 30 days of vacation a year. [1]"


def test_each_mark_leads_to_the_exact_words() -> None:
    passages = (VACATION, GARAGE)
    asked = "When does the garage open, and how many days of vacation are there?"
    pieces = quote_best(asked, asked, passages)
    answer = "".join(piece.text for piece in pieces)
    for piece in pieces:
        citation = piece.citation
        assert answer[citation.index :].startswith(f"[{citation.number}]")
        quote = quote_of(passages[citation.passage], citation.span)
        assert f"{' '.join(quote.split())} [{citation.number}]" in answer
    assert [piece.citation.number for piece in pieces] == list(range(1, len(pieces) + 1))


def test_a_question_of_two_parts_gets_both() -> None:
    fees = passage("The annual fee is forty euros.", fee=3.0)
    refunds = passage("Refunds take ten days.", refunds=3.0)
    assert told("What is the fee, and are there refunds?", fees, refunds) == (
        "The annual fee is forty euros. [1] Refunds take ten days. [2]"
    )


def test_the_question_itself_counts_more_than_what_came_before_it() -> None:
    days = passage(
        "Full-time employees get 30 days of vacation. Part-time staff get 15 days of vacation.",
        part=1.0,
        time=1.0,
        staff=1.0,
        vacation=1.0,
        days=1.0,
        employees=1.0,
    )
    follow_up = "and for part-time staff?"
    (piece,) = quote_best(follow_up, f"{follow_up} vacation days employees", [days])
    assert piece.text == "Part-time staff get 15 days of vacation. [1]"


def test_sentences_of_one_passage_keep_their_order() -> None:
    steps = passage("Fill in the form for travel. Then send the travel form to finance.", travel=1.0, form=1.0)
    assert told("travel form", steps).startswith("Fill in the form for travel. [1] Then send")


def test_what_two_sources_say_in_the_same_words_is_said_once() -> None:
    twice = [passage("The quay is closed in winter.", quay=1.0), passage("The quay  is closed\nin winter.", quay=1.0)]
    assert told("quay", *twice) == "The quay is closed in winter. [1]"


def test_no_answer_has_more_than_a_few_sentences() -> None:
    many = passage(" ".join(f"The quay number {number} is open." for number in range(20)), quay=1.0)
    assert len(quote_best("quay", "quay", [many])) == MOST_SENTENCES


def test_words_above_a_sentence_count_as_well() -> None:
    text = "Everyone gets thirty of them each year. Ask the office for the form."
    under = passage(text, headings=("Vacation days",), title="Handbook", vacation=2.0, days=1.0, year=1.0)
    assert told("vacation days a year", under) == "Everyone gets thirty of them each year. [1]"


def test_where_a_number_is_asked_for_a_sentence_with_one_is_preferred() -> None:
    for question in ["How long is the trip?", "When does it end?"]:
        trip = passage("The trip is nice by boat. The trip takes 3 hours by boat.", trip=1.0)
        assert told(question, trip) == "The trip takes 3 hours by boat. [1]"


def test_a_question_in_the_source_is_no_answer() -> None:
    asked = passage("How are refunds paid? Refunds are paid by card.", refunds=1.0, paid=1.0)
    assert told("How are refunds paid?", asked) == "Refunds are paid by card. [1]"


def test_what_was_found_by_meaning_alone_is_quoted_from_its_best_passage() -> None:
    found = [passage("Staff may rest. They do so at noon."), passage("The sea is green.")]
    assert told("siesta", *found).startswith("Staff may rest. [1]")


def test_without_passages_there_is_nothing_to_say() -> None:
    assert quote_best("anything", "anything", []) == []


def test_the_same_question_gets_the_same_answer() -> None:
    passages = [VACATION, GARAGE] * 3
    assert len({told("employees", *passages) for _ in range(20)}) == 1


ROWS = passage("Office | Opens\nOslo | at eight\nBergen | at nine |", oslo=2.0, office=1.0, opens=1.0)


def test_prose_is_quoted_where_it_says_what_a_row_says() -> None:
    prose = passage("The office in Oslo opens at eight.", oslo=2.0, office=1.0, opens=1.0)
    assert told("When does the Oslo office open?", ROWS, prose) == "The office in Oslo opens at eight. [1]"


def test_a_row_is_quoted_where_nothing_else_has_it() -> None:
    other = passage("The office has a garage of its own.", office=1.0)
    answer = told("When does Bergen open?", passage(ROWS.text, bergen=3.0, open=1.0), other)
    assert answer == "Bergen | at nine [1]"


def test_code_is_quoted_only_where_there_is_nothing_but_code() -> None:
    code = "```sh\nsvc upload report.pdf --bucket reports\n```"
    prose = passage(f"{code}\n\nAn upload goes into the bucket that you name.", upload=1.0, bucket=1.0, reports=1.0)
    asked = "How do I upload reports to a bucket?"
    assert told(asked, prose) == "An upload goes into the bucket that you name. [1]"
    assert "svc upload" in told(asked, passage(code, upload=1.0, bucket=1.0))


def test_a_name_with_underscores_is_found_by_its_name() -> None:
    limits = passage("SVC_LIMIT_FILE bounds a file. A file has SVC_LIMIT_TAGS tags.", svc=1.0, limit=1.0, tags=1.0)
    assert told("What is SVC_LIMIT_TAGS?", limits) == "A file has SVC_LIMIT_TAGS tags. [1]"
