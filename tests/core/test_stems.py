"""Which words count as the same when sentences are compared."""

import pytest

from svc_daemon.core.stems import stem_of, stems_of

SAME = [
    ("employee", "employees"),
    ("policy", "policies"),
    ("day", "days"),
    ("work", "working"),
    ("work", "worked"),
    ("approve", "approves"),
    ("Vacation", "vacation"),
    ("time", "times"),
    ("wrote", "written"),
    ("writing", "author"),
    ("paid", "pays"),
    ("children", "Kids"),
    ("used", "use"),
    ("colour", "colors"),
    ("licence", "license"),
]
OTHER = [("day", "date"), ("use", "us"), ("part", "partner"), ("2", "20"), ("bus", "business")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_forms_of_a_word_are_one(one: str, other: str) -> None:
    assert stem_of(one) == stem_of(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_two_words_stay_two(one: str, other: str) -> None:
    assert stem_of(one) != stem_of(other)


def test_words_that_say_nothing_are_left_out_and_all_others_count() -> None:
    assert stems_of("What is the boat's tide?") == {"boat", "tid"}
    assert len(stems_of(" ".join(f"w{number}" for number in range(500)))) == 500
