"""Checks and renumbers the citation marks of an answer, and decides whether the answer is grounded.

A mark `[2]` is valid if there is a second passage. If the mark's sentence has quotations, the passage must contain one
of them word for word. Invalid and repeated marks are removed, and the others are renumbered. Each quote has one number.

`grounding.is_grounded` decides whether the passages support the finished answer.

- `is_support` chooses the passages to answer from, if the agent's policy sets no score threshold.
- `is_grounded` checks a model's finished answer: every sentence must cite passages that support it.

The thresholds suit collections with few subjects and the embedding model MiniLM-L6. `docs/explanation/grounding.md`
shows how the thresholds were measured.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from svc_daemon.core.answers.claims import Reference, changes_of, is_about, is_borne_out, is_close
from svc_daemon.core.answers.extractive_answers import NOTHING_FOUND
from svc_daemon.core.answers.particulars import needs_of
from svc_daemon.core.answers.passages import Citation, Passage
from svc_daemon.core.text.sentences import LONGEST, Span, sentences_of
from svc_daemon.core.text.words import stems_of, words_of

#: A quotation with fewer words than this counts as a term or a title, and is not checked.
FEWEST_QUOTED_WORDS = 3
#: Maximum length of a citation mark, such as `[2, 3]`, in characters.
LONGEST_MARK = 40
#: Maximum number of citation marks in one answer, in case a model repeats itself endlessly.
MOST_MARKS = 500
#: Maximum length, in characters, of the sentence that a citation mark belongs to.
LONGEST_SENTENCE = 1000

MARK = re.compile(r"\[\s*(\d{1,4}(?:\s*,\s*\d{1,4})*)\s*\]")
_BEGUN_MARK = re.compile(r"\[[\s\d,]*")
#: Matches a quotation without quotation marks of the same kind inside it, which takes linear time.
_QUOTATION = re.compile(r"“([^”“]+)”|\"([^\"]+)\"|«([^«»]+)»|„([^„“”]+)[“”]|(?<!\w)‘([^‘]+?)’(?!\w)")  # noqa: RUF001
_ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
_CLOSING = tuple(".,;:!?)")


@dataclass(frozen=True, slots=True)
class _OpenSentence:
    """The sentence that the model is writing at the moment."""

    quotations: tuple[str, ...]
    #: Stems of the sentence's words, to choose which sentence of a passage to quote.
    stems: frozenset[str]
    #: Whether the sentence only reports that nothing was found.
    is_nothing_found: bool


class WrittenAnswer:
    """An answer that a model is still writing. Text that `feed` has returned is final."""

    def __init__(self, question: str, passages: Sequence[Passage]) -> None:
        self.question = question
        self.references = [Reference(passage) for passage in passages]
        self._written: list[str] = []
        self._size = 0
        #: The citations, in the order of their marks.
        self.citations: list[Citation] = []
        self._numbers: dict[tuple[int, Span], int] = {}
        #: Received text that is held back because it may be the beginning of a citation mark.
        self._held = ""
        #: Spaces that are held back because a citation mark may follow; dropped if that mark is removed.
        self._space = ""
        self._has_dropped = False
        #: Passages cited since the last word, to remove repeated marks.
        self._beside: set[int] = set()
        #: The last part of the text, without citation marks; it contains the current sentence.
        self._end = ""
        #: The current sentence; None if the text has changed since it was last parsed.
        self._sentence: _OpenSentence | None = None

    @property
    def text(self) -> str:
        return "".join(self._written)

    def feed(self, written: str) -> list[str | Citation]:
        """Process the model's next text, and return the pieces of the answer that are now final.

        In the list, each citation mark is followed by its Citation.
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
            # Models often begin their answer with an empty line.
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
        """Yield a citation mark and its Citation for each valid number in a pair of brackets."""
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
        """Return the part of the passage to cite, or None to remove the mark.

        The mark is removed if the passage contains none of the sentence's quotations, or if the sentence reports that
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
    """Return the quotations in the sentence. An ellipsis splits a quotation into two."""
    quoted = (next(filter(None, match.groups())) for match in _QUOTATION.finditer(sentence))
    parts = (part for each in quoted for part in _ELLIPSIS.split(each))
    return [part for part in parts if len(words_of(part)) >= FEWEST_QUOTED_WORDS]


#: Share of the question that a passage must cover. Each of the question's words in the passage lowers
#: this threshold.
ENOUGH = 0.74
#: How much each of the question's words in a passage lowers the threshold `ENOUGH`.
WORD_WORTH = 0.04
#: At most this many words lower the threshold `ENOUGH`.
MOST_WORDS = 10
#: Share of the question that a passage's best sentence must cover. It replaces `ENOUGH` while a team has few passages.
ENOUGH_SAID = 0.15
#: With at least this cosine similarity, a passage supports an answer even if it lacks the question's words.
NEAR = 0.62
#: A passage also supports an answer if the mean of its coverage and cosine similarity is at least this.
NEAR_WITH_WORDS = 0.54
#: A passage that covers enough of the question's words must also have at least this cosine similarity.
NOT_FAR = 0.25
#: Replaces `NOT_FAR` if a single sentence is judged, since the rest of its passage may be about other things.
NOT_FAR_SAID = 0.1


def is_support(coverage: float, words: int, cosine: float | None, said: float = 0.0, trust: float = 0.0) -> bool:
    """Return whether an answer may be based on a passage.

    `coverage` is the share of the question that the whole passage covers, and `said` the share that the passage's best
    sentence covers. `trust`, 0 to 1, is how much `said` counts compared to `coverage`. `words` is how many of the
    question's words the passage contains. `cosine` is None if there is no vector.
    """
    spare = coverage + WORD_WORTH * min(words, MOST_WORDS) - ENOUGH
    is_covered = (1 - trust) * spare + trust * (said - ENOUGH_SAID) >= 0
    if cosine is None:
        return is_covered
    if cosine >= NEAR or (coverage + cosine) / 2 >= NEAR_WITH_WORDS:
        return True
    return is_covered and cosine >= (1 - trust) * NOT_FAR + trust * NOT_FAR_SAID


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether the sentences that cite a quote say what it says."""

    #: `supported`, `changed`, or `not_judged` if they share too few words with it, or none cites it.
    result: Literal["not_judged", "supported", "changed"]
    #: What was changed, such as a number.
    changes: tuple[str, ...] = ()


