"""Tests chunking: positions, sizes and sections, that no text is lost, and that it takes linear time."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_daemon.core.text.chunking import Block, Chunk, ChunkingOptions, Document, chunk_document
from tests.limits import cpu_limit_s

OPTIONS = ChunkingOptions()
SMALL = ChunkingOptions(target=30, min=20, max=40)
SENTENCE = "A plain sentence of some words is here. "


def document_of(*parts: tuple[str, str], page: int | None = None) -> Document:
    """Return a document of these (kind, text) parts, separated by blank lines. All headings have the same level."""
    text, line = "", 1
    blocks: list[Block] = []
    headings: tuple[str, ...] = ()
    for kind, words in parts:
        if kind == "heading":
            headings = (words,)
        last = line + words.count("\n")
        block = Block(kind=kind, text=words, char_start=len(text), char_end=len(text) + len(words), headings=headings)
        blocks.append(replace(block, page=page, line_start=line, line_end=last))
        text, line = text + words + "\n\n", last + 2
    return Document(text=text, blocks=tuple(blocks))


def is_covered(document: Document, chunks: tuple[Chunk, ...]) -> bool:
    """Return whether each visible character is in a chunk, or in a heading above one."""
    covered = bytearray(len(document.text))
    for chunk in chunks:
        covered[chunk.char_start : chunk.char_end] = b"\1" * (chunk.char_end - chunk.char_start)
    carried = {chunk.headings[: depth + 1] for chunk in chunks for depth in range(len(chunk.headings))}
    for block in document.blocks:
        if block.kind == "heading" and block.headings in carried:
            covered[block.char_start : block.char_end] = b"\1" * (block.char_end - block.char_start)
    return all(mark or character.isspace() for mark, character in zip(covered, document.text, strict=True))


def test_a_short_document_is_one_chunk() -> None:
    document = document_of(("paragraph", "One.\nTwo."), ("paragraph", "Three."))
    (chunk,) = chunk_document(document, OPTIONS)
    assert chunk == Chunk(ordinal=0, text="One.\nTwo.\n\nThree.", char_start=0, char_end=17, line_start=1, line_end=4)


def test_long_prose_is_cut_at_sentences_into_chunks_of_the_wanted_size() -> None:
    document = document_of(("paragraph", (SENTENCE * 200).strip()))
    chunks = chunk_document(document, OPTIONS)
    assert all(chunk.text.endswith(".") and chunk.text.startswith("A plain") for chunk in chunks)
    assert all(OPTIONS.min <= len(chunk.text) <= OPTIONS.max for chunk in chunks[:-1])
    assert len(chunks[-1].text) > 200
    assert is_covered(document, chunks)


def test_a_chunk_ends_at_a_block_rather_than_at_a_sentence() -> None:
    document = document_of(("paragraph", SENTENCE * 20), ("paragraph", SENTENCE * 20))
    first, *_ = chunk_document(document, OPTIONS)
    assert first.text == (SENTENCE * 20).strip()


@pytest.mark.parametrize("kind", ("code", "row"))
def test_code_and_rows_are_cut_at_line_ends_and_keep_line_numbers(kind: str) -> None:
    lines = "\n".join(f"{number:03} = value. Another" for number in range(1, 101))
    chunks = chunk_document(document_of(("paragraph", "x"), (kind, lines)), SMALL)
    for chunk in chunks[1:]:
        # The block starts on line 3, so line 3 has 001.
        first = int(chunk.text[:3]) + 2
        assert (chunk.line_start, chunk.line_end) == (first, first + chunk.text.count("\n"))


def test_no_chunk_crosses_a_page_or_a_heading() -> None:
    both = document_of(("paragraph", "First page."), ("paragraph", "Second page."), page=1)
    pages = replace(both, blocks=(both.blocks[0], replace(both.blocks[1], page=2)))
    chunks = [(chunk.page, chunk.text) for chunk in chunk_document(pages, OPTIONS)]
    assert chunks == [(1, "First page."), (2, "Second page.")]
    headed = document_of(("heading", "A"), ("paragraph", "Under A."), ("heading", "B"), ("paragraph", "Under B."))
    under = [(chunk.headings, chunk.text) for chunk in chunk_document(headed, OPTIONS)]
    assert under == [(("A",), "Under A."), (("B",), "Under B.")]


def test_a_heading_without_text_below_it_is_in_a_chunk() -> None:
    same, other, text = ("heading", "Same"), ("heading", "Other"), ("paragraph", "x")
    for parts in [[same], [same, same, text], [same, other, text], [text, same]]:
        document = document_of(*parts)
        assert is_covered(document, chunk_document(document, OPTIONS)), parts


def test_an_overlap_repeats_whole_words_of_the_same_section() -> None:
    options = ChunkingOptions(target=100, min=80, max=120, overlap=30)
    document = document_of(("paragraph", (SENTENCE * 20).strip()), ("heading", "B"), ("paragraph", "Other."))
    *chunks, last = chunk_document(document, options)
    for before, after in pairwise(chunks):
        assert 0 < before.char_end - after.char_start <= 30
        assert document.text[after.char_start - 1] == " "
    assert last.text == "Other."


def test_chunk_that_begins_within_a_table_has_the_names_of_its_columns_and_ends_with_it() -> None:
    rows = [("row", f"Room {number} | {number}0"[:20]) for number in range(10, 20)]
    document = document_of(("heading", "Fees"), ("row", "Room | Fee"), *rows, ("paragraph", "The end."))
    named = [replace(block, columns="Room, Fee" if block.text[-1] == "0" else "") for block in document.blocks]
    document = replace(document, blocks=tuple(named))
    first, *others, last = chunk_document(document, SMALL)
    assert (first.text[:10], first.headings) == ("Room | Fee", ("Fees",))
    assert {chunk.headings for chunk in others} == {("Fees", "Room, Fee")}
    assert (last.text, last.headings) == ("The end.", ("Fees",))
    assert is_covered(document, (first, *others, last))
    overlapping = chunk_document(document, replace(SMALL, overlap=10))
    assert len(overlapping) < 2 * len(others) + 4
    assert overlapping[-1] == replace(last, ordinal=len(overlapping) - 1)


def test_document_of_small_tables_is_cut_between_them() -> None:
    tables = [[("row", "Room | Fee"), ("row", f"R{number} | 1"), ("row", f"S{number} | 2")] for number in range(10, 40)]
    document = document_of(*(row for table in tables for row in table))
    named = [replace(block, columns="Room, Fee" if block.text[-1].isdigit() else "") for block in document.blocks]
    chunks = chunk_document(replace(document, blocks=tuple(named)), ChunkingOptions(target=60, min=40, max=70))
    assert {chunk.text.splitlines()[0] for chunk in chunks} == {"Room | Fee"}


KINDS = st.sampled_from(["heading", "paragraph", "item", "row", "code"])
WORDS = st.text(alphabet="ab .\n。é", min_size=1, max_size=150).filter(lambda text: bool(text.strip()))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(KINDS, WORDS), max_size=12))
def test_random_blocks_are_chunked_without_loss_at_exact_positions(parts: list[tuple[str, str]]) -> None:
    document = document_of(*parts)
    chunks = chunk_document(document, SMALL)
    assert is_covered(document, chunks)
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert chunk.text == document.text[chunk.char_start : chunk.char_end] == chunk.text.strip()
        assert 0 < len(chunk.text) <= SMALL.max
        assert chunk.line_start == 1 + document.text.count("\n", 0, chunk.char_start)
        assert chunk.line_end == 1 + document.text.count("\n", 0, chunk.char_end)


def test_a_line_of_25_mb_is_chunked_in_seconds() -> None:
    document = document_of(("code", "word " * 5_000_000))
    with cpu_limit_s(20):
        # Quadratic time would be a thousand times this.
        assert len(chunk_document(document, OPTIONS)) > 20_000


@pytest.mark.parametrize("sizes", [{"min": 0}, {"target": 700}, {"max": 900}, {"overlap": 401}, {"overlap": -1}])
def test_contradictory_sizes_are_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ChunkingOptions(**sizes)
