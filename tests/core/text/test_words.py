"""Tests the words of queries, and their stems."""

import pytest

from svc_daemon.core.text.words import (
    MAX_WORDS,
    STOP_WORDS,
    cut_unspaced,
    parse_query,
    stem_of,
    stems_of,
)
from tests.core.limits import cpu_limit_s

#: Texts and their pieces.
CUTS = [
    *(
        ("契約", "契約"),
        ("賃貸契約書", "賃貸 貸契 契約 約書"),
        ("犬", "犬"),
        ("犬と猫。", "犬と と猫"),
        ("データ、ベース", "デー ータ ベー ース"),
    ),
    *(("人々の", "人々 々の"), ("계약을 해지", "계약 약을 해지"), ("𠮷野家", "𠮷野 野家")),
    # Other scripts in the same word.
    *(("Python入門 v2対応", "Python 入門 v2 対応"), ("第3条", "第 3 条")),
    # Decomposed characters: a kana with a combining mark, and a Hangul syllable.
    *(("か\u3099く", "がく"), ("\u1112\u1162\u110c\u1175", "해지")),
    # Other scripts, and full-width letters.
    *(("", ""), ("plain words, naïve café", ""), ("Straße Привет नमस्ते", ""), ("\uff21\uff22", "")),
]


@pytest.mark.parametrize(("text", "pieces"), CUTS)
def test_scripts_without_spaces_are_split_into_pairs(text: str, pieces: str) -> None:
    assert cut_unspaced(text) == pieces.split()


@pytest.mark.parametrize("text", ["x" * 200_000 + "é", "x" * 200_000 + " 犬"])
def test_a_long_word_of_another_script_is_split_in_linear_time(text: str) -> None:
    with cpu_limit_s(2):
        assert cut_unspaced(text) in ([], ["犬"])


#: Queries and their words.
WORDS = [
    *(("", ""), (" \t\n", ""), ("?!... -- ''", ""), ("fox", "fox"), ("Quick FOX", "quick fox"), ("fox fox Fox", "fox")),
    *(("the fox and the dog", "fox dog"), ("to be or not to be", "to be or not"), ("AND", "and")),
    *(("How many days do I get, please?", "days"), ("What does a walrus mean to them?", "walrus")),
    *(("NEAR(fox, 3)", "near fox 3"), ('"fox" * ^dog -cat', "fox dog cat"), ("title:fox", "title fox")),
    *(("state-of-the-art", "state art"), ("snake_case foo.bar()", "snake case foo bar"), ("don't", "don t")),
    *(("Fox's don't", "fox"), ("§ 14 BGB 2.0", "14 bgb 2 0"), ("Straße", "straße")),
    *(("cafe\N{COMBINING ACUTE ACCENT}", "café"), ("Python入門", "python 入門")),
    ("日本語 テキスト", "日本 本語 テキ キス スト"),
    # The vowel signs of Devanagari are combining marks, which don't separate words.
    ("नमस्ते", "नमस्ते"),
    *(("\N{FOX FACE} fox\N{FOX FACE}dog", "fox dog"), ("\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}", "")),
    *(("fox\x00dog\ud800cat\ue000", "fox dog cat"), ("zero\N{ZERO WIDTH SPACE}width", "zero width")),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_a_query_is_split_into_words(text: str, words: str) -> None:
    assert parse_query(text).words == tuple(words.split())


def test_a_long_query_keeps_its_first_words_and_counts_the_rest() -> None:
    parsed = parse_query("the " + " ".join(f"w{number}" for number in range(MAX_WORDS + 5)))
    assert parsed.words == tuple(f"w{number}" for number in range(MAX_WORDS))
    assert (parsed.words_left_out, parse_query("fox " * 1000).words_left_out) == (5, 0)


def test_every_stop_word_is_one_word_of_a_query() -> None:
    assert [word for word in STOP_WORDS if parse_query(word).words != (word,)] == []


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