NOT_JUDGED: Final = "not_judged"
SUPPORTED: Final = "supported"
CHANGED: Final = "changed"


def check_quotes(text: str, quotes: Mapping[int, Passage], question: str) -> dict[int, Checked]:
    """Compare each sentence of an answer's text with the quotes that it cites, by the numbers in its marks."""
    references = {number: Reference(quote) for number, quote in quotes.items()}
    checked = {number: Checked(NOT_JUDGED) for number in quotes}
    for span in sentences_of(text, len(text)):
        marks = MARK.finditer(text, span.start, span.end)
        numbers = {int(number) for mark in marks for number in mark[1].split(",")} & quotes.keys()
        sentence, cited = MARK.sub(" ", text[span.start : span.end]), [references[number] for number in numbers]
        if not is_close(sentence, cited):
            continue
        changes = tuple(changes_of(sentence, cited, question))
        for number in numbers:
            if checked[number].result != CHANGED:
                checked[number] = Checked(CHANGED, changes) if changes else Checked(SUPPORTED)
    return checked


def list_unknown_marks(text: str, quotes: Iterable[tuple[int, str]]) -> list[int]:
    """Return the numbers in the marks of a text that no quote has. What looks like a mark inside a quote is none."""
    numbered = dict(quotes)
    written = " ".join(text.split())
    for quote in sorted(
        {" ".join(quote.split()) for quote in numbered.values() if "[" in quote}, key=len, reverse=True
    ):
        written = written.replace(quote, " ")
    marked = {int(number) for mark in MARK.finditer(written) for number in mark[1].split(",")}
    return sorted(marked - numbered.keys())


def is_grounded(answer: WrittenAnswer) -> bool:
    """Return whether every sentence of a finished answer cites a passage that supports it."""
    cited = {citation.index: citation.passage for citation in answer.citations}
    text, is_empty, needs = answer.text, True, needs_of(answer.question)
    for span in sentences_of(text, len(text)):
        sentence = MARK.sub(" ", text[span.start : span.end])
        if not any(map(str.isalnum, sentence)):
            continue
        marks = (mark.start() for mark in MARK.finditer(text, span.start, span.end))
        references = [answer.references[place] for place in dict.fromkeys(cited[at] for at in marks if at in cited)]
        quotations = quotations_of(sentence)
        if not references or not all(any(each.find(words) for each in references) for words in quotations):
            return False
        if not is_borne_out(sentence, references, answer.question) or not is_about(needs, references):
            return False
        is_empty = False
    return not is_empty
