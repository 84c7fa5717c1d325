"""Queries and their expectations, read or refused; which passage is what was expected, and the scores of ranks."""

from pathlib import Path
from typing import Any

import pytest

from svc_cli.errors import PathMissing, UsageError
from svc_cli.evals.evaluations import ndcg, score_ranks
from svc_cli.evals.golden import Expectation, GoldenQuery, read_golden

WHOLE = """
queries:
  - query: How many days of vacation?
    source: handbook.md
    heading: Vacation
    text: "30"
  - query: What does it cost?
    name: price
    expect:
      - {source: pricing.md, text: per month}
      - terms.pdf
    tags: [public]
    filters: {type: eq, key: lang, value: en}
"""
VACATION = Expectation(source="handbook.md", heading="Vacation", text="30")
PRICES = (Expectation(source="pricing.md", text="per month"), Expectation(source="terms.pdf"))
QUESTION = "How many days of vacation?"
FILTERS = {"type": "eq", "key": "lang", "value": "en"}
EXPECTED = [
    GoldenQuery(query=QUESTION, name=QUESTION, expected=(VACATION,)),
    GoldenQuery(query="What does it cost?", name="price", expected=PRICES, tags=("public",), filters=FILTERS),
]
#: The text of a file, and the start of the error; it begins with the file's name.
REFUSED = [
    ("", "golden.yaml: it must hold a list of queries."),
    ("queries: []", "golden.yaml: it must hold a list of queries."),
    ("question: x", "golden.yaml: there is no field 'question'; it may hold queries."),
    ("- How much?", "golden.yaml, query 1: it must be a mapping with `query` and what is expected, not 'How much?'."),
    ("- source: a.md", "golden.yaml, query 1, line 1: query is missing."),
    ("- query: ' '\n  text: x", "golden.yaml, query 1, line 1: query is empty."),
    ("- query: x", "golden.yaml, query 1, line 1: nothing is expected; give source, heading or text, or list several"),
    ("- query: x\n  expect: a.md", "golden.yaml, query 1, line 1: nothing is expected; give source"),
    ("- query: x\n  expect: [{}]", "golden.yaml, query 1, line 2: nothing is expected; give source, heading or text."),
    ("- query: x\n  expect: [3]", "golden.yaml, query 1, line 1: what is expected must be a mapping or the name of a"),
    ("- query: x\n  source: a\n  expect: [b]", "golden.yaml, query 1, line 1: source, heading and text belong inside"),
    ("- query: x\n  text: 30", "golden.yaml, query 1, line 1: text must be text, not 30; put it in quotes."),
    ("- query: no\n  text: x", "golden.yaml, query 1, line 1: query must be text, not False; put it in quotes."),
    ("- query: x\n  expect:\n  - headline: x", "golden.yaml, query 1, line 3: there is no field 'headline'; it may"),
    ("- query: x\n  text: y\n  txet: y", "golden.yaml, query 1, line 1: there is no field 'txet'; it may hold query,"),
    ("- query: x\n  text: y\n  text: z", "golden.yaml, line 3: it is not YAML: the field 'text' is there twice."),
    ("- query: x\n  text: y\n  tags: public", "golden.yaml, query 1, line 1: tags must be a list of strings, not"),
    (
        "- query: x\n  text: y\n  filters: {a: .inf}",
        "golden.yaml, query 1, line 1: filters has a value that",
    ),
    (
        "- query: x\n  text: y\n  filters: {a: 2020-01-01}",
        "golden.yaml, query 1, line 1: filters has a value that",
    ),
    ("- query: x\n  text: y\n  filters: [a]", "golden.yaml, query 1, line 1: filters must be a mapping, not ['a']."),
    ("- query: x\n  text: y\n- query: x\n  text: z", "golden.yaml: two queries are called 'x'; give one of them"),
    ("- query: 'x\n", "golden.yaml, line 2: it is not YAML: found unexpected end of stream."),
    ("a: b: c", "golden.yaml, line 1: it is not YAML: mapping values are not allowed here."),
    ("- !!python/object/apply:os.system [ls]", "golden.yaml, line 1: it is not YAML: could not determine a cons"),
    ("\x00", "golden.yaml: it is not YAML: unacceptable character"),
    ("? [a]\n: b", "golden.yaml, line 1: it is not YAML: a field has no plain name."),
    ("- query: x\n  text: 2026-99-99", "golden.yaml: it is not YAML: month must be in 1..12."),
    ("[" * 5000, "golden.yaml: it is nested deeper than 200 levels."),
    ("[" * 250 + "]" * 250, "golden.yaml: it is nested deeper than 200 levels."),
    ("[" * 5000, "golden.json: it is nested deeper than 200 levels."),
    # Each alias doubles the document, whose thirty lines have a billion values.
    (
        "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30)),
        "golden.yaml: it has more than",
    ),
    ('[{"query": "x",\n]', "golden.json, line 2: it is not JSON: Expecting property name"),
    ('[{"query": "x", "query": "y"}]', "golden.json: a field is there twice: 'query'."),
    ('[{"query": 3}]', "golden.json, query 1: query must be text, not 3"),
]


