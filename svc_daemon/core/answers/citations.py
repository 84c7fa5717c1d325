"""Answers that a model writes: its words pass through, and its marks are held to the passages that it was given.

A mark `[2]` counts where there is a second passage, and where one of the quotations in its sentence, if there are any,
stands in it word for word; any other mark is taken out, and so is one that repeats itself, or stands at the sentence
that says that nothing was found. What stays is numbered anew, one number for each quote.
Whatever the model makes up, a mark can only lead to words that stand in a passage.

The answer is grounded when each of its sentences has a mark, and the marked passages bear it out, as `claims` has it.
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
#: Marks of one answer. A model that loops writes thousands, and each is told with its quote, in a stream many times.
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
class _Sentence:
    """The sentence that is being written, as far as it goes."""

    quotations: tuple[str, ...]
    #: Of its end: what a mark behind a very long sentence speaks of.
    stems: frozenset[str]
    says_nothing: bool


class WrittenAnswer:
    """The answer as it grows; what was told is not looked at again, whatever its length."""

    def __init__(self, question: str, passages: Sequence[Passage]) -> None:
        self._question = question
        self._references = [Reference(passage) for passage in passages]
        self._told: list[str] = []
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
        self._sentence: _Sentence | None = None

    @property
    def text(self) -> str:
        return "".join(self._told)

    def feed(self, written: str) -> list[str | Citation]:
        """Take what the model wrote next; gives the text that can be told by now, each mark before its citation."""
        held = self._held + written
        told: list[str | Citation] = []
        start = 0
        for mark in _MARK.finditer(held):
            told += self._say(held[start : mark.start()])
            told += self._mark(int(number) for number in mark[1].split(","))
            start = mark.end()
        begun = held.rfind("[", start)
        is_mark = begun >= 0 and len(held) - begun <= LONGEST_MARK and _BEGUN_MARK.fullmatch(held, begun)
        kept = begun if is_mark else len(held)
        told += self._say(held[start:kept])
        self._held = held[kept:]
        return told

    def finish(self) -> list[str | Citation]:
        """What was held back until now; nothing is fed after it."""
        told = self._say(self._held)
        self._held = self._space = ""
        return told

    def judge(self) -> bool:
        """Whether every sentence rests on a passage that it names."""
        cited = {citation.index: citation for citation in self.citations}
        sentences = list(_with_marks(self.text))
        return bool(sentences) and all(
            self._is_supported(words, [cited[index].passage for index in marks if index in cited])
            for words, marks in sentences
        )

    def _say(self, text: str) -> list[str | Citation]:
        if not self._size:
            # Models like to begin with an empty line.
            text = text.lstrip()
        if self._has_dropped and self._space:
            text = text.lstrip(" ")
        if not text:
            return []
        text = text if self._has_dropped and text.startswith(_CLOSING) else self._space + text
        said = text.rstrip(" ")
        self._space = text[len(said) :]
        self._has_dropped = self._has_dropped and not said
        if any(map(str.isalnum, said)):
            self._beside.clear()
            self._sentence = None
        self._end = (self._end + said)[-LONGEST_SENTENCE:]
        self._tell(said)
        return [said] if said else []

    def _tell(self, said: str) -> None:
        self._told.append(said)
        self._size += len(said)

    def _mark(self, numbers: Iterable[int]) -> Iterator[str | Citation]:
        """Tell those marks that hold; those of one bracket stand beside each other."""
        for passage in (number - 1 for number in numbers):
            span = self._quoted(passage) if self._is_new(passage) else None
            self._beside.add(passage)
            if span is None or len(self.citations) >= MOST_MARKS:
                self._has_dropped = True
                continue
            own = self._numbers.setdefault((passage, span), len(self._numbers) + 1)
            citation = Citation(number=own, passage=passage, span=span, index=self._size + len(self._space))
            self.citations.append(citation)
            said = f"{self._space}[{own}]"
            self._space, self._has_dropped = "", False
            self._end += "" if self._end.endswith(" ") else " "
            self._tell(said)
            yield said
            yield citation

    def _is_new(self, passage: int) -> bool:
        """Whether there is such a passage, and no mark of it since the last word: small models repeat themselves."""
        return 0 <= passage < len(self._references) and passage not in self._beside

    def _quoted(self, passage: int) -> Span | None:
        """What of the passage the sentence rests on; None where it quotes only what isn't there, or found nothing."""
        if self._sentence is None:
            self._sentence = self._read_sentence()
        sentence, reference = self._sentence, self._references[passage]
        if sentence.says_nothing:
            return None
        if sentence.quotations:
            return next(filter(None, map(reference.find, sentence.quotations)), None)
        return reference.closest(sentence.stems)

    def _read_sentence(self) -> _Sentence:
        spans = sentences_of(self._end, LONGEST_SENTENCE)
        self._end = self._end[spans[-1].start :] if spans else ""
        says_nothing = self._end.strip().rstrip(".") == NOTHING_FOUND.rstrip(".")
        return _Sentence(tuple(_quotations(self._end)), stems_of(self._end[-LONGEST:]), says_nothing)

    def _is_supported(self, sentence: str, cited: Sequence[int]) -> bool:
        references = [self._references[place] for place in dict.fromkeys(cited)]
        if not references:
            return False
        quoted = _quotations(sentence)
        return all(any(each.find(quotation) for each in references) for quotation in quoted) and is_borne_out(
            sentence, references, self._question
        )


def _with_marks(text: str) -> Iterator[tuple[str, list[int]]]:
    """Each sentence without its marks, and where in the text these stand; what is only marks is no sentence."""
    for span in sentences_of(text, len(text)):
        words = _MARK.sub(" ", text[span.start : span.end])
        if any(map(str.isalnum, words)):
            yield words, [mark.start() for mark in _MARK.finditer(text, span.start, span.end)]


def _quotations(sentence: str) -> list[str]:
    """The parts that the sentence gives as another's words; one with gaps is several."""
    quoted = (next(filter(None, match.groups())) for match in _QUOTATION.finditer(sentence))
    parts = (part for each in quoted for part in _ELLIPSIS.split(each))
    return [part for part in parts if len(words_of(part)) >= FEWEST_QUOTED_WORDS]
