"""Answers that a model writes: its text is passed on, and its citation marks are checked against the passages.

A mark `[2]` counts if there is a second passage and, if its sentence contains quotations, one of them is in the passage
word for word. Other marks are removed, and so are repeated ones and those in the sentence for no results. The rest is
renumbered, one number for each quote. Whatever the model invents, a mark can only refer to the text of a passage.

The answer is grounded when each of its sentences has a mark, and the marked passages support it (see `claims`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.answers.claims import Reference, is_borne_out
from svc_daemon.core.answers.passages import Citation, Passage
from svc_daemon.core.answers.quoting import NOTHING_FOUND
from svc_daemon.core.text.sentences import LONGEST, Span, sentences_of
from svc_daemon.core.text.words import stems_of, words_of

#: A shorter quotation is a term or a title.
FEWEST_QUOTED_WORDS = 3
#: A longer run of digits and commas in brackets is no mark.
LONGEST_MARK = 40
#: The most marks in one answer. A model in a loop writes thousands, and each is sent with its quote.
MOST_MARKS = 500
#: The most characters before a mark that count as its sentence.
LONGEST_SENTENCE = 1000

_MARK = re.compile(r"\[\s*(\d{1,4}(?:\s*,\s*\d{1,4})*)\s*\]")
_BEGUN_MARK = re.compile(r"\[[\s\d,]*")
#: No match can contain the beginning of another, so that each character is checked once.
_QUOTATION = re.compile(r"“([^”“]+)”|\"([^\"]+)\"|«([^«»]+)»|„([^„“”]+)[“”]|(?<!\w)‘([^‘]+?)’(?!\w)")  # noqa: RUF001
_ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
_CLOSING = tuple(".,;:!?)")


@dataclass(frozen=True, slots=True)
class _OpenSentence:
    """The sentence that is being written, as far as it has arrived."""

    quotations: tuple[str, ...]
    #: Its last characters, which a mark after a very long sentence refers to.
    stems: frozenset[str]
    #: Whether it is the sentence for no results, which cites no source.
    is_nothing_found: bool


class WrittenAnswer:
    """The answer while it is written; text that was returned is not processed again."""

    def __init__(self, question: str, passages: Sequence[Passage]) -> None:
        self._question = question
        self._references = [Reference(passage) for passage in passages]
        self._written: list[str] = []
        self._size = 0
        #: In the order of their marks.
        self.citations: list[Citation] = []
        self._numbers: dict[tuple[int, Span], int] = {}
        #: The beginning of a possible mark.
        self._held = ""
        #: Spaces at the end, which are removed with a mark after them.
        self._space = ""
        self._has_dropped = False
        #: Passages that were cited since the last word.
        self._beside: set[int] = set()
        #: The end of the text without its marks; the sentence that is being written is in it.
        self._end = ""
        #: None if text has arrived since it was computed.
        self._sentence: _OpenSentence | None = None

    @property
    def text(self) -> str:
        return "".join(self._written)

    def feed(self, written: str) -> list[str | Citation]:
        """Take the next text of the model, and return the text that is final by now, each mark before its citation."""
        held = self._held + written
        pieces: list[str | Citation] = []
        start = 0
        for mark in _MARK.finditer(held):
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
        """Return the text that was held back; the answer is complete."""
        pieces = self._write(self._held)
        self._held = self._space = ""
        return pieces

    def judge(self) -> bool:
        """Whether every sentence cites a passage that supports it."""
        cited = {citation.index: citation.passage for citation in self.citations}
        text, is_empty = self.text, True
        for span in sentences_of(text, len(text)):
            sentence = _MARK.sub(" ", text[span.start : span.end])
            if not any(map(str.isalnum, sentence)):
                continue
            marks = (mark.start() for mark in _MARK.finditer(text, span.start, span.end))
            references = [self._references[place] for place in dict.fromkeys(cited[at] for at in marks if at in cited)]
            if not references or not all(
                any(each.find(words) for each in references) for words in _quotations(sentence)
            ):
                return False
            if not is_borne_out(sentence, references, self._question):
                return False
            is_empty = False
        return not is_empty

    def _write(self, text: str) -> list[str | Citation]:
        if not self._size:
            # Models like to begin with an empty line.
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
        """Add the marks of one bracket that are valid, in order."""
        for passage in (number - 1 for number in numbers):
            # Small models repeat marks without a word in between.
            is_new = 0 <= passage < len(self._references) and passage not in self._beside
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
        """The span that the sentence cites; None if its quotations aren't there, or for the sentence for no results."""
        if self._sentence is None:
            spans = sentences_of(self._end, LONGEST_SENTENCE)
            self._end = self._end[spans[-1].start :] if spans else ""
            is_empty = self._end.strip().rstrip(".") == NOTHING_FOUND.rstrip(".")
            self._sentence = _OpenSentence(tuple(_quotations(self._end)), stems_of(self._end[-LONGEST:]), is_empty)
        sentence, reference = self._sentence, self._references[passage]
        if sentence.is_nothing_found:
            return None
        if sentence.quotations:
            return next(filter(None, map(reference.find, sentence.quotations)), None)
        return reference.closest(sentence.stems)


def _quotations(sentence: str) -> list[str]:
    """The quotations in the sentence; one with gaps counts as several."""
    quoted = (next(filter(None, match.groups())) for match in _QUOTATION.finditer(sentence))
    parts = (part for each in quoted for part in _ELLIPSIS.split(each))
    return [part for part in parts if len(words_of(part)) >= FEWEST_QUOTED_WORDS]
