"""Tests which passages support an answer if the policy has no score threshold."""

from svc_daemon.core.answers.grounding import is_support

#: Coverage of the question, number of words found, and cosine similarity.
ENOUGH = [
    # By words alone: the fewer words are found, the more of the question they must cover.
    *((1.0, 1, None), (0.71, 1, None), (0.67, 2, None), (0.55, 5, None), (0.35, 10, None)),
    # By the mean of both, by similarity alone, and by words if the similarity isn't too low.
    *((0.60, 2, 0.50), (0.0, 0, 0.63), (0.71, 1, 0.30)),
]
TOO_LITTLE = [
    # More than ten words count as ten.
    *((0.69, 1, None), (0.65, 2, None), (0.53, 5, None), (0.33, 10, None), (0.33, 60, None), (0.0, 0, None)),
    *((0.60, 2, 0.46), (0.0, 0, 0.61), (0.71, 1, 0.24), (1.0, 3, -0.1)),
]


def test_a_passage_supports_an_answer_by_coverage_words_and_similarity() -> None:
    for case in ENOUGH + TOO_LITTLE:
        assert is_support(*case) is (case in ENOUGH), case


def test_a_single_sentence_counts_by_its_trust() -> None:
    """The coverage is 0.4, which is 0.3 too little. With a trust of 0.5, it counts as much as the sentence."""
    cases = {(0.16, 1.0): True, (0.14, 1.0): False, (0.46, 0.5): True, (0.44, 0.5): False, (1, 0): False}
    for (share, trust), enough in cases.items():
        # The more a single sentence counts, the lower the similarity of its passage may be.
        not_far = 0.25 - 0.15 * trust
        found = [is_support(0.4, 1, cosine, share, trust) for cosine in (None, not_far + 0.01, not_far - 0.01)]
        assert found == [enough, enough, False], (share, trust)
