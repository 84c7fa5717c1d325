"""Tests where sentences begin and end in extracted text, and what is code."""

import pytest

from svc_daemon.core.text.sentences import CODE, FRAGMENT, LONGEST, ROW, Span, cost_of, fences_of, sentences_of
from tests.limits import cpu_limit_s

CASES = [
    *(("", []), ("\n \n- \n", []), ("One.", ["One."]), ("No full stop", ["No full stop"])),
    ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    ("All … of it ... stays. And more… Yes.", ["All … of it ... stays.", "And more…", "Yes."]),
    ("Wait... what?! Yes.", ["Wait...", "what?!", "Yes."]),
    ('He said "No." She left.', ['He said "No."', "She left."]),
    ("A line\nthat goes on. And on.", ["A line\nthat goes on.", "And on."]),
    # A short line without a full stop, such as a heading in a PDF.
    (
        "Vacation\nEveryone here has thirty days of it in a year.",
        ["Vacation", "Everyone here has thirty days of it in a year."],
    ),
    ("A few words\n30 of them, on two lines.", ["A few words\n30 of them, on two lines."]),
    *(("First part\n\nSecond part", ["First part", "Second part"]), ("# Heading\n\n> quoted", ["Heading", "quoted"])),
    ("- one\n* two\n+ three\n1. four\n2) five", ["one", "two", "three", "four", "five"]),
    ("Name | Days\nFull-time | 30\nPart-time | 15", ["Name | Days", "Full-time | 30", "Part-time | 15"]),
    ("| a | b |\n| c | d |", ["a | b", "c | d"]),
    ("See Dr. Smith, e.g. on Jan. 5. Then go.", ["See Dr. Smith, e.g. on Jan. 5.", "Then go."]),
    ("See No. 4. The answer is no. Go.", ["See No. 4.", "The answer is no.", "Go."]),
    ("J. Smith came. It was 1980. Then 3.5 days.", ["J. Smith came.", "It was 1980.", "Then 3.5 days."]),
    ("One.[3] Two. [4] Three.", ["One.[3]", "Two. [4]", "Three."]),
    # A sign, an option, a pattern and a comparison are no markers of lists and quotations.
    ("-18 °C is cold.\n\n+3 °C is not.", ["-18 °C is cold.", "+3 °C is not."]),
    ("All food must always be kept at\n-18 °C or less.", ["All food must always be kept at\n-18 °C or less."]),
    (
        "-k, --insecure\n\n--prune deletes.\n\n*.txt is ignored.",
        ["-k, --insecure", "--prune deletes.", "*.txt is ignored."],
    ),
    (
        "This is what scripts turn off again by\n-k or --fail alone.",
        ["This is what scripts turn off again by\n-k or --fail alone."],
    ),
    (">= 3.8 is needed.\n\n> It is.", [">= 3.8 is needed.", "It is."]),
    ("-milk\n-eggs\n- - tea\n---\nend", ["-milk", "-eggs", "tea", "end"]),
    # The day of a date.
    ("28. Februar 2024: Abgabe. Bis zum 1. Mai ist zu.", ["28. Februar 2024: Abgabe.", "Bis zum 1. Mai ist zu."]),
    (
        "Belege bis 31.05. einreichen. Es waren 12. Das ist viel.",
        ["Belege bis 31.05. einreichen.", "Es waren 12.", "Das ist viel."],
    ),
    (
        "Der 2. Stock ist zu. It costs 5. The rest is free.",
        ["Der 2. Stock ist zu.", "It costs 5.", "The rest is free."],
    ),
    (
        "Bis 15.04.2026 zahlen, zzgl. Versand. Das sind 2 Mio. Euro.",
        ["Bis 15.04.2026 zahlen, zzgl. Versand.", "Das sind 2 Mio. Euro."],
    ),
    ("日本語です。次の文。", ["日本語です。", "次の文。"]),
]


@pytest.mark.parametrize(("text", "sentences"), CASES)
def test_a_text_is_split_into_sentences(text: str, sentences: list[str]) -> None:
    assert [text[span.start : span.end] for span in sentences_of(text)] == sentences


def test_a_very_long_sentence_is_cut_at_spaces() -> None:
    text = "word " * 300
    pieces = [text[span.start : span.end] for span in sentences_of(text)]
    assert (max(map(len, pieces)) <= LONGEST, " ".join(pieces)) == (True, text.strip())
    assert [span.end - span.start for span in sentences_of("x" * 1000)] == [400, 400, 200]
    # It is not cut if the limit is longer.
    assert [tuple(span) for span in sentences_of(text, len(text))] == [(0, len(text) - 1)]


@pytest.mark.parametrize("piece", ["a", ".", "\n", " ", "- ", "[", "1. ", ". [1]", '."".', "a\n", "# "])
def test_the_processor_time_grows_linearly_with_the_text(piece: str) -> None:
    with cpu_limit_s(5):
        sentences_of(piece * 30_000)


COSTS: dict[float, list[str]] = {
    0: [
        *("The garage opens at seven.", "Set `SVC_LIMIT_X_Y=3; --force {a}` before it starts."),
        *("A sentence of seven words without end", "Bezahlt wird am Monatsende."),
    ],
    ROW: ["Oslo | 8-16"],
    FRAGMENT: ["Opening hours"],
    CODE: [
        *("rows = {name: size for name in names if size >= 3};", "Contents .......... 4", "Page 3 of 12"),
        *('curl -H "Authorization: $KEY" --json \'{"a": 1}\' $URL/v1/x', "© 2024 Harbour Ltd. All rights reserved."),
    ],
}


@pytest.mark.parametrize(("text", "cost"), [(text, cost) for cost, texts in COSTS.items() for text in texts])
def test_rows_fragments_and_code_get_their_costs(text: str, cost: float) -> None:
    assert cost_of(text, Span(0, len(text)), []) == cost


def test_text_between_fences_is_code() -> None:
    text = "Do this.\n\n```sh\nThe garage opens at seven.\n```\n\nThen go home."
    fences = fences_of(text)
    inside = text.index("The garage")
    assert cost_of(text, Span(inside, inside + 26), fences) == CODE
    assert cost_of(text, Span(text.index("Then"), len(text)), fences) == 0
    assert [text[fence.end - 3 : fence.end] for fence in fences] == ["```"]
