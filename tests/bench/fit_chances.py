"""Fits the weights of `svc_daemon.core.answers.chances` to the questions of `question_sets` and of `near_twins`.

    python -m tests.bench.fit_chances

As in a logistic regression, the weights raise the chance of what answers each question: of the statements that have the
answer, or of silence, if none has. A question of `near_twins` counts a quarter. First come rates, as in
`bench_answers`, of the questions that name something or have near-twins: each set of people's is tried on weights that
are fitted to all others. Then come the weights that are fitted to all. Needs numpy, as the extra `semantic` has it.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

from svc_daemon.core.answers.chances import SHARPNESS
from svc_daemon.core.answers.extractive_answers import SURE
from tests.acceptance.forks import ROOT
from tests.bench.bench_answers import Question, QuestionSet, ask_all, read_sets
from tests.bench.corpora import Entry, fill
from tests.bench.harness import Row, Side, make_parser, pythons, report
from tests.bench.near_twins import make_sets
from tests.conftest import UNLIMITED

Vector = np.ndarray[Any, np.dtype[np.float64]]
#: What a question of near-twins counts.
TWINS_SHARE = 0.25
#: How strongly the weights are drawn to 0; how often they are moved, and how far at first.
RIDGE, STEPS, STEP = 0.5, 500, 0.1
#: The chances from which on a statement is quoted, in the rates.
LIMITS = (0.8, SURE, 0.97)


class Example(NamedTuple):
    """A question, with a row of features for each statement that may answer, and a last one for silence."""

    question: Question
    rows: Vector
    #: Whether each row is one whose chance should be raised.
    is_good: Vector
    shown: Sequence[str]
    share: float


def main() -> None:
    options = make_parser(__doc__, base=None).parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder or None) as root:
        twins = [_read_twins(each) for each in make_sets(Path(root) / "twins")]
        people = read_sets()
        recorded = {each.name: list(_record(each, Path(root) / each.name)) for each in (*people, *twins)}
    names = sorted({name for lines in recorded.values() for _, line in lines for name in _features_of(line)})
    shares = {each.name: TWINS_SHARE for each in twins}
    examples = {
        name: [example_of(question, line, names, shares.get(name, 1.0)) for question, line in lines]
        for name, lines in recorded.items()
    }
    tried: list[tuple[float, str]] = []
    for left in people:
        weights = fit([each for name, some in examples.items() if name != left.name for each in some])
        tried += [_try(each, weights) for each in examples[left.name]]
    fitted = zip(names, fit([each for some in examples.values() for each in some]), strict=True)
    rows: list[Row] = [{"limit": limit} | _rates(tried, limit, people) for limit in LIMITS]
    report("chances", options, [*rows, *({"feature": name, "weight": round(float(each), 2)} for name, each in fitted)])


def _read_twins(folder: Path) -> QuestionSet:
    content = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    docs = sorted((folder / "docs").iterdir())
    entries = [Entry(each.name, "", each.read_bytes().decode(errors="surrogateescape")) for each in docs]
    on = [Question(each["q"], [each["answer"]], each["source"]) for each in content["on"]]
    return QuestionSet(folder.parent.name, entries, on + [Question(each) for each in content["off"]])


def _record(asked: QuestionSet, root: Path) -> Iterator[tuple[Question, Row]]:
    """Yield what `recorded_answers` says of each question, with the names of its documents."""
    side = Side(root, asked.name, *pythons("").values(), **UNLIMITED)
    side.environ |= {"PYTHONPATH": str(ROOT), "BENCH_RECORD": str(root / "recorded")}
    side.runs = ("-m", "tests.bench.recorded_answers")
    side.start()
    try:
        with side.client() as client:
            client.timeout = httpx.Timeout(60)
            names = fill(client, asked.documents)
            list(ask_all(client, asked.questions))
    finally:
        side.clear()
    # What is before the passages may be read for a second try, which counts.
    lines = map(json.loads, (root / "recorded").read_text(encoding="utf-8").splitlines())
    found = {line["question"]: line for line in lines}
    for question in asked.questions:
        if line := found.get(question.text.lower()):
            for each in line["candidates"]:
                each["document"] = names[each["document"]]
            yield question, line


def _features_of(line: Row) -> Iterator[str]:
    yield from line["silence"]
    for each in line["candidates"]:
        yield from each["features"]


def example_of(question: Question, line: Row, names: Sequence[str], share: float) -> Example:
    """The features with these names of what `recorded_answers` wrote."""
    features = [*(each["features"] for each in line["candidates"]), line["silence"]]
    good = [question.is_answered_by(each["shown"], each["document"]) for each in line["candidates"]]
    rows = np.array([[each.get(name, 0.0) for name in names] for each in features])
    shown = [each["shown"].lower() for each in line["candidates"]]
    return Example(question, rows, np.array([*good, not any(good)], float), shown, share)


def fit(examples: Sequence[Example]) -> Vector:
    """The weights, found step by step along the gradient (Adam, with all examples at each step)."""
    rows = np.concatenate([each.rows for each in examples])
    good = np.concatenate([each.is_good for each in examples])
    share = np.concatenate([np.full(len(each.rows), each.share) for each in examples])
    starts = np.cumsum([0, *(len(each.rows) for each in examples)])[:-1]
    sizes = [len(each.rows) for each in examples]
    weights, mean, square = (np.zeros(rows.shape[1]) for _ in range(3))
    for step in range(1, STEPS + 1):
        powers = np.exp(np.clip(rows @ weights, -30, 30))
        chances = powers / np.repeat(np.add.reduceat(powers, starts), sizes)
        right = np.repeat(np.add.reduceat(chances * good, starts), sizes)
        gradient = rows.T @ (share * (chances - chances * good / right)) + 2 * RIDGE * weights
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        weights = weights - STEP / step**0.5 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def _try(example: Example, weights: Vector) -> tuple[float, str]:
    """The chance of the likeliest statement, those that show the same being one, and what quoting it would be."""
    scores = SHARPNESS * (example.rows @ weights)
    powers = np.exp(scores - scores.max())
    chances: dict[str, float] = {}
    for shown, chance in zip(example.shown, powers[:-1] / powers.sum(), strict=True):
        chances[shown] = chances.get(shown, 0.0) + float(chance)
    best = max(chances, key=chances.__getitem__, default="")
    is_right = any(good and shown == best for shown, good in zip(example.shown, example.is_good[:-1], strict=True))
    outcome = "absent" if not example.question.answers else "right" if is_right else "wrong"
    return chances.get(best, 0.0), outcome


def _rates(tried: Sequence[tuple[float, str]], limit: float, people: Sequence[QuestionSet]) -> Row:
    quoted = [outcome for chance, outcome in tried if chance >= limit]
    there = sum(bool(question.answers) for each in people for question in each.questions)
    absent = sum(not question.answers for each in people for question in each.questions)
    counts = {"right": there, "wrong": there, "absent": absent}
    return {name: round(quoted.count(name) / count, 4) for name, count in counts.items()}


if __name__ == "__main__":
    main()
