"""Tests that any text is found by each of its words, and that hostile texts are read in linear time."""

# ruff: noqa: RUF001 - letters of many scripts look alike

import threading
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc_daemon.core.text.folding import fold, normalize
from svc_daemon.core.text.languages import STEMMERS, guess_language
from svc_daemon.core.text.pieces import TERM_BYTES
from svc_daemon.core.text.places import PlaceFinder
from svc_daemon.core.text.queries import parse_query
from svc_daemon.core.text.terms import index_terms
from tests.core.text.test_terms import weigh
from tests.limits import cpu_limit_s

#: Letters, marks, signs and digits of the scripts that are treated in a way of their own.
CHARACTERS = st.sampled_from(
    "aAbKßéØıς’'-._@+#:/\\&,%§°€12٣२ءبةעִ日本かガ한ข้าเကျខ្हि्™²ﬁ½\xad\u200b\u0301\ufe0f\x00\ud800\U0001f600"
)
TEXTS = st.text(st.one_of(CHARACTERS, st.characters(), st.just(" ")), max_size=60)
LANGUAGES = st.sampled_from(["", *STEMMERS])


@given(TEXTS)
def test_folding_again_changes_nothing(text: str) -> None:
    folded = fold(normalize(text)[0])
    assert fold(normalize(folded)[0]) == folded


@given(TEXTS)
def test_each_normal_character_has_a_place_in_the_text(text: str) -> None:
    normal, starts, ends = normalize(text)
    assert len(normal) == len(starts) == len(ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))


@given(TEXTS, LANGUAGES)
@example("A A. a", "en")
@example("l'été d'Été", "fr")
@example("1,234.5 1 234 567 v1.2.3", "de")
def test_each_word_of_a_text_is_found_in_it_and_has_a_place(text: str, language: str) -> None:
    terms = index_terms(text, language)
    assert all(0 < len(term.encode()) <= TERM_BYTES for term in (*terms.words.split(" "), *terms.forms.split()) if term)
    for piece in text.split():
        words = parse_query(piece, (language,)).words
        for word, places in zip(words, PlaceFinder(words).find(text, language), strict=True):
            assert weigh(word, text, language) > 0
            assert places == sorted(places)
            assert all(0 <= start < end <= len(text) for start, end in places)
            assert any(text[start:end].strip() for start, end in places)


@given(TEXTS, LANGUAGES)
@example("\u00b4S \u0301s", "fr")
def test_a_query_of_any_text_has_words_with_terms(text: str, language: str) -> None:
    parsed = parse_query(text, (language, "en"))
    assert len({word.text for word in parsed.words}) == len(parsed.words)
    assert all(
        term and not any(map(str.isspace, term)) for w in parsed.words for way in w.alternatives for term in way.terms
    )
    assert all(way.in_forms is False or len(way.terms) == 1 for word in parsed.words for way in word.alternatives)
    assert all(way for phrase in parsed.phrases for way in phrase)


HOSTILE = [
    "x",
    "X",
    "aB",
    "a.",
    "a-",
    "1",
    "1,234,",
    "1 234",
    "a1",
    "+",
    ".",
    "é",
    "日",
    "ข้",
    "İ",
    "\u0301",
    "x\u0301",
    "\xad",
    *("\u1100", "्", "က္", "//", "':", "A ", "ﷺ", "\U0001f469\u200d", '"', "“a”", "the ", "C++", "e-"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_read_in_linear_time(text: str) -> None:
    text = text * (20_000 // len(text))
    with cpu_limit_s(4):
        terms = index_terms(text, "en")
        guess_language(text)
        words = parse_query(text[:5000]).words
        PlaceFinder(words).find(text, "en")
    assert all(len(term.encode()) <= TERM_BYTES for term in {*terms.words.split(), *terms.forms.split()})


def test_marks_of_a_character_beyond_the_usual_are_left_out() -> None:
    marks = "".join(chr(0x300 + number % 70) for number in range(100_000))
    with cpu_limit_s(2):
        assert index_terms(f"x{marks} y", "en").words == "x y"
    assert unicodedata.normalize("NFC", "e\u0301") == normalize("e\u0301")[0]


def test_threads_that_fill_the_same_memory_find_the_same() -> None:
    texts = [" ".join(f"word{chr(97 + n % 26)}{n} straße{n}" for n in range(start, start + 3000)) for start in range(8)]
    expected = [index_terms(text, "de") for text in texts]
    found: dict[int, object] = {}

    def index(number: int) -> None:
        found[number] = [index_terms(text, language) for text in texts for language in ("en", "de")][1::2]

    threads = [threading.Thread(target=index, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[number] == expected for number in range(4))
