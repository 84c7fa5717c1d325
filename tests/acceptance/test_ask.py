"""`svc ask` names pages and quotes of a real daemon's sources, and `svc cite verify` proves or disproves the quotes."""

import json
from typing import Any

import pytest

from tests.acceptance.calls import make_bucket, take_in
from tests.acceptance.installations import Installation
from tests.acceptance.test_openai_client import ANSWER, PAGES, QUESTION, QUOTE
from tests.samples import make_pdf

NOTES = b"# Harbour\n\nThe boats leave at ten.\nThe tide is high at noon.\n"


@pytest.fixture(scope="module")
def pdf(shared_installation: Installation) -> str:
    """The id of an uploaded PDF whose third page has the answer."""
    with shared_installation.client() as http:
        make_bucket(http, "other")
        take_in(http, "handbook", "notes.md", NOTES)
        return take_in(http, "handbook", "handbook.pdf", make_pdf(PAGES))


@pytest.fixture(scope="module")
def answer(shared_installation: Installation, pdf: str) -> dict[str, Any]:
    """The JSON answer of `svc ask`."""
    finished = shared_installation.svc("ask", QUESTION, "--json")
    assert finished.exit == 0
    return dict(finished.json)


def verify(installation: Installation, document: Any) -> tuple[int, set[str]]:
    """Run `svc cite verify` on a document and return the exit code and the results."""
    finished = installation.svc("cite", "verify", "-", "--json", stdin=json.dumps(document))
    return finished.exit, {item["result"] for item in finished.json["items"]}


def test_ask_prints_the_page_or_line_and_the_quote_of_each_source(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", QUESTION)
    quoted = f"{ANSWER}\n\n[1] handbook.pdf, page 3  {pdf}\n    “{QUOTE}”\n"
    assert (finished.exit, finished.stdout, finished.stderr) == (0, quoted, "")
    of_a_text = shared_installation.svc("ask", "When is the tide high?", "--no-stream", "-b", "handbook")
    assert "[1] notes.md, line 4  src_" in of_a_text.stdout


def test_ask_strict_says_that_nothing_was_found_and_exits_with_3(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", "Which walrus won the chess tournament?", "--strict")
    assert (finished.exit, finished.stdout) == (3, "I found nothing about this in the sources.\n")
    assert "warning: no source supports the answer." in finished.stderr


def test_ask_names_what_is_not_there_and_shows_the_nearest(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", "When do the boats leave from pier 12?", "--strict")
    assert (finished.exit, finished.stdout) == (3, "I found nothing about this in the sources.\n")
    nearest = "nothing about pier 12; the nearest is:\n  notes.md, line 3 > Harbour\n    “The boats leave at ten.”\n"
    assert nearest in finished.stderr


def test_ask_ndjson_ends_with_the_complete_answer_or_an_error(shared_installation: Installation, pdf: str) -> None:
    finished = shared_installation.svc("ask", QUESTION, "--ndjson", "--agent", "default")
    *events, whole = [json.loads(line) for line in finished.stdout.splitlines()]
    assert (events[0]["type"], events[-1]["response"]) == ("response.created", whole)
    assert whole["sources"][0]["location"]["page"] == 3
    refused = shared_installation.svc("ask", QUESTION, "--agent", "nobody", "--ndjson")
    assert refused.failure == (5, "agent_not_found")
    assert refused.json["request_id"].startswith("req_")


def test_ask_prints_search_warnings_to_stderr(shared_installation: Installation, pdf: str) -> None:
    assert shared_installation.svc("agent", "create", "narrow", "-b", "handbook").exit == 0
    words = ("--agent", "narrow", "-b", "handbook", "-b", "other")
    for stream in ("--stream", "--no-stream"):
        finished = shared_installation.svc("ask", QUESTION, stream, *words)
        assert finished.stdout.startswith(ANSWER)
        assert finished.stderr == "warning: The agent does not search the bucket 'other'; it was left out.\n"


def test_cite_verify_proves_quotes_of_answers_and_search_results(
    shared_installation: Installation, answer: dict[str, Any], pdf: str
) -> None:
    shown = shared_installation.svc("cite", "verify", "-", stdin=json.dumps(answer))
    assert (shown.exit, "handbook.pdf  page 3  proven" in shown.stdout) == (0, True)
    assert shown.stdout.endswith("1 of 1 quotes proven.\n")
    with shared_installation.client() as http:
        page = http.post("/v1/search", json={"query": "harbour boats"}).json()
    assert len(page["data"]) > 1
    assert verify(shared_installation, page) == (0, {"proven"})
    assert shared_installation.svc("cite", "verify", "-", "--json", stdin="{}").failure == (2, "svc_usage")
    lines = shared_installation.svc("cite", "verify", "-", stdin="{}\n{}\n")
    assert (lines.exit, "hint: `svc ask --json`" in lines.stderr) == (2, True)


@pytest.mark.folders
def test_cite_verify_detects_a_changed_byte_in_a_quote_or_a_stored_file(
    shared_installation: Installation, answer: dict[str, Any], pdf: str
) -> None:
    forged = json.loads(json.dumps(answer).replace("get 30 days", "get 31 days"))
    assert verify(shared_installation, forged) == (3, {"not_found"})
    (blob,) = shared_installation.files.blobs.glob(f"*{pdf}*")
    stored = blob.read_bytes()
    try:
        blob.write_bytes(stored.replace(b"%%EOF", b"%%EOG"))
        assert verify(shared_installation, answer) == (3, {"bytes_changed"})
    finally:
        blob.write_bytes(stored)


def test_search_and_ask_of_an_empty_service_suggest_the_first_upload(installation: Installation) -> None:
    for command in ("search", "ask"):
        finished = installation.svc(command, "walrus")
        assert finished.exit == 0
        assert "no bucket holds anything yet: `svc upload PATH -b BUCKET`" in finished.stderr


def test_cite_verify_judges_the_sentence_over_a_proven_quote(
    shared_installation: Installation, answer: dict[str, Any], pdf: str
) -> None:
    changed = json.loads(json.dumps(answer))
    (part,) = changed["output"][0]["content"]
    part["text"] = part["text"].replace("30 days", "31 days")
    finished = shared_installation.svc("cite", "verify", "-", "--json", stdin=json.dumps(changed))
    (item,) = finished.json["items"]
    assert (finished.exit, item["result"], item["sentence"]) == (3, "proven", "changed")
    assert "quote proven, sentence not" in item["message"]
    part["text"] = f"{answer['output'][0]['content'][0]['text']} Pensions too. [2]"
    invented = shared_installation.svc("cite", "verify", "-", stdin=json.dumps(changed))
    assert (invented.exit, invented.stdout.endswith("No quote has the number of these marks: [2].\n")) == (3, True)
