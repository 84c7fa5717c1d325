"""Each benchmark runs as small as can be and prints one JSON line, whose figures then mean nothing."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.acceptance.forks import ROOT
from tests.bench.bench_answers import Question, QuestionSet, read_sets
from tests.bench.corpora import Collection
from tests.bench.fit_chances import example_of, fit
from tests.embed.models import write_model

RunMain = Callable[..., str]

SMALL_RUNS = {
    "bench_answers sixteenth": "set right wrong shown absent",
    "bench_calls": "act side daemon_files daemon_calls",
    "bench_claims": "sentences count share",
    "bench_embedding --documents 2 --size-bytes 2000 --model TINY": "per_second processor_ms",
    "bench_folders --files 3 --size-bytes 300 --commands upload --limits without": "ready_s processor_ms tree_mb",
    "bench_mixed --documents 4": "ready_s processor_ms",
    "bench_ready --files 3 --passages 150 --seconds 0.2": "meanwhile use count p50_ms",
    "bench_search --passages 200 --queries 3 --clients 2 --commands 1 --idle-seconds 0.2": "what passages",
    "bench_starts --rounds 1": "start wall_ms cpu_ms",
    "bench_sync --files 4 --moved 1 --rounds 1": "run wall_s",
    "bench_uploads --seconds 0.1 --clients 2 --batches 1 --files 3": "way accepted_ms ready_ms per_second",
}
#: What takes seconds: run with `--large`, and otherwise only shown to be a program.
LONG = (
    "bench_answers",
    "bench_calls",
    "bench_embedding",
    "bench_folders",
    "bench_mixed",
    "bench_ready",
    "bench_search",
    "bench_starts",
    "bench_sync",
    "bench_uploads",
)
DOCUMENTS = {"d1": "The cobalt rule grants ninety days.", "d2": "The umber plan costs five crowns.", "d3": "Ferries."}
QUERIES = {"q1": "cobalt rule", "q2": "umber plan crowns", "q3": "cobalt"}


@pytest.fixture
def run_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunMain:
    """Run the program of one of this folder's modules in this process; what it prints."""

    def run(name: str, *words: object) -> str:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        importlib.import_module(f"tests.bench.{name}").main()
        return capsys.readouterr().out

    return run


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, entries in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        lines = [json.dumps({"_id": entry, "title": "", "text": text}) for entry, text in entries.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    # What was asked first is found, the third expects what no search would find, and nobody judged the second.
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq3\td3\t1\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("line", SMALL_RUNS, ids=lambda line: line.split()[0])
def test_a_benchmark_prints_one_json_line(line: str, tmp_path: Path, run_main: RunMain, large: bool) -> None:
    name, *words = line.split()
    if name in LONG and not large:
        with pytest.raises(SystemExit, match="0"):
            run_main(name, "--help")
        return
    words = [str(write_model(tmp_path / "tiny")) if word == "TINY" else word for word in words]
    printed: dict[str, Any] = json.loads(run_main(name, *words, "--json"))
    assert printed.keys() == {"benchmark", "parameters", "rows", "machine"}
    assert set(SMALL_RUNS[line].split()) <= {column for row in printed["rows"] for column in row}
    assert printed["machine"]["cores"] >= 1


def test_recall_is_the_share_of_the_words_of_a_plain_reference(tmp_path: Path, run_main: RunMain) -> None:
    hidden = "<script>var unseen;</script>"
    (tmp_path / "whole.html").write_text(
        f"<title>x</title><body><p>Ferries leave at six.</p>{hidden}", encoding="utf-8"
    )
    with ZipFile(tmp_path / "damaged.epub", "w") as book:
        book.writestr("chapter.xhtml", "<p>Nothing names this chapter.</p>")
    rows = json.loads(run_main("bench_recall", tmp_path, "--worst", 1, "--json"))["rows"]
    shares = {row["kind"]: (row["share"], row.get("misread")) for row in rows}
    assert shares == {"epub": (0.0, 1), "html": (1.0, 0), str(tmp_path / "damaged.epub"): (0.0, None)}


def test_relevance_is_the_mean_of_the_judged_queries(collection: Path, run_main: RunMain) -> None:
    plain, found = json.loads(run_main("bench_relevance", collection, "--json"))["rows"]
    for row in (plain, found):
        assert (row["collection"], row["documents"], row["ndcg_at_10"], row["even"], row["odd"]) == (
            "tiny",
            3,
            0.5,
            1.0,
            0.0,
        )


@pytest.mark.parametrize("asked", read_sets(), ids=lambda asked: asked.name)
def test_documents_of_a_question_set_have_its_answers(asked: QuestionSet) -> None:
    texts = {each.id: each.text for each in asked.documents}
    there = [each for each in asked.questions if each.answers]
    assert len(there) == 200
    assert [each for each in there if not each.is_answered_by(texts[each.document], each.document)] == []


def test_weights_are_fitted_to_what_answers_and_to_silence() -> None:
    asked, absent = Question("How long is it?", ["9 m"], "lamp.txt"), Question("How old is it?")
    features = {"a": {"lacked": 1.0}, "b": {"measured": 1.0}}
    candidates = [{"shown": f"{name} 9 m", "document": f"{name}.txt", "features": features[name]} for name in "ab"]
    candidates[1]["document"] = "lamp.txt"
    line = {"candidates": candidates, "silence": {"always": 1.0}}
    names = ["lacked", "measured", "always"]
    examples = [example_of(question, line, names, 1.0) for question in (asked, asked, absent)]
    lacked, measured, always = fit(examples)
    assert lacked < 0 < measured
    assert measured > always > lacked


def test_what_is_named_comes_first(tmp_path: Path, run_main: RunMain) -> None:
    for number, title in ((7, "Ferries"), (70, "Lamps of brass")):
        path = tmp_path / f"note-{number:04}.rst"
        path.write_text(f"Note: {number}\nTitle: {title}\n\nAs note 7 and note 70 say.\n", encoding="utf-8")
    rows = json.loads(run_main("bench_names", tmp_path, "--json"))["rows"]
    assert {row["asked"]: (row["queries"], row["first"]) for row in rows} == {
        "exact title": (2, 1.0),
        "name and number": (2, 1.0),
        "asked about": (2, 1.0),
    }


def test_grounding_separates_questions_on_the_subject_from_others(collection: Path, run_main: RunMain) -> None:
    printed = run_main("bench_grounding", collection, "--off", collection, "--questions", 2, "--json")
    shares = {row["questions"]: (row["count"], row["grounded"]) for row in json.loads(printed)["rows"]}
    assert shares == {"on": (2, 1.0), "off": (2, 1.0), "everyday": (2, 0.0)}


def test_first_questions_count_answers_and_what_they_quote(tmp_path: Path, run_main: RunMain) -> None:
    for name, text in (("lamps", "The lamp is turquoise. It is made of brass."), ("ferries", "Ferries leave at six.")):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "docs" / "only.txt").write_text(text, encoding="utf-8")
    lamps = {"on": [{"q": "Is the lamp turquoise?", "answer": "turquoise"}], "off": ["Which ferries leave at six?"]}
    # The answer is elsewhere than the questions have it, and what is off the subject is on it.
    ferries = {"on": [{"q": "When do ferries leave?", "answer": "at seven"}], "off": ["What leaves at six?"]}
    for name, asked in (("lamps", lamps), ("ferries", ferries)):
        (tmp_path / name / "questions.json").write_text(json.dumps(asked), encoding="utf-8")
    on, off = json.loads(run_main("bench_grounding", tmp_path, "--json"))["rows"]
    assert (on["teams"], on["questions"], on["count"], on["grounded"], on["right"]) == (2, "on", 2, 1.0, 0.5)
    assert (off["teams"], off["questions"], off["count"], off["grounded"]) == (2, "off", 2, 0.5)


