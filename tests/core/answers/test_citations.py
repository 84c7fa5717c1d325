"""Tests the citation marks of answers, and which answers are grounded."""

import random
from itertools import pairwise
from typing import Any

import pytest

from svc_daemon.core.answers import citations
from svc_daemon.core.answers.citations import MOST_MARKS, WrittenAnswer, is_support
from svc_daemon.core.answers.passages import Citation, quote_of
from tests.core.answers.passages import passage
from tests.limits import cpu_limit_s

POLICY = "Our policy is generous. Full-time employees get 30 days of vacation a year.\nRequests go to the manager."
PASSAGES = [
    passage(POLICY, title="Handbook", headings=("Vacation",)),
    passage("The garage opens at 7. Employees may park there."),
]
QUESTION = "How many days of vacation do employees get after 5 years?"

#: Answers that are kept unchanged, and whether they are grounded.
UNCHANGED = {
    True: [
        *("Employees get 30 days [1].", "Employees get 30 days. [1]", "30 days of vacation [1], a year [1]."),
        *("Employees get 30 days. [1] The garage opens at 7. [2]", "- 30 days of vacation [1]\n- A garage [2]"),
        # The question may be repeated.
        "After 5 years employees get 30 days [1].",
        # Quotations.
        *("It is “full-time employees get 30 days” [1].", 'It is "Full-time  Employees get 30 days" [1].'),
        *("“Full-time employees … a year” [1].", "The so-called “policy” gives 30 days [1]."),
        *("It is ‘employees get 30 days of vacation’ [1].", "It’s the manager’s vacation policy [1]."),  # noqa: RUF001
        # Text that only looks like a mark.
        "Employees [all of them] get 30 days [1].",
    ],
    False: [
        # A sentence without a mark.
        *("Employees get 30 days [1]. They love it.", "According to the handbook:\n- 30 days [1]"),
        "Employees get 30 days.",
        # A passage that doesn't support the sentence.
        *("The moon is made of cheese [1].", "Employees get 40 days of vacation [1]."),
        "“Our policy is generous”, but “all of it is a lie” [1].",
        # Sentences that no passage can support, without a mark.
        *("They do it. [1]", "Employees get 30 days [1", "[1]", ""),
    ],
}
#: What the model writes, what is kept, and whether that is grounded.
CHANGED = [
    # Marks are renumbered in the order of the answer; each quote has a number of its own.
    ("The garage opens at 7 [2]. They get 30 days [1].", "The garage opens at 7 [1]. They get 30 days [2].", True),
    ("They get 30 days [1]. The policy is generous [1].", "They get 30 days [1]. The policy is generous [2].", True),
    ("Employees park and get vacation [1, 2].", "Employees park and get vacation [1][2].", True),
    ("Employees get 30 days [ 1 ].", "Employees get 30 days [1].", True),
    # The passage doesn't exist: the mark is removed.
    ("Employees get 30 days [3].", "Employees get 30 days.", False),
    ("Employees get 30 days [0].", "Employees get 30 days.", False),
    ("Employees get 30 days [9] [1] a year.", "Employees get 30 days [1] a year.", True),
    ("Employees get 30 days [1, 9].", "Employees get 30 days [1].", True),
    ("Employees get 30 days [9999] a year.", "Employees get 30 days a year.", False),
    # Quotations that are in no cited passage.
    ("It is “employees get 30 weeks of vacation” [1].", "It is “employees get 30 weeks of vacation”.", False),
    ("It is “full-time employees get 30 days” [2].", "It is “full-time employees get 30 days”.", False),
    ("It is ‘employees get 30 weeks of vacation’ [1].", "It is ‘employees get 30 weeks of vacation’.", False),  # noqa: RUF001
    # A mark that repeats the one before it.
    ("Employees get 30 days [1][1] [1].", "Employees get 30 days [1].", True),
    ("Employees get 30 days [1, 1] of vacation [1].", "Employees get 30 days [1] of vacation [1].", True),
    # Sentences that no passage can support.
    ("I found nothing about this in the sources. [1]", "I found nothing about this in the sources.", False),
    ("I found nothing about this in the sources [1].", "I found nothing about this in the sources.", False),
    ("\n \nEmployees get 30 days [1].", "Employees get 30 days [1].", True),
]
WRITTEN = [*CHANGED, *((text, text, grounded) for grounded, texts in UNCHANGED.items() for text in texts)]


def write(pieces: list[str]) -> tuple[WrittenAnswer, list[str | Citation]]:
    answer = WrittenAnswer(QUESTION, PASSAGES)
    fed = [each for piece in pieces for each in answer.feed(piece)]
    return answer, [*fed, *answer.finish()]


