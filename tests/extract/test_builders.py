"""Documents are built with exact offsets, and without characters that can't be stored."""

import pytest

from svc_daemon.core.text.chunking import HiddenText
from svc_daemon.extract.builders import FlowDocument, LineDocument, fit, pages_named
from svc_daemon.extract.messages import LINE_BYTES, reply_lines
from svc_daemon.extract.tables import TableCell, TableLayout
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


def test_rows_follow_each_other_and_keep_their_columns_and_blank_ones_are_left_out() -> None:
    flow = FlowDocument()
    assert flow.add("paragraph", "  \n ") is False
    assert flow.add_row(["", " "]) is False
    flow.add_row(["a", "b\nc"])
    flow.add_row(["", "d", "", " "])
    flow.add("paragraph", "after")
    assert exact(flow.finish()).text == "a | b c\n| d\n\nafter"


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([["Name", "Age"], ["Ann", "20"]], "Name, Age"),
        ([["Name", "Town", "Room"], ["Ann", "Ulm", "blue"]], "Name, Town, Room"),
        ([["", "May", "June"], ["Rent", "80", "90"]], ", May, June"),
        ([["Work", "Keeper at the harbour"], ["School", "In Ulm"]], ""),
        # A form, figures, a row again, and a column without a name have no names of columns.
        ([["Name", "Ann Ball"], ["Born", "1 May"], ["Town", "Ulm"]], ""),
        ([["Rent", "80"], ["Gas", "90"]], ""),
        ([["Rent", "open"], ["Gas", "open"]], ""),
        ([["Rent", "", "open"], ["Gas", "a", "b"]], ""),
        ([["Name", "Town"]], ""),
    ],
)
def test_rows_of_a_table_know_the_names_of_its_columns_past_a_note(rows: list[list[str]], columns: str) -> None:
    flow = FlowDocument()
    for number, row in enumerate(rows):
        if number == len(rows) - 1:
            flow.add("paragraph", "a note")
        flow.add_row(row, "table")
    flow.add("paragraph", "after")
    blocks = exact(flow.finish()).blocks
    assert [block.columns for block in blocks if block.kind == "row"] == ["", *[columns] * (len(rows) - 1)]
    assert blocks[-1].columns == ""


def test_document_within_another_keeps_its_tables() -> None:
    inner, outer = FlowDocument(), FlowDocument()
    for table, row in (
        ("one", ["Name", "Age"]),
        ("one", ["Ann", "20"]),
        ("two", ["Dog", "Tax"]),
        ("two", ["Pug", "5"]),
    ):
        inner.add_row(row, table)
    outer.add("paragraph", "before")
    outer.add_document(inner.finish(), level=1)
    document = exact(outer.finish())
    assert document.text == "before\n\nName | Age\nAnn | 20\n\nDog | Tax\nPug | 5"
    assert [block.columns for block in document.blocks] == ["", "", "Name, Age", "", "Dog, Tax"]


def test_pages_named_combines_page_numbers_into_ranges() -> None:
    many = ", ".join(map(str, range(1, 100, 2)))
    for numbers, named in (
        *(((4,), "Page 4"), ((1, 2), "Pages 1-2"), ((1, 2, 3, 5, 8, 9), "Pages 1-3, 5, 8-9")),
        (tuple(range(1, 1000, 2)), f"Pages {many} and more"),
    ):
        assert pages_named(numbers) == named


def test_characters_without_a_width_are_removed_and_letters_among_them_are_hidden_text() -> None:
    smuggled = "".join(chr(0xE0000 + ord(letter)) for letter in "obey me")
    flow, lines = FlowDocument(), LineDocument(f"Ge\u00adsamt\u200bkonzept{smuggled}\nb")
    flow.page = 3
    flow.add("paragraph", f"Ge\u00adsamt\u200bkonzept{smuggled} \u0645\u06cc\u200c\u0631\u0648\u0645")
    document = flow.finish()
    assert document.text == "Gesamtkonzept \u0645\u06cc\u200c\u0631\u0648\u0645"
    assert document.hidden == (HiddenText("obey me", "characters without a width", 3),)
    assert document.hidden_characters == len("obey me")
    assert lines.text == "Gesamtkonzept\nb"
    assert [hidden.text for hidden in lines.finish().hidden] == ["obey me"]


def test_hidden_text_is_counted_whole_and_kept_up_to_a_limit() -> None:
    flow = FlowDocument()
    for _ in range(3):
        flow.hide("x" * 60_000, "display:none")
    flow.hide(" \n ", "display:none")
    document = flow.finish()
    assert document.hidden_characters == 180_000
    assert [len(hidden.text) for hidden in document.hidden] == [60_000, 40_000]


def test_many_pieces_of_hidden_text_fit_into_the_reply_of_a_child() -> None:
    flow = FlowDocument()
    for number in range(100_000):
        flow.hide("\u96fb", "characters without a width", page=number)
    document = flow.finish()
    assert document.hidden_characters == 100_000
    assert max(map(len, reply_lines("text/html", document, ()))) < LINE_BYTES // 2


def test_warnings_are_given_once_and_the_last_of_many_are_counted() -> None:
    flow = FlowDocument()
    for number in range(30):
        flow.warn(f"warning {number}")
        flow.warn("warning 0")
    warnings = flow.finish(warnings=["first"]).warnings
    assert (len(warnings), warnings[:2], warnings[-1]) == (
        20,
        ("first", "warning 0"),
        "There are 12 more warnings like these.",
    )


@pytest.mark.parametrize(
    ("rows", "laid_out"),
    [
        ([[("a", 1, 2), ("b", 1, 1)], [("c", 1, 1)]], [["a", "b"], ["a", "c"]]),
        ([[("wide", 3, 1), ("z", 1, 1)], [("1", 1, 1)]], [["wide", "", "", "z"], ["1"]]),
        ([[("x", 1, 1), ("y", 1, 3)], [("1", 1, 1)], [("2", 1, 1)]], [["x", "y"], ["1", "y"], ["2", "y"]]),
        ([[("block", 2, 2), ("r", 1, 1)], [("s", 1, 1)]], [["block", "", "r"], ["block", "", "s"]]),
    ],
    ids=["spans rows", "spans columns", "in the last column", "spans both"],
)
def test_cell_counts_in_each_row_that_it_spans_and_the_others_keep_their_columns(
    rows: list[list[tuple[str, int, int]]], laid_out: list[list[str]]
) -> None:
    layout = TableLayout()
    assert [layout.lay_out(TableCell(*cell) for cell in row) for row in rows] == laid_out
