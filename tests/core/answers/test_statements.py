"""Tests what a passage says of one thing and not of its near-twin: numbers, codes, days, names, rows and headings."""

import pytest

from svc_daemon.core.answers.extractive_answers import quote_best
from svc_daemon.core.answers.particulars import needs_of
from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.answers.readings import Reading
from svc_daemon.core.answers.statements import statements_of
from tests.core.answers.passages import passage

#: What a question names, a text that has it, and a text with a near-twin.
TWINS = [
    ("valve 3-4", "Turn valve 3-4.", "Turn valve 3-2."),
    ("in release 2.1.2", "Release v2.1.2 needs it.", "Release 2.1.12 needs it."),
    ("of contract 4", "Contract no. 4 ends.", "Contract 40 ends."),
    ("of contract 4", "Contracts 3, 4 and 5 end.", "Clause 4 of contract 3 ends."),
    ("at \u221218 °C", "It is kept at \u221218 °C.", "It is kept at 18 °C."),
    ("at 18 °C", "It is kept at 18 degrees Celsius.", "It is kept at minus 18 °C."),
    ("for 5 mg", "Take 5mg of it.", "Take 50 mg of it."),
    ("for 5 mg", "Take 5 milligrams.", "Take 5 g."),
    ("in Q4", "It was in Q4.", "It was in Q3."),
    ("under § 12", "Section 12 allows it.", "§ 21 allows it."),
    ("on 14 March", "It met on 2024-03-14.", "It met on 4 March."),
    ("on March 14th", "It met on 14 March 2024.", "It met on 14 May 2024."),
    ("invoice 2031", "INV-2031 is due.", "INV-2013 is due."),
    ("ST-04", "st 04 is closed.", "ST-40 is closed."),
    ("for 30 days", "It lasts thirty days.", "It lasts thirty weeks."),
    ("in zone North", "Zone North is dear.", "Zone North-East is dear."),
    ("in Lower Holm", "Lower Holm is low.", "Upper Holm is low."),
    ('of "night shift"', "The night shift is paid.", "The shift at night is paid."),
    ("over 10 kg", "Over 5 kg to 20 kg is dear.", "Up to 10 kg is cheap."),
    ("under 18 m", "From 6 m to 18 m.", "18 m or more."),
    ("of -q", "-q is quiet.", "-Q quotes."),
    ("of --prune", "--prune removes.", "--prune-left-out removes."),
]


@pytest.mark.parametrize(("named", "same", "other"), TWINS)
def test_a_near_twin_of_what_the_question_names_is_another_thing(named: str, same: str, other: str) -> None:
    needs = needs_of(f"what is said {named}?")
    assert needs
    for text, has_all in ((same, True), (other, False)):
        (statement,) = statements_of(passage(text))
        assert all(map(statement.has, needs)) is has_all, text


def test_plain_words_and_the_first_word_of_a_question_name_nothing() -> None:
    for question in ("How long is parental leave?", "Employees get what?", "Wie lang ist die Frist im Vertrag?"):
        assert needs_of(question) == []
    assert [need.text for need in needs_of("Is Dr. Oslander in room 7 or 9?")] == ["Oslander", "room 7", "room 9"]


TABLE = "| Department | Head | Phone |\n| --- | --- | --- |\n| Q3 | Dr. Reed | 4470 |\n| Q4 | Dr. Oslander | 4471 |"
FORM = "Contract: 7\nNotice: 90 days\n\nContract: 8\nNotice: 30 days"
HEADS, ROWS = "Department, Head, Phone", "Q3,Reed,4470\nQ4,Oslander,4471"
PERIOD = "The period is 90 days."
STEPS = "To start:\n\n1. Open valve 3-4.\n2. Press the button.\n\nTo stop:\n\n1. Press the lever."
#: A passage, a question, and the answer.
ANSWERED = [
    (passage(TABLE), "Who heads Q4?", "Q4 | Dr. Oslander | 4471 (Department | Head | Phone)"),
    (passage(ROWS, headings=(HEADS,)), "What is the phone of Q4?", "Q4,Oslander,4471 (Department | Head | Phone)"),
    (passage(FORM), "What is the notice of contract 8?", "Notice: 30 days"),
    (passage(STEPS), "What is step 1 of the start?", "Open valve 3-4."),
    (passage("E04\n: The lid is open.\n\nE40\n: The fan is blocked."), "What does E40 mean?", "The fan is blocked."),
    (passage("server:\n  port: 80\n  name: Borg\nclient:\n  port: 90"), "What port has the server Borg?", "port: 80"),
    (passage(PERIOD, headings=("Contract 7", "Notice")), "How long is the notice in contract 7?", PERIOD),
    (passage(PERIOD, title="contract-7.md"), "How long is the period in contract 7?", PERIOD),
    (passage("The Borg boat is old. It sails at ten."), "When does the Borg boat sail?", "It sails at ten."),
]


@pytest.mark.parametrize(("read", "question", "answer"), ANSWERED)
def test_a_statement_answers_with_what_it_belongs_to(read: Passage, question: str, answer: str) -> None:
    assert "".join(piece.text for piece in quote_best(question, question, [read]).pieces) == f"{answer} [1]"


