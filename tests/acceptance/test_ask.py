"""`svc ask` and `svc cite verify` against a real daemon: pages named, quotes proven, and one byte changed told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation
from tests.acceptance.test_openai_client import ANSWER, PAGES, QUESTION, QUOTE
from tests.samples import make_pdf

NOTES = b"# Harbour\n\nThe boats leave at ten.\nThe tide is high at noon.\n"
OFF_TOPIC = "Which walrus won the chess tournament?"


@pytest.fixture(scope="module")
def pdf(shared_installation: Installation) -> str:
    """The id of a PDF whose third page has the answer."""
    with shared_installation.client() as http:
        make_bucket(http, "handbook")
        source_id = str(upload(http, "handbook", "handbook.pdf", make_pdf(PAGES)).json()["id"])
        notes = str(upload(http, "handbook", "notes.md", NOTES).json()["id"])
        assert all(wait_ended(http, each)["ready"] for each in (source_id, notes))
    return source_id


@pytest.fixture(scope="module")
def answer(shared_installation: Installation, pdf: str) -> dict[str, Any]:
    """What `svc ask --json` prints."""
    finished = shared_installation.svc("ask", QUESTION, "--json")
    assert finished.exit == 0
    return dict(finished.json)


def verify(installation: Installation, folder: Path, document: Any) -> tuple[int, list[str]]:
    """Exit code and results of `svc cite verify` on a document."""
    file = folder / "answer.json"
    file.write_text(json.dumps(document))
    finished = installation.svc("cite", "verify", str(file), "--json")
    return finished.exit, [item["result"] for item in finished.json["items"]]


def test_an_answer_names_page_3_and_quotes_it(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", QUESTION)
    assert finished.exit == 0
    assert finished.stdout == f"{ANSWER}\n\n[1] handbook.pdf, page 3  {pdf}\n    “{QUOTE}”\n"
    assert finished.stderr == ""


def test_a_text_names_the_line(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", "When is the tide high?", "--no-stream", "-b", "handbook")
    assert "[1] notes.md, line 4  src_" in finished.stdout


def test_where_nothing_is_found_it_says_so_and_strict_fails(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", OFF_TOPIC, "--strict")
    assert (finished.exit, finished.stdout) == (3, "I found nothing about this in the sources.\n")
    assert "warning: the answer rests on no source." in finished.stderr


def test_a_stream_of_json_ends_with_the_whole_answer(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", QUESTION, "--ndjson", "--agent", "default")
    *events, whole = [json.loads(line) for line in finished.stdout.splitlines()]
    assert events[0]["type"] == "response.created"
    assert events[-1]["response"] == whole
    assert whole["sources"][0]["location"]["page"] == 3


def test_what_the_search_has_to_say_is_told_on_stderr(shared_installation: Installation, pdf: str) -> None:
    with shared_installation.client() as http:
        make_bucket(http, "other")
    assert shared_installation.svc("agent", "create", "narrow", "-b", "handbook").exit == 0
    for stream in ("--stream", "--no-stream"):
        finished = shared_installation.svc(
            "ask", QUESTION, stream, "--agent", "narrow", "-b", "handbook", "-b", "other"
        )
        assert finished.stdout.startswith(ANSWER)
        assert finished.stderr == "warning: The agent does not search the bucket 'other'; it was left out.\n"


def test_errors_of_these_routes_have_their_exit_code(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", QUESTION, "--agent", "nobody", "--ndjson")
    assert finished.exit == 5
    assert finished.json["error"]["code"] == "agent_not_found"
    assert finished.json["request_id"].startswith("req_")


def test_a_quote_is_proven_on_the_stored_bytes(shared_installation: Installation, answer: dict[str, Any]) -> None:
    told = shared_installation.svc("cite", "verify", "-", stdin=json.dumps(answer))
    assert told.exit == 0
    assert "handbook.pdf  page 3  proven" in told.stdout
    assert told.stdout.endswith("1 of 1 quotes proven.\n")


def test_results_of_a_search_are_proven_too(shared_installation: Installation, pdf: str, tmp_path: Path) -> None:
    with shared_installation.client() as http:
        page = http.post("/v1/search", json={"query": "harbour boats"}).json()
    exit_code, results = verify(shared_installation, tmp_path, page)
    assert (exit_code, set(results)) == (0, {"proven"})
    assert len(results) > 1


def test_one_changed_byte_of_a_quote_is_told(
    shared_installation: Installation, answer: dict[str, Any], tmp_path: Path
) -> None:
    forged = json.loads(json.dumps(answer).replace("get 30 days", "get 31 days"))
    assert verify(shared_installation, tmp_path, forged) == (3, ["not_found"])


def test_one_changed_byte_of_the_stored_file_is_told(
    shared_installation: Installation, answer: dict[str, Any], pdf: str, tmp_path: Path
) -> None:
    (blob,) = shared_installation.files.blobs.glob(f"*{pdf}*")
    stored = blob.read_bytes()
    try:
        blob.write_bytes(stored.replace(b"%%EOF", b"%%EOG"))
        assert verify(shared_installation, tmp_path, answer) == (3, ["bytes_changed"])
    finally:
        blob.write_bytes(stored)


def test_a_file_that_is_no_answer_is_a_mistake_of_usage(shared_installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    finished = shared_installation.svc("cite", "verify", str(tmp_path / "x.json"), "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (2, "svc_usage")


def test_an_empty_service_says_how_to_begin(installation: Installation) -> None:
    for command in ("search", "ask"):
        finished = installation.svc(command, "walrus")
        assert finished.exit == 0
        assert "no bucket holds anything yet: `svc upload PATH -b BUCKET`" in finished.stderr
