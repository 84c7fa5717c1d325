"""Which passages an answer may rest on, where no policy decides it."""

from svc_daemon.core.answers.grounding import is_support

#: Share of the question covered, words found, cosine.
ENOUGH = [
    # By words alone: the fewer, the more of the question they must cover.
    *((1.0, 1, None), (0.71, 1, None), (0.67, 2, None), (0.55, 5, None), (0.35, 10, None)),
    # By the mean of both, by meaning alone, and by words alone, unless the meaning is another.
    *((0.60, 2, 0.50), (0.0, 0, 0.63), (0.71, 1, 0.30)),
]
TOO_LITTLE = [
    # More than ten words count as ten.
    *((0.69, 1, None), (0.65, 2, None), (0.53, 5, None), (0.33, 10, None), (0.33, 60, None), (0.0, 0, None)),
    *((0.60, 2, 0.46), (0.0, 0, 0.61), (0.71, 1, 0.24), (1.0, 3, -0.1)),
]


def test_what_supports_an_answer() -> None:
    for case in ENOUGH + TOO_LITTLE:
        assert is_support(*case) is (case in ENOUGH), case


def test_one_sentence_counts_as_far_as_it_is_trusted() -> None:
    """Beside a coverage of 0.4, which counts as much where the trust is a half, and lacks 0.3."""
    cases = {(0.16, 1.0): True, (0.14, 1.0): False, (0.46, 0.5): True, (0.44, 0.5): False, (1, 0): False}
    for (share, trust), enough in cases.items():
        # The more a single sentence counts, the less a distant passage speaks against it.
        not_far = 0.25 - 0.15 * trust
        found = [is_support(0.4, 1, cosine, share, trust) for cosine in (None, not_far + 0.01, not_far - 0.01)]
        assert found == [enough, enough, False], (share, trust)
