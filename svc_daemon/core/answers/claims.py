"""Claims: whether the passages that a sentence of an answer cites can support it.

No model judges, and no rule knows a language. A sentence is supported unless one of these speaks against it:

* It shares too few words with the passages.
* It has a number in digits, a code or a name that neither they nor the question have.

Quotations are checked where marks are, in `citations`. Negations, number words and units are not understood: a
sentence that misstates its passage with the passage's own words and numbers passes. The quotes let the reader see.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.text.sentences import Span, sentences_of
from svc_daemon.core.text.words import STOP_WORDS, stems_of, words_of

_WORD = re.compile(r"[^\W\d_]\w*")
_BEGINNING = re.compile(r"(?:^|[.!?:\n“\"(«|])\s*$")
#: What stands before a name, and ends no sentence.
_TITLE = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St)\.\s$")
_LONGEST_TITLE = 6
#: More of a text than this is written so in German, or in a title: there a capital letter says nothing.
MOST_CAPITALS = 0.25
#: Two forms of a name have so many letters in common: `Norway`, `Norwegian`.
_COMMON = 4
_SHORTEST = 3


def names_of(text: str) -> set[str]:
    """The names in small letters; a sentence's first word counts before another name, or all in capitals."""
    matches = list(_WORD.finditer(text))
    names = set()
    for place, match in enumerate(matches):
        if not match[0][0].isupper() or match[0].lower() in STOP_WORDS:
            continue
        following = matches[place + 1] if place + 1 < len(matches) else None
        before = text[max(0, match.start() - _LONGEST_TITLE) : match.start()]
        is_first = bool(_BEGINNING.search(before)) and not _TITLE.search(before)
        if not is_first or _is_acronym(match[0]) or (following and _begins_name(text, match, following)):
            names.add(match[0].lower())
    return names


def share_of_capitals(text: str) -> float:
    """The part of the words that begin with a capital letter."""
    words = _WORD.findall(text)
    return len([word for word in words if word[0].isupper()]) / max(1, len(words))


def is_known(name: str, words: Collection[str]) -> bool:
    """Whether the name, or another form of it, is among the words, which are in small letters."""
    return name in words or any(_is_form(name, word) for word in words)


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def _begins_name(text: str, match: re.Match[str], following: re.Match[str]) -> bool:
    return following[0][0].isupper() and text[match.end() : following.start()] == " "


def _is_form(name: str, word: str) -> bool:
    shorter, longer = sorted((name, word), key=len)
    if len(shorter) < _SHORTEST:
        return False
    return longer.startswith(shorter) or (len(shorter) > _COMMON and shorter[:_COMMON] == longer[:_COMMON])


#: The part of a sentence's words that the cited passages must have.
SUPPORT = 0.25

_ANY_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"([$€£¥])?\s?(\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s?([%‰°$€£¥])?")
#: 9:00, 09:00 and 9 are the same time.
_FULL_HOUR = re.compile(r"\b(\d{1,2}):00\b")


class Number(NamedTuple):
    """A number in digits, with the sign of a currency, percentage or degree beside it, if any."""

    value: Decimal
    sign: str | None


def numbers_of(text: str) -> list[Number]:
    """The numbers in order; 1,000 and 1000 have one value, as have 2.50 and 2.5."""
    found = _NUMBER.finditer(_FULL_HOUR.sub(r"\1", text))
    return [Number(Decimal(each[2].replace(",", "")), each[1] or each[3]) for each in found]


class PassageSentence(NamedTuple):
    """One sentence of a passage."""

    span: Span
    text: str
    stems: frozenset[str]


class Reference:
    """One passage that an answer may cite."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage

    @cached_property
    def words(self) -> frozenset[str]:
        """All of them, and those that stand above."""
        return frozenset(words_of(self._whole))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The same, of the words that tell something."""
        return stems_of(self._whole)

    @cached_property
    def numbers(self) -> list[Number]:
        """The numbers in it, and above it."""
        return numbers_of(self._whole)

    @cached_property
    def share_of_capitals(self) -> float:
        """The part of its own words that begin with a capital letter."""
        return share_of_capitals(self.passage.text)

    @cached_property
    def sentences(self) -> list[PassageSentence]:
        """Its sentences in order; one at least."""
        text = self.passage.text
        spans = sentences_of(text) or [Span(0, len(text))]
        return [PassageSentence(span, said := text[span.start : span.end], stems_of(said)) for span in spans]

    def closest(self, stems: Collection[str]) -> Span:
        """The sentence that shares most stems; the first of those that share as many."""
        return max(self.sentences, key=lambda each: len(each.stems.intersection(stems))).span

    def find(self, quotation: str) -> Span | None:
        """Where the same words follow each other, whatever stands between them but letters and digits."""
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
        """Where each word stands in the text, where it begins among the words joined by spaces, and these."""
        matches = list(_ANY_WORD.finditer(self.passage.text))
        words = [match[0].lower() for match in matches]
        starts = list(accumulate((len(word) + 1 for word in words), initial=0))
        return [Span(*match.span()) for match in matches], starts, f" {' '.join(words)} "


def is_borne_out(sentence: str, references: Sequence[Reference], question: str) -> bool:
    """Whether nothing in the passages that the sentence cites, one at least, speaks against it."""
    stems, words = stems_of(sentence), words_of(sentence)
    shared = [stem for stem in stems if any(stem in reference.stems for reference in references)]
    if len(shared) < max(1, SUPPORT * len(stems)):
        return False
    known = frozenset(words_of(question)).union(*(reference.words for reference in references))
    # `a4` and `v2` are codes; `1st`, `5pm` and `30` are numbers.
    if any(any(map(str.isdigit, word)) and not word[0].isdigit() and word not in known for word in words):
        return False
    return _has_known_numbers(sentence, references, question) and (
        any(reference.share_of_capitals > MOST_CAPITALS for reference in references)
        or all(is_known(name, known) for name in names_of(sentence))
    )


def _has_known_numbers(sentence: str, references: Sequence[Reference], question: str) -> bool:
    signs: dict[Decimal, set[str | None]] = {}
    for number in [*numbers_of(question), *(each for reference in references for each in reference.numbers)]:
        signs.setdefault(number.value, set()).add(number.sign)
    return all(_has_sign(number.sign, signs.get(number.value, ())) for number in numbers_of(sentence))


def _has_sign(sign: str | None, known: Collection[str | None]) -> bool:
    """Whether the number is known with this sign; words may stand for a sign on either side."""
    return bool(known) and (sign is None or sign in known or None in known)
