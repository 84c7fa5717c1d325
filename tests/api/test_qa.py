"""Questions and answers as sources: they count as members of a bucket, and searches leave them out."""

from typing import Any

import httpx
import pytest

from svc_daemon.provider.contract import SearchQuery
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon

ASKED = {
    "question": "When are  refunds\npaid?",
    "answer": "Within five days, to the celadon account.",
    "alternate_questions": ["When do I get my money back?"],
}


def ask(daemon: Daemon, repeat_key: str | None = None, **fields: Any) -> httpx.Response:
    return daemon.ask("POST", "/v1/buckets/inbox/qa", repeat_key=repeat_key, json={**ASKED, **fields})


@pytest.mark.rule("source.counted")
def test_question_becomes_ready_is_counted_as_qa_and_is_replayed_by_its_key(working: Daemon) -> None:
    source = body_of(ask(working, "k1", tags=["money"], metadata={"year": 2026}), 201)
    expected: dict[str, Any] = ASKED | dict.fromkeys(("question", "title"), "When are refunds paid?")
    expected |= {"type": "qa", "status": "queued", "tags": ["money"], "metadata": {"year": 2026}, "source_url": None}
    assert {name: source[name] for name in expected} == expected
    working.wait_ready(source["id"])
    bucket = working.show("/v1/buckets/inbox")
    assert [bucket["counts"][name] for name in ("qa", "total", "retrievable")] == [1, 1, 0]
    assert bucket["knowledgeIds"] == working.members(type="qa") == [source["id"]]
    again = ask(working, "k1", tags=["money"], metadata={"year": 2026})
    assert (body_of(again)["id"], again.headers["Idempotent-Replayed"]) == (source["id"], "true")
    details_of(ask(working, "k1", answer="Never."), "idempotency_key_conflict")
    assert working.count("sources") == 1


@pytest.mark.rule("source.qa")
def test_api_searches_leave_questions_out_and_a_search_of_the_index_finds_them(working: Daemon) -> None:
    other = working.add_ready(b"The celadon quay was built of grey stone.\n", filename="other.txt")
    source_id = body_of(ask(working), 201)["id"]
    working.wait_ready(source_id)
    assert working.found("celadon") == working.found("celadon", buckets=["inbox"]) == [other]
    assert working.found("celadon", source_ids=[source_id, other]) == [other]
    page = working.provider.search(working.team_id, SearchQuery(text="refunds account"))
    assert [hit.source_id for hit in page.hits] == [source_id]
    working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": source_id})
    working.wait_ready(source_id)
    body_of(working.ask("DELETE", f"/v1/buckets/second/sources/{source_id}"))
    working.wait_ready(source_id)
    assert working.found("celadon") == [other]


def test_question_with_a_bad_field_is_refused_with_the_name_of_the_field(shared: Daemon) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        *(({"question": question}, "question") for question in (" \n", "x" * 1025, 7)),
        ({"answer": " ?!"}, "answer"),
        ({"alternate_questions": ["one", ""]}, "alternate_questions.1"),
        ({"webhook": {"url": "http://a.example"}}, "webhook"),
    ]
    for fields, path in cases:
        assert refused_field(ask(shared, **fields)) == path, fields
