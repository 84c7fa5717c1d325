"""Checks and renumbers the citation marks of an answer, such as `[2]`, while a model writes it.

A mark `[2]` is valid if there is a second passage and, if its sentence contains quotations, one of them is in the
passage word for word. Invalid marks are removed, as are repeated marks and marks in a sentence which only reports that
nothing was found. The remaining marks are renumbered, one number per quote. So a mark always refers to the text of a
passage, whatever the model writes.

`grounding.is_grounded` decides whether the cited passages support the finished answer.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.answers.claims import Reference
from svc_daemon.core.answers.passages import Citation, Passage
from svc_daemon.core.answers.quoting import NOTHING_FOUND
from svc_daemon.core.text.sentences import LONGEST, Span, sentences_of
from svc_daemon.core.text.words import stems_of, words_of

#: A quotation is checked only if it has at least this many words; a shorter one is a term or a title.
FEWEST_QUOTED_WORDS = 3
#: Maximum length of a mark in characters; a longer run of digits and commas in brackets is not a mark.
LONGEST_MARK = 40
#: Maximum number of marks in one answer. A model that repeats itself endlessly may write thousands, and each is sent
#: with its quote.
MOST_MARKS = 500
#: Maximum length, in characters, of the sentence that a mark belongs to; text further back is ignored.
LONGEST_SENTENCE = 1000

MARK = re.compile(r"\[\s*(\d{1,4}(?:\s*,\s*\d{1,4})*)\s*\]")
_BEGUN_MARK = re.compile(r"\[[\s\d,]*")
#: A quotation does not contain another opening quotation mark of its kind; this lets the pattern match in linear time.
_QUOTATION = re.compile(r"“([^”“]+)”|\"([^\"]+)\"|«([^«»]+)»|„([^„“”]+)[“”]|(?<!\w)‘([^‘]+?)’(?!\w)")  # noqa: RUF001
_ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
_CLOSING = tuple(".,;:!?)")


@dataclass(frozen=True, slots=True)
class _OpenSentence:
    """The sentence that the model is writing at the moment, as far as it has been received."""

    quotations: tuple[str, ...]
    #: Stems of the words in the last `LONGEST` characters of the sentence, used to choose which sentence of a passage
    #: to quote.
    stems: frozenset[str]
    #: Whether the sentence only reports that nothing was found, so that it cites no source.
    is_nothing_found: bool


class WrittenAnswer:
    """An answer that a model is writing. Text that `feed` has returned is not changed any more."""

    def __init__(self, question: str, passages: Sequence[Passage]) -> None:
        self.question = question
        self.references = [Reference(passage) for passage in passages]
        self._written: list[str] = []
        self._size = 0
        #: The citations, in the order of their marks.
        self.citations: list[Citation] = []
        self._numbers: dict[tuple[int, Span], int] = {}
        #: The end of the received text, held back because it may be the beginning of a mark.
        self._held = ""
        #: Spaces before the mark that is being checked. They are returned with the mark, or dropped if the mark is
        #: removed.
        self._space = ""
        self._has_dropped = False
        #: Passages that were cited since the last word. Another mark for one of them would repeat it, and is removed.
        self._beside: set[int] = set()
        #: The last part of the text without marks; it includes the current sentence.
        self._end = ""
        #: The current sentence; None if more text has arrived since it was last determined.
        self._sentence: _OpenSentence | None = None

    @property
    def text(self) -> str:
        return "".join(self._written)

    def feed(self, written: str) -> list[str | Citation]:
        """Process the next text of the model, and return the pieces of the answer that are now final.

        Each mark is followed by its citation.
        """
        held = self._held + written
        pieces: list[str | Citation] = []
        start = 0
        for mark in MARK.finditer(held):
            pieces += self._write(held[start : mark.start()])
            pieces += self._mark(int(number) for number in mark[1].split(","))
            start = mark.end()
        begun = held.rfind("[", start)
        is_mark = begun >= 0 and len(held) - begun <= LONGEST_MARK and _BEGUN_MARK.fullmatch(held, begun)
        kept = begun if is_mark else len(held)
        pieces += self._write(held[start:kept])
        self._held = held[kept:]
        return pieces

    def finish(self) -> list[str | Citation]:
        """Return the text that is left, once the model has finished."""
        pieces = self._write(self._held)
        self._held = self._space = ""
        return pieces

    def _write(self, text: str) -> list[str | Citation]:
        if not self._size:
            # Models often begin their answer with an empty line, so remove it.
            text = text.lstrip()
        if self._has_dropped and self._space:
            text = text.lstrip(" ")
        if not text:
            return []
        text = text if self._has_dropped and text.startswith(_CLOSING) else self._space + text
        words = text.rstrip(" ")
        self._space = text[len(words) :]
        self._has_dropped = self._has_dropped and not words
        if any(map(str.isalnum, words)):
            self._beside.clear()
            self._sentence = None
        self._end = (self._end + words)[-LONGEST_SENTENCE:]
        self._append(words)
        return [words] if words else []

    def _append(self, text: str) -> None:
        self._written.append(text)
        self._size += len(text)

    def _mark(self, numbers: Iterable[int]) -> Iterator[str | Citation]:
        """Write one mark for each valid number of a pair of brackets, in order. Yields each mark, then its citation."""
        for passage in (number - 1 for number in numbers):
            # Small models often repeat a mark without any text in between.
            is_new = 0 <= passage < len(self.references) and passage not in self._beside
            span = self._quoted(passage) if is_new else None
            self._beside.add(passage)
            if span is None or len(self.citations) >= MOST_MARKS:
                self._has_dropped = True
                continue
            own = self._numbers.setdefault((passage, span), len(self._numbers) + 1)
            citation = Citation(number=own, passage=passage, span=span, index=self._size + len(self._space))
            self.citations.append(citation)
            mark = f"{self._space}[{own}]"
            self._space, self._has_dropped = "", False
            self._end += "" if self._end.endswith(" ") else " "
            self._append(mark)
            yield mark
            yield citation

    def _quoted(self, passage: int) -> Span | None:
        """Return the part of the passage to cite.

        Returns None if the sentence has quotations and the passage contains none of them, or if the sentence says that
        nothing was found.
        """
        if self._sentence is None:
            spans = sentences_of(self._end, LONGEST_SENTENCE)
            self._end = self._end[spans[-1].start :] if spans else ""
            is_empty = self._end.strip().rstrip(".") == NOTHING_FOUND.rstrip(".")
            self._sentence = _OpenSentence(tuple(quotations_of(self._end)), stems_of(self._end[-LONGEST:]), is_empty)
        sentence, reference = self._sentence, self.references[passage]
        if sentence.is_nothing_found:
            return None
        if sentence.quotations:
            return next(filter(None, map(reference.find, sentence.quotations)), None)
        return reference.closest(sentence.stems)


def quotations_of(sentence: str) -> list[str]:
    """Return the quotations in the sentence; one with ellipses is split into several."""
    quoted = (next(filter(None, match.groups())) for match in _QUOTATION.finditer(sentence))
    parts = (part for each in quoted for part in _ELLIPSIS.split(each))
    return [part for part in parts if len(words_of(part)) >= FEWEST_QUOTED_WORDS]
