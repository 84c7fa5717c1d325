"""Answers that a model writes: its words pass through, and its marks are held to the passages that it was given.

A mark `[2]` counts where there is a second passage, and where one of the quotations in its sentence, if there are any,
is in it word for word; any other mark is removed, and so is one that repeats itself, or is at the sentence for no
results. What stays is renumbered, one number for each quote.
Whatever the model makes up, a mark can only lead to words of a passage.

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
#: Marks of one answer. A model that loops writes thousands, and each is sent with its quote, in a stream many times.
MOST_MARKS = 500
#: How much of the text before a mark is its sentence at most.
LONGEST_SENTENCE = 1000

_MARK = re.compile(r"\[\s*(\d{1,4}(?:\s*,\s*\d{1,4})*)\s*\]")
_BEGUN_MARK = re.compile(r"\[[\s\d,]*")
#: None reaches over the beginning of another, so that each character is looked at once.
_QUOTATION = re.compile(r"“([^”“]+)”|\"([^\"]+)\"|«([^«»]+)»|„([^„“”]+)[“”]|(?<!\w)‘([^‘]+?)’(?!\w)")  # noqa: RUF001
_ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
_CLOSING = tuple(".,;:!?)")


@dataclass(frozen=True, slots=True)
class _OpenSentence:
    """The sentence that is being written, as far as it goes."""

    quotations: tuple[str, ...]
    #: Of its end: what a mark after a very long sentence is about.
    stems: frozenset[str]
    #: Whether it is the sentence for no results, which cites no source.
    is_nothing_found: bool


class WrittenAnswer:
    """The answer as it grows; what was returned is not looked at again, whatever its length."""

    def __init__(self, question: str, passages: Sequence[Passage]) -> None:
        self._question = question
        self._references = [Reference(passage) for passage in passages]
        self._written: list[str] = []
        self._size = 0
        #: In the order of their marks.
        self.citations: list[Citation] = []
        self._numbers: dict[tuple[int, Span], int] = {}
        #: What may still become a mark.
        self._held = ""
        #: Spaces at the end, which go with a mark that is taken out.
        self._space = ""
        self._has_dropped = False
        #: Passages that were marked since the last word.
        self._beside: set[int] = set()
        #: The end of the text without its marks; the sentence that is being written is in it.
        self._end = ""
        #: None where words came since it was looked at.
        self._sentence: _OpenSentence | None = None

    @property
    def text(self) -> str:
        return "".join(self._written)

    def feed(self, written: str) -> list[str | Citation]:
        """Take what the model wrote next and return the text that is final by now, each mark before its citation."""
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
        """Return what was held back until now; nothing is fed after it."""
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
        """Add those marks that hold; those of one bracket follow each other."""
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
        """The span that the sentence cites; None where its quotations aren't there, or where it is for no results."""
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
    """The parts that the sentence gives as another's words; one with gaps is several."""
    quoted = (next(filter(None, match.groups())) for match in _QUOTATION.finditer(sentence))
    parts = (part for each in quoted for part in _ELLIPSIS.split(each))
    return [part for part in parts if len(words_of(part)) >= FEWEST_QUOTED_WORDS]
