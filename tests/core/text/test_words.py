"""Tests stems of words."""

from svc_daemon.core.text.words import (
    stem_of,
    stems_of,
)

SAME = [
    *("employee employees", "policy policies", "day days", "work working worked", "approve approves", "time times"),
    *("Vacation vacation", "wrote written", "writing author", "paid pays", "children Kids", "used use"),
    *("colour colors", "licence license"),
]
OTHER = ["day date", "use us", "part partner", "2 20", "bus business"]


def test_forms_of_a_word_have_one_stem_and_other_words_have_others() -> None:
    for forms in SAME:
        assert len(set(map(stem_of, forms.split()))) == 1, forms
    for words in OTHER:
        assert len(set(map(stem_of, words.split()))) == 2, words


def test_stop_words_are_left_out_of_a_query() -> None:
    assert stems_of("What is the boat's tide?") == {"boat", "tid"}
    assert len(stems_of(" ".join(f"w{number}" for number in range(500)))) == 500
