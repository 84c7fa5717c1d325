"""Finds where the words of a query stand in texts."""

import re
from collections.abc import Iterable, Iterator, Sequence

from svc_daemon.core.spellings import spellings_in
from svc_daemon.core.text.terms import (
    CAPITAL,
    LONGEST_PIECE,
    PlacedTerm,
    QueryWord,
    known_pieces,
    lower_articles,
    place_terms,
    recall_terms,
)

#: Where a word is: the offsets of its start and end.
Place = tuple[int, int]

#: For texts in ASCII: makes all letters small and all white space blanks; the signs.
_LOWERED = bytes(32 if chr(code).isspace() else ord(chr(code).lower()) for code in range(128)) + bytes(128)
_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum() and code != ord(" "))
#: Beginnings of words that lose theirs in a stem: dying is die.
_OTHER_HEADS = {"di": "dy", "li": "ly", "ti": "ty"}
#: The results for texts up to this length are kept: titles and headings, which many chunks share.
_SHORT = 200
_PIECE, _PIECE_BYTES = re.compile(r"\S+"), re.compile(rb"[^ ]+")


class PlaceFinder:
    """Finds the words of one query in texts."""

    def __init__(self, words: Sequence[QueryWord]) -> None:
        self._count = len(words)
        #: The words that can stand as this term, and those that can stand as this term and others after it.
        self._single: dict[tuple[str, bool], list[int]] = {}
        self._runs: list[tuple[int, tuple[str, ...]]] = []
        for number, word in enumerate(words):
            for way in word.alternatives:
                if len(way.terms) > 1:
                    self._runs.append((number, way.terms))
                else:
                    self._single.setdefault((way.terms[0], way.in_forms), []).append(number)
        self._wanted = frozenset(term for word in words for way in word.alternatives for term in way.terms)
        self._heads = _heads_of(self._wanted)
        #: Whether a number in groups, a code or a date may be wanted.
        self._has_numbers = any(in_forms and term[-1:].isdecimal() for term, in_forms in self._single)
        # The articles are told from the pieces before them, and runs from their places among all words.
        self._needs_all = bool(self._runs) or not {"a", CAPITAL + "a"}.isdisjoint(self._wanted) or b"" in self._heads
        self._short: dict[tuple[str, str], list[list[Place]]] = {}

    def find(self, text: str, language: str) -> list[list[Place]]:
        """For each word of the query, find where it is in a text in this language, in order."""
        known = self._short.get((text, language)) if len(text) <= _SHORT else None
        if known is not None:
            return known
        places: list[list[Place]] = [[] for _ in range(self._count)]
        by_position: dict[int, tuple[str, Place]] = {}
        for position, begin, placed in self._find_terms(text, language):
            place = begin + placed.start, begin + placed.end
            for number in self._single.get((placed.term, placed.in_forms), ()):
                places[number].append(place)
            if self._runs and not placed.in_forms:
                by_position[position] = placed.term, place
        for number, place in self._find_spelled(text) if self._has_numbers else ():
            places[number].append(place)
        for number, terms in self._runs:
            for position, (term, (start, _)) in by_position.items():
                run = [by_position.get(position + nth) for nth in range(len(terms))] if term == terms[0] else []
                if run and all(each and each[0] == wanted for each, wanted in zip(run, terms, strict=True)):
                    places[number].append((start, by_position[position + len(terms) - 1][1][1]))
        found = [_merge(each) if len(each) > 1 else each for each in places]
        if len(text) <= _SHORT:
            self._short[text, language] = found
        return found

    def _find_spelled(self, text: str) -> Iterator[tuple[int, Place]]:
        """Find the words that a text has as a number, code or date which is written otherwise."""
        for start, end, forms in spellings_in(text):
            for number in {number for form in forms for number in self._single.get((form, True), ())}:
                yield number, (start, end)

    def _find_terms(self, text: str, language: str) -> Iterator[tuple[int, int, PlacedTerm]]:
        """Find the terms that are wanted, each with the number of its word in the text and the start of its piece.

        The numbers are right if there are runs.
        """
        if text.isascii() and not self._needs_all:
            spans = self._find_pieces(text)
        else:
            spans = [match.span() for match in _PIECE.finditer(text)]
        pieces, position, known = [text[start:end] for start, end in spans], 0, known_pieces(language)
        for (begin, _), piece in zip(spans, lower_articles(pieces), strict=True):
            terms, forms = known[piece]
            inner = terms.split(" ") if terms else []
            if not self._wanted.isdisjoint(inner) or (forms and not self._wanted.isdisjoint(forms.split(" "))):
                nth, is_long = position, len(piece) > LONGEST_PIECE
                for placed in (place_terms if is_long else recall_terms)(piece, language):
                    if placed.term in self._wanted:
                        yield nth, begin, placed
                    nth += not placed.in_forms
            position += len(inner)

    def _find_pieces(self, text: str) -> list[Place]:
        """Find the pieces of a text in ASCII that may have a term that is wanted, since stems begin as their words do.

        Cutting each piece into its terms would take long: many are not in memory.
        """
        lowered = text.encode().translate(_LOWERED)
        starts: set[int] = set()
        for head in self._heads:
            at = lowered.find(head)
            while at >= 0:
                starts.add(lowered.rfind(b" ", 0, at) + 1)
                end = lowered.find(b" ", at)
                at = lowered.find(head, end) if end >= 0 else -1
        bare = lowered.translate(None, _SIGNS)
        if any(bare.count(head) != lowered.count(head) for head in self._heads):
            # There are signs within a head.
            for match in _PIECE_BYTES.finditer(lowered):
                piece = match[0].translate(None, _SIGNS)
                if any(head in piece for head in self._heads):
                    starts.add(match.start())
        ends = ((start, lowered.find(b" ", start)) for start in sorted(starts))
        return [(start, end if end >= 0 else len(text)) for start, end in ends]


def _heads_of(terms: Iterable[str]) -> list[bytes]:
    """Return what the pieces of a text in ASCII with one of these terms have in them, apart from signs."""
    plain = {term.encode().translate(None, _SIGNS).decode() for term in terms if term.isascii()}
    heads = {term[: 1 if term[:1].isdigit() else 3 if len(term) > 4 else 2] for term in plain}
    heads |= {_OTHER_HEADS[head] for head in heads & _OTHER_HEADS.keys()}
    # A head that begins with another one finds nothing more.
    shortest = (head for head in heads if not any(head.startswith(other) for other in heads if other != head))
    return [head.encode() for head in shortest]


def _merge(places: Iterable[Place]) -> list[Place]:
    """Sort places, and join those that overlap."""
    merged: list[Place] = []
    for start, end in sorted(places):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
