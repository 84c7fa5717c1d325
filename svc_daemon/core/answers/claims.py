"""Decides whether the passages that a sentence of an answer cites can support it.

A sentence counts as supported unless:

* it shares too few words with the passages;
* it contains a number in digits, a code or a name that is in neither the passages nor the question.

Negations, number words and units are not understood. A false sentence made of its passage's own words and numbers is
accepted.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, chain, zip_longest
from typing import NamedTuple

from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.text.sentences import Span, sentences_of
from svc_daemon.core.text.words import STOP_WORDS, stems_of, words_of

#: A word that begins with a letter.
_LETTERS = re.compile(r"[^\W\d_]\w*")
_BEGINNING = re.compile(r"(?:^|[.!?:\n“\"(«|])\s*$")
#: Abbreviations before a name, whose full stop does not end a sentence.
_TITLE = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St)\.\s$")
_LONGEST_TITLE = 6
#: If a larger share of words is capitalized (German, titles), capitals don't indicate names.
MOST_CAPITALS = 0.25
#: Two words count as the same name if both are longer than this, and have this many first letters in common:
#: `Norway`, `Norwegian`.
_COMMON = 4
#: If a word with at least this many letters is the beginning of a longer word, both count as the same name.
_SHORTEST = 3
#: At least this share of a sentence's words must be in the cited passages.
SUPPORT = 0.25

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"([$€£¥])?\s?(\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s?([%‰°$€£¥])?")
#: A full hour: 9:00, 09:00 and 9 count as the same number.
_FULL_HOUR = re.compile(r"\b(\d{1,2}):00\b")


class Number(NamedTuple):
    """A number in digits, with an adjacent currency, percent or degree sign, if any."""

    value: Decimal
    sign: str | None


def numbers_of(text: str) -> list[Number]:
    """Find the numbers in a text, in order; 1,000 equals 1000, and 2.50 equals 2.5."""
    found = _NUMBER.finditer(_FULL_HOUR.sub(r"\1", text))
    return [Number(Decimal(each[2].replace(",", "")), each[1] or each[3]) for each in found]


class PassageSentence(NamedTuple):
    """A sentence of a passage, with its offsets in the passage and the stems of its words."""

    span: Span
    text: str
    stems: frozenset[str]


class Reference:
    """A passage that an answer may cite, with the words and numbers to check the answer against."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words of the passage, its title and its headings."""
        return frozenset(words_of(self._whole))

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of `words`, without stop words."""
        return stems_of(self._whole)

    @cached_property
    def numbers(self) -> list[Number]:
        """Return the numbers in the passage, its title and its headings."""
        return numbers_of(self._whole)

    @cached_property
    def share_of_capitals(self) -> float:
        """Return the share of the passage's words that begin with a capital letter."""
        words: list[str] = _LETTERS.findall(self.passage.text)
        return sum(word[0].isupper() for word in words) / max(1, len(words))

    @cached_property
    def sentences(self) -> list[PassageSentence]:
        """Return the passage's sentences in order; at least one."""
        text = self.passage.text
        spans = sentences_of(text) or [Span(0, len(text))]
        texts = ((span, text[span.start : span.end]) for span in spans)
        return [PassageSentence(span, sentence, stems_of(sentence)) for span, sentence in texts]

    def closest(self, stems: Collection[str]) -> Span:
        """Return the span of the sentence that has the most of these stems; on a tie, of the first sentence."""
        return max(self.sentences, key=lambda each: len(each.stems.intersection(stems))).span

    def find(self, quotation: str) -> Span | None:
        """Return the first span that contains the quotation's words in sequence, ignoring punctuation."""
        spans, starts, joined = self._run
        found = joined.find(f" {' '.join(words_of(quotation))} ")
        if found < 0:
            return None
        first = bisect_right(starts, found) - 1
        return Span(spans[first].start, spans[first + len(words_of(quotation)) - 1].end)

    @property
    def _whole(self) -> str:
        return f"{self.passage.context} {self.passage.text}"

    @cached_property
    def _run(self) -> tuple[list[Span], list[int], str]:
        """Return each word's span in the passage, each word's offset in the joined text, and the joined text.

        The joined text is the passage's words in lower case, with single spaces between them.
        """
        matches = list(_WORD.finditer(self.passage.text))
        words = [match[0].lower() for match in matches]
        starts = list(accumulate((len(word) + 1 for word in words), initial=0))
        return [Span(*match.span()) for match in matches], starts, f" {' '.join(words)} "


def is_borne_out(sentence: str, references: Sequence[Reference], question: str) -> bool:
    """Return whether the passages that the sentence cites (`references`) can support it."""
    stems, words = stems_of(sentence), words_of(sentence)
    shared = [stem for stem in stems if any(stem in reference.stems for reference in references)]
    if len(shared) < max(1, SUPPORT * len(stems)):
        return False
    known = frozenset(words_of(question)).union(*(reference.words for reference in references))
    # A word with a digit is a code (`a4`), unless it begins with the digit (`1st`, `30`).
    if any(any(map(str.isdigit, word)) and not word[0].isdigit() and word not in known for word in words):
        return False
    signs: defaultdict[Decimal, set[str | None]] = defaultdict(set)
    for known_number in chain(numbers_of(question), *(reference.numbers for reference in references)):
        signs[known_number.value].add(known_number.sign)
    for number in numbers_of(sentence):
        # The sentence or the passage may spell the sign as a word, such as "percent".
        with_signs = signs[number.value]
        if not with_signs or not (number.sign is None or number.sign in with_signs or None in with_signs):
            return False
    if any(reference.share_of_capitals > MOST_CAPITALS for reference in references):
        return True
    for name in _names_of(sentence) - known:
        # The passages may have another form of the name: `Norwegian` for `Norway`.
        pairs = [sorted((name, word), key=len) for word in known]
        begun = any(len(short) >= _SHORTEST and long.startswith(short) for short, long in pairs)
        if not begun and not any(len(short) > _COMMON and short[:_COMMON] == long[:_COMMON] for short, long in pairs):
            return False
    return True


def _names_of(text: str) -> set[str]:
    """Return the names in the text, in lower case.

    The first word of a sentence is a name only if another name follows or all its letters are capitals.
    """
    matches = list(_LETTERS.finditer(text))
    names = set()
    for match, following in zip_longest(matches, matches[1:]):
        word = match[0]
        if not word[0].isupper() or word.lower() in STOP_WORDS:
            continue
        before = text[max(0, match.start() - _LONGEST_TITLE) : match.start()]
        is_first = bool(_BEGINNING.search(before)) and not _TITLE.search(before)
        is_acronym = len(word) > 1 and word.isupper()
        begins_name = following and following[0][0].isupper() and text[match.end() : following.start()] == " "
        if not is_first or is_acronym or begins_name:
            names.add(word.lower())
    return names
