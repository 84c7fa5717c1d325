"""Documents are built with exact offsets, and without characters that can't be stored."""

import pytest

from svc_daemon.extract.builders import FlowDocument, fit, pages_named
from tests.extract.readings import exact


@pytest.mark.parametrize(
    ("text", "expected"),
    (
        *(("a\r\nb\rc\nd", "a\nb\nc\nd"), ("nul\x00bell\x07", "nul bell "), ("lone \ud800 half", "lone   half")),
        *(("tab\tstays 🎉", "tab\tstays 🎉"), ("form\x0cfeed", "form feed")),
    ),
)
def test_fit_replaces_unstorable_characters_and_keeps_lines(text: str, expected: str) -> None:
    assert fit(text) == expected


def test_heading_path_ends_lower_headings_at_a_higher_one() -> None:
    flow = FlowDocument()
    for level, title in ((1, "A"), (3, "B"), (2, "C"), (1, "D")):
        flow.add_heading(level, title)
        flow.add("paragraph", f"under {title}")
    paths = [block.headings for block in exact(flow.finish()).blocks if block.kind == "paragraph"]
    assert paths == [("A",), ("A", "B"), ("A", "C"), ("D",)]


def test_heading_that_is_too_long_becomes_a_paragraph() -> None:
    flow = FlowDocument()
    flow.add_heading(1, "long " * 100)
    (block,) = flow.finish().blocks
    assert (block.kind, block.headings) == ("paragraph", ())


def test_rows_follow_each_other_and_blank_rows_and_paragraphs_are_left_out() -> None:
    flow = FlowDocument()
    assert flow.add("paragraph", "  \n ") is False
    assert flow.add_row(["", " "]) is False
    flow.add_row(["a", "b\nc"])
    flow.add_row(["", "d"])
    flow.add("paragraph", "after")
    assert exact(flow.finish()).text == "a | b c\nd\n\nafter"


def test_pages_named_combines_page_numbers_into_ranges() -> None:
    many = ", ".join(map(str, range(1, 100, 2)))
    for numbers, named in (
        *(((4,), "Page 4"), ((1, 2), "Pages 1-2"), ((1, 2, 3, 5, 8, 9), "Pages 1-3, 5, 8-9")),
        (tuple(range(1, 1000, 2)), f"Pages {many} and more"),
    ):
        assert pages_named(numbers) == named
