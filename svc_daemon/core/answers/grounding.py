"""Decides whether an answer is grounded, that is, supported by passages of the sources.

- `is_support` chooses the passages to answer from, if the agent's policy sets no score threshold.
- `is_grounded` checks a model's finished answer: every sentence must cite passages that support it.

The thresholds suit collections with few subjects and the embedding model MiniLM-L6. `docs/explanation/grounding.md`
shows how the thresholds were measured.
"""

from svc_daemon.core.answers.citations import MARK, WrittenAnswer, quotations_of
from svc_daemon.core.answers.claims import is_borne_out
from svc_daemon.core.text.sentences import sentences_of

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


def is_grounded(answer: WrittenAnswer) -> bool:
    """Return whether every sentence of a finished answer cites a passage that supports it."""
    cited = {citation.index: citation.passage for citation in answer.citations}
    text, is_empty = answer.text, True
    for span in sentences_of(text, len(text)):
        sentence = MARK.sub(" ", text[span.start : span.end])
        if not any(map(str.isalnum, sentence)):
            continue
        marks = (mark.start() for mark in MARK.finditer(text, span.start, span.end))
        references = [answer.references[place] for place in dict.fromkeys(cited[at] for at in marks if at in cited)]
        quotations = quotations_of(sentence)
        if not references or not all(any(each.find(words) for each in references) for words in quotations):
            return False
        if not is_borne_out(sentence, references, answer.question):
            return False
        is_empty = False
    return not is_empty
