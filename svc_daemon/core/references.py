"""References: passages as an answer is held to them; the words of each are worked out once, however often cited."""

import re
from bisect import bisect_right
from collections.abc import Collection
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from svc_daemon.core.names import share_of_capitals
from svc_daemon.core.passages import Passage
from svc_daemon.core.polarity import Clause, clauses_of
from svc_daemon.core.quantities import Quantity, quantities_of
from svc_daemon.core.sentences import Span, sentences_of
from svc_daemon.core.stems import stems_of, words_of

_WORD = re.compile(r"\w+")


class Sentence(NamedTuple):
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
    def quantities(self) -> list[Quantity]:
        """The numbers in it, and above it."""
        return quantities_of(self._whole)

    @cached_property
    def share_of_capitals(self) -> float:
        """The part of its own words that begin with a capital letter."""
        return share_of_capitals(self.passage.text)

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Its sentences in order; one at least."""
        text = self.passage.text
        spans = sentences_of(text) or [Span(0, len(text))]
        return [Sentence(span, said := text[span.start : span.end], stems_of(said)) for span in spans]

    @cached_property
    def clauses(self) -> list[Clause]:
        """What its sentences are made of."""
        return [clause for sentence in self.sentences for clause in clauses_of(sentence.text)]

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
        matches = list(_WORD.finditer(self.passage.text))
        words = [match[0].lower() for match in matches]
        starts = list(accumulate((len(word) + 1 for word in words), initial=0))
        return [Span(*match.span()) for match in matches], starts, f" {' '.join(words)} "
