"""Where a quote stands in the original."""

from dataclasses import replace

from svc_daemon.core.answers.passages import Passage, place_of, quote_of
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.sentences import Span

TEXT = "First line.\nSecond line.\nThird line."
CHUNK = Chunk(ordinal=3, text=TEXT, char_start=100, char_end=136, headings=("A", "B"), page=3, line_start=7, line_end=9)


def test_a_quote_has_its_own_characters_and_lines() -> None:
    passage = Passage(chunk=CHUNK)
    span = Span(12, 24)
    place = place_of(passage, span)
    assert quote_of(passage, span) == "Second line."
    assert (place.char_start, place.char_end, place.line_start, place.line_end) == (112, 124, 8, 8)
    assert (place.page, place.headings) == (3, ("A", "B"))


def test_a_quote_over_two_lines_has_both() -> None:
    place = place_of(Passage(chunk=CHUNK), Span(6, 18))
    assert (place.line_start, place.line_end) == (7, 8)


def test_where_the_lines_of_the_text_are_not_those_of_the_original_it_has_the_lines_of_its_chunk() -> None:
    place = place_of(Passage(chunk=replace(CHUNK, line_end=20)), Span(12, 24))
    assert (place.line_start, place.line_end) == (7, 20)


def test_a_format_without_lines_has_none() -> None:
    place = place_of(Passage(chunk=replace(CHUNK, line_start=None, line_end=None)), Span(12, 24))
    assert (place.line_start, place.line_end) == (None, None)
