"""Measures how much of a question a single sentence covers, to choose passages while a team has few of them.

A few passages don't show how rare a word is in general. So the weight of a word also depends on how common it is in
English (see `common_words`). A sentence covers the words of the question that it contains, and those in the title and
headings above it.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from svc_daemon.core.answers.common_words import chance_of, is_familiar
from svc_daemon.core.answers.passages import Passage, quote_of
from svc_daemon.core.search.word_weights import coverage
from svc_daemon.core.text.sentences import sentences_of
from svc_daemon.core.text.words import STOP_WORDS, stem_of, words_of

#: To estimate how common a word is, this many sentences of average English are added to those of the passages.
SENTENCES = 50
#: If the question asks for a number, the coverage of a sentence without a number is multiplied by this.
WITHOUT_NUMBER = 0.1
#: If a team has this many chunks or more, passages are judged as a whole, not by their single sentences.
MANY = 100

#: Phrases of questions that only a number can answer.
ASKS_FOR_NUMBER = re.compile(
    r"\b(?:how (?:many|much|long|old|often|far|big|large|tall|high|deep|wide|heavy|fast|late|early)"
    r"|what time|what year|which year)\b"
)
_ASKS_FOR_COUNT = re.compile(r"\bhow many (\w+)")
_ASKS_FOR_SPAN = re.compile(r"\bhow (?:long|old|often)\b")
_NUMBER_WORDS = (
    "half quarter once twice one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty "
    "sixty seventy eighty ninety hundred thousand million dozen daily weekly monthly yearly free"
)
_NUMBERS = frozenset(_NUMBER_WORDS.split())
_SPAN_WORDS = (
    "second minute hour day night week month year decade century daily weekly monthly yearly born age millimetre "
    "centimetre metre meter kilometre mile inch foot feet mm cm km page line word character byte"
)
_SPANS = frozenset(map(stem_of, _SPAN_WORDS.split()))


def trust_of(question: str, chunks: int) -> float:
    """Return how much single sentences count compared to whole passages, 0 to 1.

    The more chunks there are, the less single sentences count. If most of the question's words are not English, single
    sentences don't count at all.
    """
    words = words_of(question)
    known = sum(word in STOP_WORDS or is_familiar(word) for word in words)
    return max(0.0, 1 - chunks / MANY) if 0 < len(words) <= 2 * known else 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """How well the passages support an answer."""

    #: For each passage, how much of the question its best sentence covers, 0 to 1.
    said: tuple[float, ...]
    #: The weight of each searched word that at least one passage contains.
    weights: Mapping[str, float]


def weigh_evidence(question: str, words: Collection[str], passages: Sequence[Passage]) -> Evidence:
    """Compute how much of the question each passage's best sentence covers. `words` are the words to look for."""
    # For each sentence of each passage: its stems, and whether it has a number.
    read = [
        [
            (_stems(own), any(word in _NUMBERS or any(map(str.isdigit, word)) for word in own))
            for own in (words_of(quote_of(passage, span)) for span in sentences_of(passage.text))
        ]
        for passage in passages
    ]
    # Count a sentence once, even if several documents contain it.
    sentences = {own for each in read for own, _ in each}
    above = []
    for passage, each in zip(passages, read, strict=True):
        # Two kinds of words count for each sentence of the passage: the words of the title and headings, and the words
        # that the index found in the passage although its sentences spell them differently.
        own = frozenset[str]().union(*(stems for stems, _ in each))
        above.append(_stems(words_of(passage.context)) | (frozenset(map(stem_of, passage.weights)) - own))
    having = {stem: sum(stem in own for own in sentences) + SENTENCES * chance_of(stem) for stem in map(stem_of, words)}
    weights = {stem: math.log((len(sentences) + SENTENCES) / count) for stem, count in having.items()}
    squares = {stem: weight**2 for stem, weight in weights.items()}
    wanted = _wanted(question.lower(), squares.keys())

    def share(own: frozenset[str], over: frozenset[str], *, has_number: bool) -> float:
        is_fit = wanted is None or (has_number and (not wanted or not wanted.isdisjoint(own | over)))
        return coverage(squares, own | over) * (1.0 if is_fit else WITHOUT_NUMBER)

    said = tuple(
        max((share(own, over, has_number=has_number) for own, has_number in each), default=0.0)
        for each, over in zip(read, above, strict=True)
    )
    found = frozenset[str]().union(*above, *sentences)
    return Evidence(said, {word: weights[stem_of(word)] for word in words if stem_of(word) in found})


def _wanted(question: str, stems: Collection[str]) -> frozenset[str] | None:
    """Return the stems of words, such as units of time, of which an answer must contain at least one.

    An empty set means that any number may be the answer. None means that the question doesn't ask for a number.
    """
    if (count := _ASKS_FOR_COUNT.search(question)) and stem_of(count[1]) in stems:
        return frozenset({stem_of(count[1])})
    if _ASKS_FOR_SPAN.search(question):
        return _SPANS
    return frozenset() if ASKS_FOR_NUMBER.search(question) else None


def _stems(words: Sequence[str]) -> frozenset[str]:
    # Split names such as `max_file_size`, as the index does.
    return frozenset(stem_of(part) for word in words for part in {word, *word.split("_")})
