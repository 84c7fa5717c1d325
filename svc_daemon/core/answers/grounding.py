"""Grounding: whether a passage supports an answer, where no policy sets a score.

Whether an answer that a model wrote is grounded, `citations` judges sentence by sentence.

A passage that has only a few words of a question has them by chance more often than one that has many. So a passage
must cover a larger share of a short question: nearly all of two words, a third of twenty. With vectors, either the
score must be high or the meaning alone very near; coverage by words is enough unless the meaning is clearly different.

While a team has few passages, the share of the question that a single sentence covers decides (see `evidence`); with
more passages their coverage takes over. There the threshold excludes what is off the subject. It can't distinguish a
sentence that answers from one that is only about the same thing.

The numbers were chosen on two collections of abstracts, and tested on unseen questions: `docs/explanation/grounding.md`
has the figures, and `tests/bench/bench_grounding.py` measures them. They suit collections with few subjects. In a
collection about everything, the words of a short question are found by chance too often, and no numbers in such a rule
help: stricter ones lose as many right answers. The numbers for meaning are for MiniLM-L6: another model may need a
threshold in the policy.
"""

#: The sufficient coverage, and how much each matched word lowers it.
ENOUGH = 0.74
WORD_WORTH = 0.04
#: Further words change nothing.
MOST_WORDS = 10
#: The share of a question that a sentence must cover.
ENOUGH_SAID = 0.15
#: A cosine that is enough by itself, and one that is enough with half of the coverage.
NEAR = 0.62
NEAR_WITH_WORDS = 0.54
#: The least cosine if the words support an answer, of a passage and of one that is judged by its best sentence. A
#: passage is about more than one of its sentences, so its vector is farther from the question.
NOT_FAR = 0.25
NOT_FAR_SAID = 0.1


def is_support(coverage: float, words: int, cosine: float | None, said: float = 0.0, trust: float = 0.0) -> bool:
    """Whether an answer may rest on a passage.

    `coverage` is the share of the question's idf that its `words` carry, which is how many of the question's words it
    has; `cosine` is None where it has no vector, or there is no model. `said` is how much of the question its
    best sentence covers, and `trust` how much that counts beside the coverage; both come from `evidence`.
    """
    spare = coverage + WORD_WORTH * min(words, MOST_WORDS) - ENOUGH
    is_covered = (1 - trust) * spare + trust * (said - ENOUGH_SAID) >= 0
    if cosine is None:
        return is_covered
    if cosine >= NEAR or (coverage + cosine) / 2 >= NEAR_WITH_WORDS:
        return True
    return is_covered and cosine >= (1 - trust) * NOT_FAR + trust * NOT_FAR_SAID