SQUAD_QUESTIONS = [{"id": "x", "question": "what is Quay"}, {"id": "y", "question": "None?", "is_impossible": True}]
QUESTION_SETS = {
    "set.tsv": "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    + "\n".join(
        f"Q{title}\twhat is {title}\tD{title}\t{title}\tS0\t{title} .\t1" for title in ("Umber", "Cobalt", "Quay")
    ),
    "set.json": json.dumps(
        {
            "data": [
                {
                    "title": title,
                    "paragraphs": [{"context": f"{title} .", "qas": SQUAD_QUESTIONS if title == "Quay" else []}],
                }
                for title in ("Cobalt", "Umber", "Quay")
            ]
        }
    ),
}


@pytest.mark.parametrize("file", QUESTION_SETS)
def test_halves_of_a_question_set_share_no_article(file: str, tmp_path: Path, run_main: RunMain) -> None:
    (tmp_path / file).write_text(QUESTION_SETS[file], encoding="utf-8")
    run_main("corpora", tmp_path, tmp_path / file)
    first, second = (Collection(tmp_path / f"set-{half}") for half in "ab")
    assert [entry.title for entry in first.documents] == ["Cobalt", "Umber"]
    assert [(entry.title, entry.text) for entry in second.documents] == [("Quay", "Quay .")]
    assert [query.text for query in second.queries] == ["what is Quay"]


def test_every_question_about_the_docs_names_one_of_them(tmp_path: Path, run_main: RunMain) -> None:
    run_main("corpora", tmp_path)
    docs, others = Collection(tmp_path / "docs"), Collection(tmp_path / "docs-others")
    lines = (ROOT / "tests" / "bench" / "docs_questions.txt").read_text(encoding="utf-8").splitlines()
    assert len(docs.queries) == len(lines) >= 100
    assert len(others.queries) >= 100


@pytest.mark.parametrize("bench", ["bench_relevance", "bench_grounding"])
def test_a_missing_collection_is_reported(
    bench: str, tmp_path: Path, run_main: RunMain, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run_main(bench, tmp_path)
    assert "is no collection: it has no corpus.jsonl, queries.jsonl, qrels.tsv." in capsys.readouterr().err
