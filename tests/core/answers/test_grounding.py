"""Which passages an answer may rest on, where no policy says so."""

from svc_daemon.core.answers.grounding import is_support

#: Share of the question covered, words found, cosine; whether it will do.
CASES: list[tuple[float, int, float | None, bool]] = [
    # By words alone: the fewer, the more of the question they must cover.
    (1.0, 1, None, True),
    (0.71, 1, None, True),
    (0.69, 1, None, False),
    (0.67, 2, None, True),
    (0.65, 2, None, False),
    (0.55, 5, None, True),
    (0.53, 5, None, False),
    (0.35, 10, None, True),
    (0.33, 10, None, False),
    # More than ten count as ten.
    (0.33, 60, None, False),
    (0.0, 0, None, False),
    # By the mean of both.
    (0.60, 2, 0.50, True),
    (0.60, 2, 0.46, False),
    # By meaning alone.
    (0.0, 0, 0.63, True),
    (0.0, 0, 0.61, False),
    # By words alone, unless the meaning is another.
    (0.71, 1, 0.30, True),
    (0.71, 1, 0.24, False),
    (1.0, 3, -0.1, False),
]


def test_what_supports_an_answer() -> None:
    for coverage, words, cosine, enough in CASES:
        assert is_support(coverage, words, cosine) is enough


#: What one sentence says of the question, how much that counts, and whether it will do beside a coverage of 0.4.
SAID: list[tuple[float, float, bool]] = [
    (0.46, 1.0, True),
    (0.44, 1.0, False),
    # The coverage counts as much, and lacks 0.3.
    (0.76, 0.5, True),
    (0.74, 0.5, False),
    (1.0, 0.0, False),
]


def test_what_one_sentence_says_counts_as_far_as_it_is_trusted() -> None:
    for said, trust, enough in SAID:
        assert is_support(0.4, 1, None, said, trust) is enough
        assert is_support(0.4, 1, 0.3, said, trust) is enough
        assert is_support(0.4, 1, 0.2, said, trust) is False
