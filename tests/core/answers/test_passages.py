"""Tests how much of a question passages cover, and the places of quotes."""

from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core.answers.passages import WITHOUT_NUMBER, Passage, place_of, quote_of, trust_of, weigh_evidence
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.queries import deciding_words
from svc_daemon.core.text.sentences import Span
from tests.core.answers.passages import passage

TEXT = "First line.\nSecond line.\nThird line."
CHUNK = Chunk(ordinal=3, text=TEXT, char_start=100, char_end=136, headings=("A", "B"), page=3, line_start=7, line_end=9)


def test_the_place_of_a_quote_has_its_own_characters_and_lines() -> None:
    passage = Passage(chunk=CHUNK)
    span = Span(12, 24)
    place = place_of(passage, span)
    assert quote_of(passage, span) == "Second line."
    assert (place.char_start, place.char_end, place.line_start, place.line_end) == (112, 124, 8, 8)
    assert (place.page, place.headings) == (3, ("A", "B"))


def test_the_place_of_a_quote_has_the_lines_that_are_known() -> None:
    cases: list[tuple[dict[str, Any], Span, tuple[int | None, int | None]]] = [
        ({}, Span(6, 18), (7, 8)),
        # If the text has other lines than the original, the lines are those of the chunk.
        ({"line_end": 20}, Span(12, 24), (7, 20)),
        # A format that has no lines.
        ({"line_start": None, "line_end": None}, Span(12, 24), (None, None)),
    ]
    for changes, span, lines in cases:
        place = place_of(Passage(chunk=replace(CHUNK, **changes)), span)
        assert (place.line_start, place.line_end) == lines, changes


def covered(question: str, *passages: Passage) -> tuple[float, ...]:
    return weigh_evidence(question, deciding_words(question), passages).said


def test_a_sentence_with_all_words_covers_1_and_one_with_none_0() -> None:
    assert covered("Is the lamp turquoise?", passage("The lamp is turquoise."), passage("Ferries leave.")) == (1.0, 0.0)


def test_a_missing_common_word_counts_less_than_a_missing_rare_one() -> None:
    lamp = passage("The lamp is painted turquoise.")
    (colour,), (voltage,) = covered("What colour is the lamp?", lamp), covered("What voltage is the lamp?", lamp)
    assert colour > 0.5 > voltage


def test_a_word_that_is_in_every_sentence_counts_little() -> None:
    boiler = "The boiler is old. The boiler is loud. The boiler is hot. The boiler is off."
    (often,), (once,) = (covered("What brand is the boiler?", passage(text)) for text in (boiler, "The boiler is old."))
    assert often < once


def test_copies_of_a_document_do_not_make_its_words_more_common() -> None:
    lamp = passage("The lamp is painted turquoise.")
    assert covered("What colour is the lamp?", lamp, lamp, lamp) == covered("What colour is the lamp?", lamp) * 3


def test_words_in_several_sentences_count_less_than_in_one_sentence() -> None:
    scattered, together = "The key is blue. The drawer is red.", "The key is in the drawer. It is blue."
    (apart,), (one,) = (covered("Which key opens the drawer?", passage(text)) for text in (scattered, together))
    assert apart < one


def test_words_of_the_title_and_headings_count_for_a_sentence() -> None:
    written = "Written by Tomas Berg."
    passages = passage(written), passage(written, title="kilnlog.txt"), passage(written, headings=("Kilnlog",))
    plain, titled, headed = (covered("Who wrote kilnlog?", each) for each in passages)
    assert plain < titled == headed == (1.0,)


@pytest.mark.parametrize(("number", "share"), [("40", 1.0), ("forty", 1.0), ("new", WITHOUT_NUMBER)])
def test_if_a_number_is_asked_for_a_sentence_without_one_counts_little(number: str, share: float) -> None:
    chairs = passage(f"There are {number} chairs in the hall.")
    assert covered("How many chairs are in the hall?", chairs) == (share,)


def test_the_number_must_count_the_thing_that_is_asked_for() -> None:
    asked = "How many members does the club have?"
    assert covered(asked, passage("The club has forty members.")) == (1.0,)
    assert covered(asked, passage("The club has forty courts."))[0] < WITHOUT_NUMBER
    assert covered("How old is Mimi?", passage("Mimi is an old cat of 12 years.")) == (1.0,)
    assert covered("How old is Mimi?", passage("Mimi is an old cat at number 12.")) == (WITHOUT_NUMBER,)


def test_only_words_that_a_passage_has_get_a_weight() -> None:
    evidence = weigh_evidence("", ["wrote", "kiln", "unicorn"], [passage("The kiln log was written by Tomas.")])
    assert set(evidence.weights) == {"wrote", "kiln"}
    assert evidence.weights["kiln"] > evidence.weights["wrote"] > 0


def test_without_passages_or_words_nothing_is_covered() -> None:
    assert covered("What colour is the lamp?") == ()
    assert weigh_evidence("", [], [passage("The lamp.")]).said == (0.0,)


def test_single_sentences_count_less_the_more_chunks_there_are() -> None:
    trusts = [trust_of("What colour is it?", chunks) for chunks in (1, 20, 50, 900, 1000, 10**6)]
    assert trusts == sorted(trusts, reverse=True)
    assert (trusts[2], trusts[-2:]) == (0.5, [0.0, 0.0])


def test_single_sentences_do_not_count_for_questions_in_other_languages() -> None:
    german = ["Welche Farbe hat die Leuchte?", "Was ist das für eine Lampe?"]
    for question in [*german, "De quelle couleur est la lampe?", "灯是什么颜色?"]:
        assert trust_of(question, 1) == 0.0, question


@pytest.mark.parametrize(("asked", "text"), [("café", "The cafe opens at six."), ("灯", "这盏灯是绿色的。")])
def test_a_word_that_only_the_index_matched_counts_as_found(asked: str, text: str) -> None:
    seen = replace(passage(text), weights={asked: 1.0})
    assert weigh_evidence("", [asked], [seen]).said == (1.0,)
    assert weigh_evidence("", [asked], [passage(text)]).said == (0.0,)
