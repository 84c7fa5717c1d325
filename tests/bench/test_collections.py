"""The benchmarks on retrieval collections run on one as small as can be, and report what is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.forks import ROOT
from tests.bench.conftest import RunMain
from tests.bench.corpora import Collection

DOCUMENTS = {"d1": "The cobalt rule grants ninety days.", "d2": "The umber plan costs five crowns.", "d3": "Ferries."}
QUERIES = {"q1": "cobalt rule", "q2": "umber plan crowns", "q3": "cobalt"}


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


def test_relevance_is_the_mean_of_the_judged_queries(collection: Path, run_main: RunMain) -> None:
    line = json.loads(run_main("bench_relevance", collection))
    assert line["parameters"] == {"collection": "tiny", "documents": 3, "queries": 2, "judgments": 2}
    for found in (line["plain_bm25"], line["whole"]["keyword"], line["chunks"]["keyword"]):
        assert (found["ndcg_at_10"], found["even"], found["odd"]) == (0.5, 1.0, 0.0)


def test_grounding_separates_questions_on_the_subject_from_others(collection: Path, run_main: RunMain) -> None:
    line = json.loads(run_main("bench_grounding", collection, "--off", collection, "--questions", 2))
    assert line["on"] == {"questions": 2, "grounded": 1.0}
    assert (line["off_other_collections"]["grounded"], line["off_everyday"]["grounded"]) == (1.0, 0.0)
    assert line["off"] == {"questions": 4, "grounded": 0.5}


def test_first_questions_count_answers_and_what_they_quote(tmp_path: Path, run_main: RunMain) -> None:
    for name, text in (("lamps", "The lamp is turquoise. It is made of brass."), ("ferries", "Ferries leave at six.")):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "docs" / "only.txt").write_text(text, encoding="utf-8")
    lamps = {"on": [{"q": "Is the lamp turquoise?", "answer": "turquoise"}], "off": ["Which ferries leave at six?"]}
    # The answer is elsewhere than the questions have it, and what is off the subject is on it.
    ferries = {"on": [{"q": "When do ferries leave?", "answer": "at seven"}], "off": ["Which ferries leave at six?"]}
    for name, asked in (("lamps", lamps), ("ferries", ferries)):
        (tmp_path / name / "questions.json").write_text(json.dumps(asked), encoding="utf-8")
    line = json.loads(run_main("bench_first_questions", tmp_path))
    assert line["parameters"]["collections"] == 2
    assert line["on"] == {"questions": 2, "grounded": 1.0}
    assert line["off"] == {"questions": 2, "grounded": 0.5}
    assert line["quotes"] == {"answers": 2, "right": 0.5}


def test_halves_of_a_question_set_share_no_article(tmp_path: Path, run_main: RunMain) -> None:
    head = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    rows = [f"Q{title}\twhat is {title}\tD{title}\t{title}\tS0\t{title} .\t1" for title in ("Umber", "Cobalt", "Quay")]
    (tmp_path / "set.tsv").write_text(head + "\n".join(rows), encoding="utf-8")
    asked = [{"id": "x", "question": "what is Quay"}, {"id": "y", "question": "None?", "is_impossible": True}]
    articles: list[dict[str, Any]] = [
        {"title": title, "paragraphs": [{"context": f"{title} .", "qas": []}]} for title in ("Cobalt", "Umber")
    ]
    articles.append({"title": "Quay", "paragraphs": [{"context": "Quay .", "qas": asked}]})
    (tmp_path / "other.json").write_text(json.dumps({"data": articles}), encoding="utf-8")
    for file in ("set.tsv", "other.json"):
        run_main("halves", tmp_path / file, tmp_path)
        first, second = (Collection(tmp_path / f"{file.split('.')[0]}-{half}") for half in "ab")
        assert [entry.title for entry in first.documents] == ["Cobalt", "Umber"], file
        assert [(entry.title, entry.text) for entry in second.documents] == [("Quay", "Quay .")], file
        assert [query.text for query in second.queries] == ["what is Quay"], file


def test_every_question_about_the_docs_names_one_of_them(tmp_path: Path, run_main: RunMain) -> None:
    run_main("own_docs", tmp_path)
    docs, others = Collection(tmp_path / "docs"), Collection(tmp_path / "docs-others")
    lines = (ROOT / "tests" / "bench" / "docs_questions.txt").read_text(encoding="utf-8").splitlines()
    assert len(docs.queries) == len(lines) >= 100
    assert len(others.queries) >= 100


def test_a_missing_collection_is_reported(
    tmp_path: Path, run_main: RunMain, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = "is no collection: it has no corpus.jsonl, queries.jsonl, qrels.tsv."
    for bench, words, error in (
        ("bench_relevance", [tmp_path], missing),
        ("bench_grounding", [tmp_path], missing),
        ("bench_relevance", [], "they don't come with the project"),
        ("bench_first_questions", [tmp_path], "has no collections: no folder in it has questions.json."),
    ):
        with pytest.raises(SystemExit, match="2"):
            run_main(bench, *words)
        assert error in capsys.readouterr().err, bench
