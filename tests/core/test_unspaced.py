"""How scripts without spaces between their words are cut."""

import time

import pytest

from svc_daemon.core.unspaced import cut_unspaced

CUTS: list[tuple[str, list[str]]] = [
    ("", []),
    ("plain words, naïve café", []),
    ("Straße Привет नमस्ते", []),
    ("契約", ["契約"]),
    ("賃貸契約書", ["賃貸", "貸契", "契約", "約書"]),
    ("犬", ["犬"]),
    ("犬と猫。", ["犬と", "と猫"]),
    ("データ、ベース", ["デー", "ータ", "ベー", "ース"]),
    ("人々の", ["人々", "々の"]),
    ("계약을 해지", ["계약", "약을", "해지"]),
    ("𠮷野家", ["𠮷野", "野家"]),
    # What stands in the same word without a space.
    ("Python入門 v2対応", ["Python", "入門", "v2", "対応"]),
    ("第3条", ["第", "3", "条"]),
    # A kana and its mark as two characters.
    ("か\u3099く", ["がく"]),
    # A syllable as its three letters.
    ("\u1112\u1162\u110c\u1175", ["해지"]),
    # Full-width letters are no part of these scripts.
    ("\uff21\uff22", []),
]


@pytest.mark.parametrize(("text", "pieces"), CUTS)
def test_a_run_becomes_its_pairs(text: str, pieces: list[str]) -> None:
    assert cut_unspaced(text) == pieces


@pytest.mark.parametrize("text", ["x" * 200_000 + "é", "x" * 200_000 + " 犬"])
def test_a_long_word_of_other_letters_costs_no_more_than_its_length(text: str) -> None:
    began_s = time.process_time()
    assert cut_unspaced(text) in ([], ["犬"])
    assert time.process_time() - began_s < 2
