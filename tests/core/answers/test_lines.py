"""Tests of plain texts whose layout says what belongs together: lines that are set in, columns, entries with a date."""

import pytest

from svc_daemon.core.answers.statements import statements_of
from tests.core.answers.passages import passage
from tests.limits import cpu_limit_s

SET_IN = "holidays\n  27 days and the bank holidays.\n  Carry over at most 8 days.\n\ntraining\n  £450 a head\n"
LISTED = "Term dates\n  Back on 23 April\n  Half-term 26 May\n  Sports day 20 June (wet: 27)\n  Summer fair 28 June\n"
WRAPPED = "Lunch\n  Pizza stays on Fridays, after the\n  petition of the children\n"
REPAIRS = (
    "REPAIRS\n  2022-03-08  Dishwasher pump, £134\n"
    "  2024-02-26  Waste pipe, leaked into 3B.\n              Landlord paid.\n"
)
HUNG = "Needs     scales, a heating block,\n          and wash PE\nTime      35 minutes\nYou must wear goggles.\n"
ALONE = "Trouble   A ratio under 1 is left-over salt: wash twice.\n          Nothing at all? Begin again.\n"
TITLE = "FJORD MITTS            by a friend\n\nCast on and join.\n"


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        pytest.param(
            SET_IN,
            [
                ("27 days and the bank holidays.", "holidays"),
                ("Carry over at most 8 days.", "holidays"),
                ("£450 a head", "training"),
            ],
            id="what is set in below a name",
        ),
        pytest.param(
            LISTED,
            [
                ("Back on 23 April", "Term dates"),
                ("Half-term 26 May", "Term dates"),
                ("Sports day 20 June (wet: 27)", "Term dates"),
                ("Summer fair 28 June", "Term dates"),
            ],
            id="entries below a name",
        ),
        pytest.param(
            WRAPPED,
            [("Pizza stays on Fridays, after the\n  petition of the children", "Lunch")],
            id="a sentence that goes on",
        ),
        pytest.param(
            REPAIRS,
            [
                ("  2022-03-08  Dishwasher pump, £134", "REPAIRS"),
                ("  2024-02-26  Waste pipe, leaked into 3B.", "REPAIRS"),
                ("Landlord paid.", "REPAIRS"),
            ],
            id="entries with a date",
        ),
        pytest.param(
            HUNG,
            [
                ("Needs     scales, a heating block,\n          and wash PE", "Needs"),
                ("Time      35 minutes", "Time"),
                ("You must wear goggles.", ""),
            ],
            id="names with what they need beside them",
        ),
        pytest.param(
            ALONE,
            [
                ("Trouble   A ratio under 1 is left-over salt: wash twice.", "Trouble"),
                ("Nothing at all?", "Trouble"),
                ("Begin again.", "Trouble"),
            ],
            id="one name beside its sentences",
        ),
        pytest.param(TITLE, [("Cast on and join.", "FJORD MITTS            by a friend")], id="a title"),
    ],
)
def test_lines_belong_to_what_they_are_set_in_below_or_beside(text: str, statements: list[tuple[str, str]]) -> None:
    found = [each for each in statements_of(passage(text)) if each.kind != "label"]
    assert [(each.text, each.head) for each in found] == statements


@pytest.mark.parametrize(
    "text",
    [
        "name\n  A\n\n" * 20_000,
        "Name      a\n" * 4000,
        "Name      a\n" + "          b\n" * 4000,
        "name\n  A\n" * 4000,
        "name\n" + "  A\n" * 8000,
    ],
)
def test_the_processor_time_grows_linearly_with_the_lines_set_in(text: str) -> None:
    with cpu_limit_s(2):
        statements_of(passage(text))
