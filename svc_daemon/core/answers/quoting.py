"""The default answerer: the best sentences of what was found, word for word, each with the mark of its source.

Needs no model and no network, and gives the same answer to the same passages. The score of a sentence is the weight of
the words that it shares with the question, plus a part of those in its title and headings: below a heading "Vacation" a
sentence need not have the word. Rows of tables, code and headings score less, so that prose is preferred. Sentences of
one passage keep their order.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from svc_daemon.core.answers.evidence import ASKS_FOR_NUMBER
from svc_daemon.core.answers.passages import Citation, Passage, quote_of
from svc_daemon.core.text.sentences import Span, cost_of, fences_of, sentences_of
from svc_daemon.core.text.words import FORMS, stem_of, stems_of, words_of

#: The answer if nothing was found; it cites no source.
NOTHING_FOUND = "I found nothing about this in the sources."
#: Sentences of one answer.
MOST_SENTENCES = 3
#: A further sentence must score at least this part of the best one,
WORTHY = 0.85
#: or this part, if it has a word of the question that the ones before it lack.
WORTHY_OF_MORE = 0.5
#: The weight of words in the title and headings, compared with the sentence's own.
CONTEXT_SHARE = 0.5
#: What a number counts where one was asked for, and "X is …" where it was asked what X is, and what a question or a
#: heading counts less: enough to leave out an even sentence.
HINT = 0.2
#: How much less the last passage counts than the first.
RANK = 0.1
#: The weight of a word of the question, compared with one added from an earlier question.
OWN = 2.0
#: The least number of letters that a word shares with its stem.
BEGINNING = 3
#: Fewer words mean nothing by themselves: `Yes.`
FEWEST_WORDS = 3

_ASKS_WHEN = re.compile(r"\bwhen\b")
#: A question of the form "what is X"; the group is X.
_ASKS_WHAT = re.compile(r"what(?: is|'s| are| does) (?:an? |the )?(\w[\w-]*(?: \w+)?)(?: mean)?\s*\??$")
#: A definition begins so, soon after the name.
_DEFINITION = r"\W*(?:an? |the )?{}\W.{{0,80}}?\b(?:is|are|means?|refers? to)\b"


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """One sentence of a passage, with its score."""

    passage: int
    span: Span
    #: Its words in small letters, to find duplicates.
    words: str
    #: The question's own words in it, as stems.
    shared: frozenset[str]
    worth: float
    is_prose: bool = True


@dataclass(frozen=True, slots=True)
class Quoted:
    """A piece of the answer: a sentence exactly as in the source, and its mark."""

    text: str
    citation: Citation


def quote_best(question: str, searched: str, passages: Sequence[Passage]) -> list[Quoted]:
    """The pieces of the answer, in order; none where no passage was found.

    `searched` is the question with the words added from the conversation. `passages` come best first. The text of a
    piece includes the space before it.
    """
    fences = [fences_of(passage.text) for passage in passages]
    sentences, best = [], 0.0
    # The cost of rows, code and headings is computed only where a sentence may be chosen.
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
    # Sentences of one passage keep their order; passages come as the first sentence of each was chosen.
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
    # A word that no passage has weighs nothing, since it distinguishes no passage from another.
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
            # The index cuts names such as `max_file_size`; a sentence has their words if it has the very name.
            named = [part for name in names if name in spelled for part in name.split("_")]
            # Words with another beginning than the question's can't share a stem with it, irregular forms aside.
            candidates = [*spelled, *named]
            own = frozenset(stem_of(word) for word in candidates if word[:BEGINNING] in beginnings or word in FORMS)
            shared = sum(weight for stem, weight in weights.items() if stem in own)
            lent = sum(weight for stem, weight in weights.items() if stem in above and stem not in own)
            hints = (
                (wants_number and any(map(str.isdigit, text)))
                + bool(definition.match(text.lower()))
                - (len(words) < FEWEST_WORDS or text.endswith(("?", ":")))
            )
            # The share of the question's weight that the sentence has, or its headings have, 0 to 1.
            covered = (shared + CONTEXT_SHARE * lent) / total if total else 0.0
            worth = covered + HINT * hints - RANK * place / len(passages)
            yield ScoredSentence(place, span, " ".join(words), own & asked, worth)


def _is_better_with(sentence: ScoredSentence, chosen: Sequence[ScoredSentence]) -> bool:
    """Whether the answer is better for one more sentence."""
    if any(sentence.words == each.words for each in chosen):
        return False
    covered = frozenset[str]().union(*(each.shared for each in chosen))
    adds_words = not sentence.shared <= covered
    if not sentence.is_prose and not adds_words:
        return False
    wanted = WORTHY_OF_MORE if adds_words and sentence.is_prose else WORTHY
    return sentence.worth >= wanted * chosen[0].worth
