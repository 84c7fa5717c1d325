"""Grounding: whether a passage supports an answer, where no policy sets a score.

A passage that has only a few words of a question has them by chance more often than one that has many. So by words
alone it must cover the more of the question the fewer of its words it has: nearly all of one of two words, a third of
one of twenty. Where there are vectors, the score must be high, or else the meaning near by itself; what the words alone
would do for is enough as long as the meaning does not speak against it.

A few passages can't show what words weigh. While a team has few, what counts is how much of the question a single
sentence covers, as `evidence` measures it; the coverage of passages takes its place as they become many. There the bar
keeps out what is off the subject. It can't distinguish a sentence that answers from one that is only about the same
thing.

The numbers were chosen with two collections of abstracts in view, and tried on questions that nobody had looked at:
`docs/explanation/grounding.md` has the figures, and `tests/bench/bench_grounding.py` measures them. They hold on a
collection with few subjects. Where it touches everything, chance finds the words of a short question too often, and no
numbers in a rule of this form help: what keeps those out loses as many that are in place. Those for meaning hold for
MiniLM-L6: another model's cosines may lie elsewhere, and want a threshold in the policy.
"""

#: The coverage that is enough, with what each word that was found adds to it.
ENOUGH = 0.74
WORD_WORTH = 0.04
#: More words than this add nothing.
MOST_WORDS = 10
#: How much of a question a sentence must cover.
ENOUGH_SAID = 0.15
#: A cosine that is enough, and one that is with half of the coverage.
NEAR = 0.62
NEAR_WITH_WORDS = 0.54
#: A cosine that does not speak against the words, of a passage and of one judged by its best sentence. A passage is
#: about more than one of its sentences is, so its vector is farther from the question.
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
