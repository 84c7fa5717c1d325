"""Tests where a quote is in the original document."""

from dataclasses import replace
from typing import Any

from svc_daemon.core.answers.passages import Passage, place_of, quote_of
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.sentences import Span

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