@pytest.mark.parametrize(
    ("question", "unmatched"),
    [
        ("What is the notice of contract 61?", ("contract 61",)),
        ("Which valve is step 9?", ("step 9",)),
        ("What is the wingspan in contract 7?", ("wingspan",)),
    ],
)
def test_what_is_not_there_is_named_and_the_nearest_is_related(question: str, unmatched: tuple[str, ...]) -> None:
    found = quote_best(question, question, [passage(FORM), passage(STEPS)])
    assert (found.pieces, found.is_whole, found.unmatched) == ((), False, unmatched)
    assert found.nearest


def test_sources_that_say_the_same_are_cited_together_and_others_quoted_with_a_warning() -> None:
    says = [passage(f"The notice period of contract 7 is {days} days.", title=str(days)) for days in (90, 90, 60)]
    question = "What is the notice period of contract 7?"
    agreed, differing = quote_best(question, question, says[:2]), quote_best(question, question, says)
    assert [piece.text for piece in agreed.pieces] == [f"{says[0].text} [1]", " [2]"]
    assert [piece.text for piece in differing.pieces][-1] == f" {says[2].text} [3]"
    assert (agreed.warnings, len(differing.warnings)) == ((), 1)


def test_two_things_that_a_question_compares_are_both_answered_or_named() -> None:
    says = [passage("The notice is 90 days.", headings=(f"Contract {number}",)) for number in (7, 9)]
    for question, unmatched in {
        "How long is the notice in contracts 7 and 9?": (),
        "How long is the notice in contracts 7 and 8?": ("contracts 8",),
    }.items():
        found = quote_best(question, question, says)
        assert (found.unmatched, found.is_whole, found.warnings) == (unmatched, not unmatched, ())


def test_a_heading_with_commas_names_columns_only_above_rows() -> None:
    heading = ("Pots, pans",)
    assert [each.heads for each in statements_of(passage("- Two, of tin.\n- Six, of steel.", headings=heading))] == [
        "",
        "",
    ]
    assert {each.heads for each in statements_of(passage("2,6\n3,7", headings=heading))} == {"Pots | pans"}


def test_names_of_columns_stay_above_their_cells_where_some_have_none() -> None:
    heading, rows = (", May, , June",), "Gas | 1 |  | 2\n| 3 |  | 4"
    assert [each.heads for each in statements_of(passage(rows, headings=heading))] == [
        " | May |  | June",
        "May |  | June",
    ]
    (row,) = statements_of(passage("Costs |  | Year\nHouse | Gas | 1100"))
    assert (row.text, row.heads) == ("House | Gas | 1100", "Costs |  | Year")
    assert [each.heads for each in statements_of(passage("| 2024 | 2025\nGas | 1 | 2\nOil | 3 | 4"))] == [
        " | 2024 | 2025"
    ] * 2


def test_name_may_be_in_a_row_and_in_the_names_of_its_columns() -> None:
    (need,) = needs_of("Was kostet Heizung Februar?")
    gas, heating = statements_of(passage("Gas | 1 | 2\nHeizung | 3 | 4", headings=(", Januar, Februar",)))
    assert [gas.has(need), heating.has(need)] == [False, True]


@pytest.mark.parametrize("text", ["Gas | 10 | 30 (| Jan | Feb)", "Jan: 10; Feb: 20", "10, 30\n(Jan)"])
def test_number_beside_a_month_in_another_cell_is_no_day(text: str) -> None:
    assert Reading(text).days == frozenset()
    assert Reading("30 Jan and Feb. 10th, 2 of March").days == {"01-30", "02-10", "03-02"}


@pytest.mark.parametrize(
    ("first", "heads"),
    [("Size/Colour | Price/piece", "Size/Colour | Price/piece"), ("text/csv | Text", ""), ("/etc/hosts | Names", "")],
)
def test_names_of_columns_may_have_a_slash_but_types_and_paths_are_none(first: str, heads: str) -> None:
    assert {each.heads for each in statements_of(passage(f"{first}\nL red | 12\nS blue | 9"))} == {heads}


def test_mark_behind_the_last_cell_of_a_row_is_no_column() -> None:
    heading = ("Day, Purpose, Amount",)
    (row,) = statements_of(passage('"27.02.";"Gas; May";"-72,10";', headings=heading))
    assert (row.kind, row.heads) == ("row", "Day | Purpose | Amount")


@pytest.mark.parametrize(
    ("names", "heads"),
    [
        ("| 2024 |  | 2025\n| Q1 | Q2 | Q1", " | 2024 Q1 | 2024 Q2 | 2025 Q1"),
        ("Item | 2024 |  | Note\nItem | Q1 | Q2", "Item | 2024 Q1 | 2024 Q2 | Note"),
        # A row is none of names.
        ("Name | Kept in |\nTea | hall | loft", "Name | Kept in | "),
    ],
)
def test_names_of_columns_in_two_rows_are_joined(names: str, heads: str) -> None:
    *_, row = statements_of(passage(f"{names}\nGas | 11 | 12 | 13"))
    assert row.heads == heads