@pytest.mark.parametrize(("written", "kept", "is_grounded"), WRITTEN)
def test_marks_are_checked_against_the_passages_and_become_citations(
    written: str, kept: str, is_grounded: bool
) -> None:
    answer, pieces = write([written])
    assert (answer.text, citations.is_grounded(answer)) == (kept, is_grounded)
    for mark, citation in pairwise(pieces):
        if isinstance(citation, Citation):
            assert str(mark).strip() == f"[{citation.number}]"
            assert answer.text[citation.index :].startswith(f"[{citation.number}]")
            assert quote_of(PASSAGES[citation.passage], citation.span) in PASSAGES[citation.passage].text


@pytest.mark.parametrize(("written", "kept", "is_grounded"), WRITTEN)
def test_the_result_does_not_depend_on_how_the_answer_is_cut_into_pieces(
    written: str, kept: str, is_grounded: bool
) -> None:
    cuts = random.Random(written)
    for _ in range(5):
        places = sorted(cuts.choices(range(len(written) + 1), k=8))
        sent = [written[start:end] for start, end in zip([0, *places], [*places, len(written)], strict=True)]
        answer, pieces = write(sent)
        assert (answer.text, citations.is_grounded(answer)) == (kept, is_grounded), sent
        assert "".join(piece for piece in pieces if isinstance(piece, str)) == kept, sent


@pytest.mark.parametrize(
    ("written", "quote"),
    [
        ("Requests go to a manager [1].", "Requests go to the manager."),
        ("They “get 30 days of vacation” [1].", "get 30 days of vacation"),
    ],
)
def test_a_mark_cites_its_sentence_and_a_quotation_exactly_its_words(written: str, quote: str) -> None:
    answer, _ = write([written])
    assert [quote_of(PASSAGES[0], each.span) for each in answer.citations] == [quote]


def test_text_is_passed_on_as_soon_as_it_can_not_become_a_mark() -> None:
    answer = WrittenAnswer(QUESTION, PASSAGES)
    pieces = [answer.feed(piece) for piece in ("Employees get ", "30 days [", "12 or so] a year")]
    assert pieces == [["Employees get"], [" 30 days"], [" [12 or so] a year"]]


def test_random_answers_cite_only_the_given_passages() -> None:
    marks = ["[1]", "[2]", "[3]", "[", "]", "1", ", ", " ", ". ", "“", "”", '"', "\n"]
    parts = [*marks, "full-time employees get", "30 days"]
    chance = random.Random(1)
    for _ in range(1000):
        answer, _ = write(chance.choices(parts, k=12))
        for citation in answer.citations:
            assert answer.text[citation.index :].startswith(f"[{citation.number}]")
            assert 0 <= citation.span.start < citation.span.end <= len(PASSAGES[citation.passage].text)
        assert answer.citations or not citations.is_grounded(answer)


def test_the_processor_time_grows_linearly_with_the_answer() -> None:
    marks = ["Employees get 30 days [1]. ", "get 30 days [1] [2] ", "a [1] ", "“employees get 30 days” [1] "]
    marks.append("Wer “bekommt frei” [2], 30 [1]? ")
    loops = ["[1]", "[1]\n", "[9]", "[1, 9]", "«", "„", "“", "‘", "‘ ", '"']  # noqa: RUF001
    endless = ["(", "days, ", "15 days vacation, ", "not; ", "the garage opens, but not "]
    #: Parts to repeat, the length of the text, the time limit in seconds, and how many marks may be kept.
    for parts, size, limit_s, most in [(marks, 0, 3, MOST_MARKS), (loops, 49_000, 2, 2), (endless, 49_000, 8, 1)]:
        for part in parts:
            with cpu_limit_s(limit_s):
                answer, _ = write(["Employees get 30 days ", part * (size // len(part) or 2_500), " [1]."])
                assert answer.text and citations.is_grounded(answer) in (True, False)
                assert len(answer.citations) <= most, part
            assert parts is not marks or len(answer.citations) == most, part


def test_a_megabyte_is_checked_quickly_whole_or_in_small_pieces() -> None:
    text = "Employees get 30 days of vacation. " * 30_000
    with cpu_limit_s(5):
        for pieces in ([text], [text[at : at + 50] for at in range(0, len(text), 50)]):
            answer, _ = write(pieces)
            assert len(answer.text) > 1_000_000


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


@pytest.mark.parametrize("case", ENOUGH + TOO_LITTLE)
def test_a_passage_supports_an_answer_by_coverage_words_and_similarity(case: Any) -> None:
    assert is_support(*case) is (case in ENOUGH)


def test_a_single_sentence_counts_by_its_trust() -> None:
    """The coverage is 0.4, which is 0.3 too little. With a trust of 0.5, it counts as much as the sentence."""
    cases = {(0.16, 1.0): True, (0.14, 1.0): False, (0.46, 0.5): True, (0.44, 0.5): False, (1, 0): False}
    for (share, trust), enough in cases.items():
        # The more a single sentence counts, the lower the similarity of its passage may be.
        not_far = 0.25 - 0.15 * trust
        found = [is_support(0.4, 1, cosine, share, trust) for cosine in (None, not_far + 0.01, not_far - 0.01)]
        assert found == [enough, enough, False], (share, trust)
