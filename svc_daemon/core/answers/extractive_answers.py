"""Answers questions without a model: quotes the best sentences of the passages found, each with a citation mark.

A sentence is scored by the words that it shares with the question. The words of the title and headings above it count
in part. Table rows, code and headings get lower scores than prose.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from svc_daemon.core.answers.passages import ASKS_FOR_NUMBER, Citation, Passage, quote_of
from svc_daemon.core.text.sentences import Span, cost_of, fences_of, sentences_of
from svc_daemon.core.text.words import FORMS, stem_of, stems_of, words_of

#: The answer if nothing was found.
NOTHING_FOUND = "I found nothing about this in the sources."
#: Maximum number of sentences in an answer.
MOST_SENTENCES = 3
#: Each sentence after the best one needs at least this fraction of the best score.
WORTHY = 0.85
#: Used instead of `WORTHY` for a sentence with a word of the question that the chosen sentences lack.
WORTHY_OF_MORE = 0.5
#: The weight of words in the title and headings, compared to words in the sentence itself.
CONTEXT_SHARE = 0.5
#: Added to a sentence's score if it has the number or definition that the question asks for; subtracted if the sentence
#: is a question or heading.
HINT = 0.2
#: Subtracted from a sentence's score according to its passage's rank: 0 for the first passage, nearly this for the
#: last.
RANK = 0.1
#: The weight of the question's own words, compared to words that were added from earlier questions.
OWN = 2.0
#: Words with the same stem begin with this many equal characters, except for irregular forms.
BEGINNING = 3
#: Sentences with fewer words than this, such as `Yes.`, make no sense when quoted alone.
FEWEST_WORDS = 3

_ASKS_WHEN = re.compile(r"\bwhen\b")
#: Matches "what is X"; the group is X.
_ASKS_WHAT = re.compile(r"what(?: is|'s| are| does) (?:an? |the )?(\w[\w-]*(?: \w+)?)(?: mean)?\s*\??$")
#: The beginning of a definition; `{}` is replaced by the defined name.
_DEFINITION = r"\W*(?:an? |the )?{}\W.{{0,80}}?\b(?:is|are|means?|refers? to)\b"


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of a passage, with its score."""

    passage: int
    span: Span
    #: The words in lower case, to find duplicates.
    words: str
    #: Stems of the question's words that the sentence contains.
    shared: frozenset[str]
    worth: float
    is_prose: bool = True


@dataclass(frozen=True, slots=True)
class Quoted:
    """A piece of the answer: a sentence quoted from a source, followed by a citation mark."""

    text: str
    citation: Citation


def quote_best(question: str, searched: str, passages: Sequence[Passage]) -> list[Quoted]:
    """Return the pieces of the answer, in order; empty if there are no passages.

    `searched` is the question with words from the conversation. `passages` are ordered best first. Every piece but the
    first begins with a space.
    """
    fences = [fences_of(passage.text) for passage in passages]
    sentences, best = [], 0.0
    # Table rows, code and headings are slow to detect, so check only sentences that may be chosen.
    for sentence in sorted(_score_sentences(question, searched, passages), key=lambda each: -each.worth):
        if best > 0 and sentence.worth < WORTHY_OF_MORE * best:
            break
        cost = cost_of(passages[sentence.passage].text, sentence.span, fences[sentence.passage])
        best = max(best, sentence.worth - cost)
        sentences.append(replace(sentence, worth=sentence.worth - cost, is_prose=not cost))
    chosen: list[ScoredSentence] = []
    for sentence in sorted(sentences, key=lambda each: (-each.worth, each.passage, each.span)):
        if len(chosen) < MOST_SENTENCES and (not chosen or _is_better_with(sentence, chosen)):
            chosen.append(sentence)
    # Order passages by when they were chosen, and sentences of one passage by position.
    order = list(dict.fromkeys(each.passage for each in chosen))
    pieces, size = [], 0
    for number, sentence in enumerate(sorted(chosen, key=lambda each: (order.index(each.passage), each.span)), 1):
        words = " ".join(quote_of(passages[sentence.passage], sentence.span).split())
        quoted = f" {words} " if number > 1 else f"{words} "
        index = size + len(quoted)
        citation = Citation(number=number, passage=sentence.passage, span=sentence.span, index=index)
        pieces.append(Quoted(f"{quoted}[{number}]", citation))
        size += len(pieces[-1].text)
    return pieces


def _score_sentences(question: str, searched: str, passages: Sequence[Passage]) -> Iterator[ScoredSentence]:
    asked = stems_of(question)
    # A word of the question that no passage contains has no weight.
    found = {stem_of(word): weight for passage in passages for word, weight in passage.weights.items()}
    weights = found or dict.fromkeys(stems_of(searched), 1.0)
    weights = {stem: weight * (OWN if stem in asked else 1.0) for stem, weight in weights.items()}
    total = sum(weights.values())
    names = {word for word in words_of(question) if "_" in word}
    beginnings = {stem[:BEGINNING] for stem in (*weights, *asked)}
    wants_number = bool(ASKS_FOR_NUMBER.search(question.lower()) or _ASKS_WHEN.search(question.lower()))
    asks_what = _ASKS_WHAT.match(question.lower())
    definition = re.compile(_DEFINITION.format(re.escape(asks_what[1]) if asks_what else "(?!)"), re.DOTALL)
    for place, passage in enumerate(passages):
        above = stems_of(passage.context)
        for span in sentences_of(passage.text):
            text = quote_of(passage, span)
            words = text.lower().split()
            spelled = words_of(text)
            # Count the parts of a name such as `max_file_size` as words too, because the index does.
            named = [part for name in names if name in spelled for part in name.split("_")]
            # Compute stems only for words that can have the same stem as a word of the question.
            candidates = [*spelled, *named]
            own = frozenset(stem_of(word) for word in candidates if word[:BEGINNING] in beginnings or word in FORMS)
            shared = sum(weight for stem, weight in weights.items() if stem in own)
            lent = sum(weight for stem, weight in weights.items() if stem in above and stem not in own)
            hints = (
                (wants_number and any(map(str.isdigit, text)))
                + bool(definition.match(text.lower()))
                - (len(words) < FEWEST_WORDS or text.endswith(("?", ":")))
            )
            # How much of the question the sentence covers, 0 to 1.
            covered = (shared + CONTEXT_SHARE * lent) / total if total else 0.0
            worth = covered + HINT * hints - RANK * place / len(passages)
            yield ScoredSentence(place, span, " ".join(words), own & asked, worth)


def _is_better_with(sentence: ScoredSentence, chosen: Sequence[ScoredSentence]) -> bool:
    """Return whether the sentence is good enough to add, and repeats none of the chosen sentences."""
    if any(sentence.words == each.words for each in chosen):
        return False
    covered = frozenset[str]().union(*(each.shared for each in chosen))
    adds_words = not sentence.shared <= covered
    if not sentence.is_prose and not adds_words:
        return False
    wanted = WORTHY_OF_MORE if adds_words and sentence.is_prose else WORTHY
    return sentence.worth >= wanted * chosen[0].worth
