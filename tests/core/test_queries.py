"""What is looked for when a user types something."""

import pytest

from svc_daemon.core.queries import MAX_WORDS, STOP_WORDS, parse_query

WORDS = [
    ("", ()),
    (" \t\n", ()),
    ("?!... -- ''", ()),
    ("fox", ("fox",)),
    ("Quick FOX", ("quick", "fox")),
    ("fox fox Fox", ("fox",)),
    ("the fox and the dog", ("fox", "dog")),
    ("to be or not to be", ("to", "be", "or", "not")),
    ("How many days do I get, please?", ("days",)),
    ("What does a walrus mean to them?", ("walrus",)),
    ("AND", ("and",)),
    ("NEAR(fox, 3)", ("near", "fox", "3")),
    ('"fox" * ^dog -cat', ("fox", "dog", "cat")),
    ("title:fox", ("title", "fox")),
    ("state-of-the-art", ("state", "art")),
    ("snake_case foo.bar()", ("snake", "case", "foo", "bar")),
    ("don't", ("don", "t")),
    ("Fox's don't", ("fox",)),
    ("§ 14 BGB 2.0", ("14", "bgb", "2", "0")),
    ("Straße", ("straße",)),
    ("cafe\N{COMBINING ACUTE ACCENT}", ("café",)),
    ("日本語 テキスト", ("日本", "本語", "テキ", "キス", "スト")),
    ("Python入門", ("python", "入門")),
    # The vowel signs of Devanagari are marks; without them each letter would stand alone.
    ("नमस्ते", ("नमस्ते",)),
    ("\N{FOX FACE} fox\N{FOX FACE}dog", ("fox", "dog")),
    ("\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}", ()),
    ("fox\x00dog\ud800cat\ue000", ("fox", "dog", "cat")),
    ("zero\N{ZERO WIDTH SPACE}width", ("zero", "width")),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words_of_a_query(text: str, words: tuple[str, ...]) -> None:
    assert parse_query(text).words == words


def test_a_long_query_keeps_its_first_words_and_says_so() -> None:
    parsed = parse_query("the " + " ".join(f"w{number}" for number in range(MAX_WORDS + 5)))
    assert parsed.words == tuple(f"w{number}" for number in range(MAX_WORDS))
    assert parsed.words_left_out == 5


def test_the_same_word_many_times_leaves_nothing_out() -> None:
    assert parse_query("fox " * 1000).words_left_out == 0


def test_every_stop_word_is_a_word_as_queries_are_cut() -> None:
    for word in STOP_WORDS:
        assert parse_query(word).words == (word,)
