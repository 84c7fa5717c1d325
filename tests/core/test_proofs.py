"""When a quote is proven: by its exact text at its exact place."""

from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core.answers.passages import QuotePlace
from svc_daemon.core.proofs import prove
from svc_daemon.core.text.chunking import Chunk, Extraction

TEXT = "One page.\n\nThe quay opens at dawn. The quay opens at dawn."
QUOTE = "The quay opens at dawn."
SECOND = Chunk(ordinal=1, text=TEXT[11:58], char_start=11, char_end=58, page=2)
CHUNKS = (Chunk(ordinal=0, text=TEXT[:9], char_start=0, char_end=9, page=1), SECOND)
READING = Extraction(content_type="text/plain", text=TEXT, chunks=CHUNKS)


PLACE: dict[str, Any] = {"page": 2, "line_start": None, "line_end": None, "char_start": 11, "char_end": 34}
PLACE["headings"] = ()


def result(text: str = QUOTE, reading: Extraction = READING, **place: Any) -> str:
    return prove(text, QuotePlace(**{**PLACE, **place}), reading).result


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    (
        *((QUOTE, {}, "proven"), (QUOTE, {"char_start": 35, "char_end": 58}, "proven")),
        *((text, {}, "not_found") for text in ("The quay opens at dawm.", "the quay opens at dawn.", "")),
        *((QUOTE, place, "elsewhere") for place in ({"char_start": 12, "char_end": 35}, {"char_end": 33})),
        *((QUOTE, {"char_start": start, "char_end": start + 23}, "elsewhere") for start in (-47, 10**9)),
        *((QUOTE, place, "elsewhere") for place in ({"page": 1}, {"line_start": 1, "line_end": 1})),
        # A client may name neither page nor lines.
        (QUOTE, {"page": None}, "proven"),
    ),
)
def test_quote_is_proven_only_by_its_exact_text_at_its_exact_place(
    text: str, place: dict[str, Any], expected: str
) -> None:
    assert result(text, **place) == expected


def test_lines_of_a_quote_must_be_within_those_of_its_chunk() -> None:
    reading = replace(READING, chunks=(CHUNKS[0], replace(SECOND, line_start=3, line_end=5)))
    proven: dict[tuple[int | None, int | None], bool] = {
        (3, 3): True,
        (3, 5): True,
        (2, 3): False,
        (5, 6): False,
        (5, 3): False,
    }
    proven |= {(None, None): True, (3, None): True, (None, 5): True, (None, 6): False, (2, None): False}
    for (first, last), is_proven in proven.items():
        found = result(reading=reading, line_start=first, line_end=last)
        assert found == ("proven" if is_proven else "elsewhere"), (first, last)


def test_quote_is_still_proven_after_its_document_is_split_differently() -> None:
    smaller, larger = [(3, 4), (4, 6)], [(1, 90)]
    for lines, first, last, is_proven in (
        *((smaller, 3, 6, True), (smaller, 2, 7, True), (smaller, 7, 8, False), (smaller, 1, 2, False)),
        (larger, 3, 6, True),
    ):
        pieces = [
            replace(SECOND, char_start=11 + 10 * index, line_start=start, line_end=end)
            for index, (start, end) in enumerate(lines)
        ]
        found = result(reading=replace(READING, chunks=(CHUNKS[0], *pieces)), line_start=first, line_end=last)
        assert found == ("proven" if is_proven else "elsewhere"), (lines, first, last)