def write(folder: Path, text: str, name: str = "golden.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_form_of_a_query_is_read(tmp_path: Path) -> None:
    bare = "\n".join(line[2:] for line in WHOLE.splitlines()[2:])
    assert read_golden(write(tmp_path, WHOLE)) == read_golden(write(tmp_path, bare)) == EXPECTED
    text = '[{"query": "caf\\u00e9",\t"text": "\\ud83e\\udd8a", "tags": null}]'
    (read,) = read_golden(write(tmp_path, text, "golden.json"))
    assert read.query == "café"
    assert read.expected == (Expectation(text="\N{FOX FACE}"),)
    assert read.tags == ()


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_bad_file_is_refused_with_line_and_entry(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = message[: message.index(".") + 5]
    write(tmp_path, text, name)
    with pytest.raises(UsageError) as refused:
        read_golden(Path(name))
    assert refused.value.message[: len(message)] == message
    assert refused.value.exit == 2


def test_bytes_that_are_not_text_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    with pytest.raises(PathMissing, match="there is no such file"):
        read_golden(path)
    path.write_bytes(b"- query: \xff")
    with pytest.raises(UsageError, match="it is not UTF-8 text"):
        read_golden(path)


HIT: dict[str, Any] = {
    "source_id": "src_1",
    "title": "staff/handbook.md",
    "filename": "handbook.md",
    "text": "Full-time employees get\n30 days  of vacation.",
    "location": {"headings": ["Handbook", "Vacation and leave"]},
}
OTHER = {**HIT, "filename": "other.md", "title": "other.md", "source_id": "src_2", "location": {"headings": None}}
#: What is expected, and its rank among the hit, another one, and the hit again.
RANKS: list[tuple[dict[str, str], int | None]] = [
    ({"source": "src_1"}, 1),
    ({"source": "staff/handbook.md"}, 1),
    ({"source": "handbook.md"}, 1),
    ({"source": "src_2"}, 2),
    ({"source": "src_3"}, None),
    ({"source": "handbook"}, None),
    ({"source": "Handbook.md"}, None),
    ({"heading": "vacation  and LEAVE"}, 1),
    ({"heading": "Vacation"}, None),
    ({"source": "src_2", "heading": "Handbook"}, None),
    ({"text": "get 30 days of VACATION"}, 1),
    ({"text": "30 days of sick leave"}, None),
    ({"source": "handbook.md", "heading": "Handbook", "text": "30 days"}, 1),
    ({"source": "handbook.md", "heading": "Prices", "text": "30 days"}, None),
    ({"source": "pricing.md", "text": "30 days"}, None),
]


@pytest.mark.parametrize(("fields", "rank"), RANKS)
def test_the_rank_is_that_of_the_first_hit_that_meets_the_whole_expectation(
    fields: dict[str, str], rank: int | None
) -> None:
    assert Expectation(**fields).find_rank([HIT, OTHER, HIT]) == rank


#: Ranks of what was expected, k; recall, MRR, nDCG. log2(3) is 1.5850, so a hit at rank 2 gains 0.6309, at 3 0.5.
SCORED_RANKS: list[tuple[list[int | None], int, float, float, float]] = [
    ([None], 10, 0.0, 0.0, 0.0),
    ([1], 10, 1.0, 1.0, 1.0),
    ([2], 10, 1.0, 0.5, 0.6309),
    ([3], 10, 1.0, 1 / 3, 0.5),
    ([10], 10, 1.0, 0.1, 0.2891),
    ([3], 2, 0.0, 0.0, 0.0),
    ([11], 10, 0.0, 0.0, 0.0),
    # Two wanted, at 1 and 3: 1.5 of 1.6309.
    ([3, 1], 10, 1.0, 1.0, 0.9197),
    ([1, None], 10, 0.5, 1.0, 0.6131),
    ([2, 3], 10, 1.0, 0.5, 0.6934),
    # More wanted than there are places.
    ([1, 2, None, None], 2, 0.5, 1.0, 1.0),
    # One hit that is both is as good as it gets; with a third one missing, 2 of 2 + 0.6309.
    ([1, 1], 10, 1.0, 1.0, 1.0),
    ([1, 1, None], 10, 2 / 3, 1.0, 0.7602),
]


@pytest.mark.parametrize(("ranks", "k", "recall", "mrr", "gain"), SCORED_RANKS)
def test_ranks_have_their_scores(ranks: list[int | None], k: int, recall: float, mrr: float, gain: float) -> None:
    assert score_ranks(ranks, k) == pytest.approx({"recall": recall, "mrr": mrr, "ndcg": gain}, abs=5e-5)


@pytest.mark.parametrize(
    ("order", "ideal", "gain"),
    [
        ([], [], 0.0),
        ([0, 0], [], 0.0),
        # Relevances of more than one kind: 1 + 3 x 0.6309 of 3 + 0.6309.
        ([1, 3], [3, 1], 0.7967),
    ],
)
def test_relevance_by_grades_has_its_ndcg(order: list[int], ideal: list[int], gain: float) -> None:
    assert ndcg(order, ideal, 10) == pytest.approx(gain, abs=5e-5)
