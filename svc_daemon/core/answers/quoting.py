"""The default answerer: quotes the best sentences of the passages found, each with a citation mark.

It needs no model and no network, and is deterministic. The score of a sentence is the weight of the words that it
shares with the question, plus a fraction of the weight of those in its title and headings: under the heading
"Vacation", a sentence need not repeat the word. Table rows, code and headings get a lower score, so that prose is
preferred. Sentences of the same passage are quoted in their original order.
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
#: Maximum number of sentences in an answer.
MOST_SENTENCES = 3
#: A further sentence is added to the answer only if its score is at least this fraction of the best sentence's score.
WORTHY = 0.85
#: A sentence that adds a word of the question to the chosen sentences needs only this fraction of the best score,
#: instead of `WORTHY`.
WORTHY_OF_MORE = 0.5
#: The weight of words in the title and headings, compared to the words of the sentence itself.
CONTEXT_SHARE = 0.5
#: Added to the score of a sentence if it has a number and the question asks for a number, or if it defines X and the
#: question asks what X is. Subtracted if the sentence is a question or a heading. It is large enough to decide between
#: otherwise equal sentences.
HINT = 0.2
#: How much a sentence's score is lowered by the rank of its passage: not at all for the first passage, by nearly this
#: much for the last.
RANK = 0.1
#: The weight of a word of the question itself, compared to a word that was added from an earlier question.
OWN = 2.0
#: Except for irregular forms, two words can have the same stem only if at least this many of their leading characters
#: are equal.
BEGINNING = 3
#: A sentence with fewer words, such as `Yes.`, makes no sense when quoted alone, so it is not quoted.
FEWEST_WORDS = 3

_ASKS_WHEN = re.compile(r"\bwhen\b")
#: Matches a question of the form "what is X"; the group is X.
_ASKS_WHAT = re.compile(r"what(?: is|'s| are| does) (?:an? |the )?(\w[\w-]*(?: \w+)?)(?: mean)?\s*\??$")
#: Pattern for the beginning of a definition; `{}` is replaced by the name that is defined.
_DEFINITION = r"\W*(?:an? |the )?{}\W.{{0,80}}?\b(?:is|are|means?|refers? to)\b"


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence of a passage, with the score that decides whether it is quoted."""

    passage: int
    span: Span
    #: The words of the sentence in lower case, with single spaces, to find duplicates.
    words: str
    #: Stems of those words of the question that the sentence contains.
    shared: frozenset[str]
    worth: float
    is_prose: bool = True


@dataclass(frozen=True, slots=True)
class Quoted:
    """A piece of the answer: a sentence exactly as in its source, and its mark."""

    text: str
    citation: Citation


def quote_best(question: str, searched: str, passages: Sequence[Passage]) -> list[Quoted]:
    """Return the pieces of the answer, in order; empty if there are no passages.

    `searched` is the question with the words added from the conversation. `passages` are ordered best first. The text
    of each piece after the first begins with a space.
    """
    fences = [fences_of(passage.text) for passage in passages]
    sentences, best = [], 0.0
    # Rows, code and headings are expensive to detect, so check only the sentences that may still be chosen.
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
    # Order the passages by when their first sentence was chosen, and the sentences of one passage by their position.
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
    # A word that no passage contains has no weight, since it doesn't distinguish passages.
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
            # The index splits names such as `max_file_size`, so a sentence with the whole name counts as containing its
            # parts.
            named = [part for name in names if name in spelled for part in name.split("_")]
            # Compute stems only for irregular forms and for words that begin like a word of the question; no other word
            # can have the same stem as one of the question.
            candidates = [*spelled, *named]
            own = frozenset(stem_of(word) for word in candidates if word[:BEGINNING] in beginnings or word in FORMS)
            shared = sum(weight for stem, weight in weights.items() if stem in own)
            lent = sum(weight for stem, weight in weights.items() if stem in above and stem not in own)
            hints = (
                (wants_number and any(map(str.isdigit, text)))
                + bool(definition.match(text.lower()))
                - (len(words) < FEWEST_WORDS or text.endswith(("?", ":")))
            )
            # How much of the question's weight the sentence covers, 0 to 1; its title and headings count in part.
            covered = (shared + CONTEXT_SHARE * lent) / total if total else 0.0
            worth = covered + HINT * hints - RANK * place / len(passages)
            yield ScoredSentence(place, span, " ".join(words), own & asked, worth)


def _is_better_with(sentence: ScoredSentence, chosen: Sequence[ScoredSentence]) -> bool:
    """Return whether to add the sentence to the chosen ones: it must be good enough, and must not repeat one."""
    if any(sentence.words == each.words for each in chosen):
        return False
    covered = frozenset[str]().union(*(each.shared for each in chosen))
    adds_words = not sentence.shared <= covered
    if not sentence.is_prose and not adds_words:
        return False
    wanted = WORTHY_OF_MORE if adds_words and sentence.is_prose else WORTHY
    return sentence.worth >= wanted * chosen[0].worth
