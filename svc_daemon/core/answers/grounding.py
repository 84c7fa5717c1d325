"""Decides whether an answer is grounded, that is, supported by passages of the sources.

`is_grounded` checks the finished answer of a model: every sentence must cite passages that support it. `is_support`
chooses the passages to answer from, if the agent's policy sets no score threshold. An answer that only quotes such
passages is always grounded.

A passage shares one word with a question by chance more often than many. So the fewer of the question's words it
contains, the larger their share of the question's total weight must be: 70 % for one word, 34 % for ten or more. If
there are vectors, a high hybrid score or a very high cosine similarity is also enough, and coverage by words is not
enough if the cosine similarity is very low.

While a team has few passages, what counts is the share of the question that a single sentence covers (see `evidence`);
as passages are added, the coverage by whole passages gradually replaces it. The threshold for sentences excludes text
on other subjects. It can't distinguish a sentence that answers the question from one that is only about the same
subject.

The thresholds were chosen on two collections of abstracts, and tested on unseen questions:
`docs/explanation/grounding.md` has the results, and `tests/bench/bench_grounding.py` measures them. They suit
collections with few subjects. In a collection about everything, the words of a short question are found by chance too
often, and stricter thresholds for words would also lose many correct answers. The cosine thresholds are for the model
MiniLM-L6: with another model, the policy may need a score threshold.
"""

from svc_daemon.core.answers.citations import MARK, WrittenAnswer, quotations_of
from svc_daemon.core.answers.claims import is_borne_out
from svc_daemon.core.text.sentences import sentences_of

#: A passage supports an answer if it covers at least this share of the question, lowered by `WORD_WORTH`.
ENOUGH = 0.74
#: By how much each word of the question that the passage contains lowers the threshold `ENOUGH`.
WORD_WORTH = 0.04
#: At most this many words lower the threshold.
MOST_WORDS = 10
#: The best sentence of a passage must cover at least this share of the question. It replaces `ENOUGH` while there are
#: few passages.
ENOUGH_SAID = 0.15
#: A passage with at least this cosine similarity supports an answer, whatever words it contains.
NEAR = 0.62
#: A passage supports an answer if the mean of its coverage and its cosine similarity is at least this.
NEAR_WITH_WORDS = 0.54
#: A passage that supports an answer only by its words must have at least this cosine similarity.
NOT_FAR = 0.25
#: Replaces `NOT_FAR` for a passage that is judged by its best sentence. It is lower because the passage is about more
#: than that sentence, so its vector is less similar to that of the question.
NOT_FAR_SAID = 0.1


def is_support(coverage: float, words: int, cosine: float | None, said: float = 0.0, trust: float = 0.0) -> bool:
    """Return whether an answer may be based on a passage.

    `words` is how many of the question's words the passage contains, and `coverage` their share of the question's total
    idf. `cosine` is None if the passage has no vector, or if there is no embedding model. `said` is how much of the
    question the passage's best sentence covers, and `trust` the weight of `said` relative to `coverage`; both come from
    `evidence`.
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
