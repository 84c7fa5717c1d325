"""Questions and answers: members that count as such and that no search of a bucket finds."""

from typing import Any

import httpx

from svc_daemon.provider.contract import SearchQuery
from svc_daemon.wire.sources import SourceAnswer
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon

PATH = "/v1/buckets/inbox/qa"
ASKED = {
    "question": "When are  refunds\npaid?",
    "answer": "Within five days, to the celadon account.",
    "alternate_questions": ["When do I get my money back?"],
}


def ask(daemon: Daemon, repeat_key: str | None = None, **fields: Any) -> httpx.Response:
    headers = {} if repeat_key is None else {"Idempotency-Key": repeat_key}
    return daemon.ask("POST", PATH, headers=headers, json={**ASKED, **fields})


def test_a_question_becomes_ready_and_counts_as_one(working: Daemon) -> None:
    source = body_of(ask(working, tags=["money"], metadata={"year": 2026}), 201)
    assert SourceAnswer.model_validate(source, extra="forbid")
    assert (source["type"], source["status"], source["title"]) == ("qa", "queued", "When are refunds paid?")
    assert (source["question"], source["answer"]) == ("When are refunds paid?", ASKED["answer"])
    assert source["alternate_questions"] == ASKED["alternate_questions"]
    assert (source["tags"], source["metadata"], source["source_url"]) == (["money"], {"year": 2026}, None)
    working.wait_ready(source["id"])
    bucket = working.show("/v1/buckets/inbox")
    assert (bucket["counts"]["qa"], bucket["counts"]["total"], bucket["counts"]["retrievable"]) == (1, 1, 0)
    assert bucket["knowledgeIds"] == working.members(type="qa") == [source["id"]]


def test_no_search_of_a_bucket_finds_it_and_one_outside_of_buckets_does(working: Daemon) -> None:
    other = working.add_ready(b"The celadon quay was built of grey stone.\n", filename="other.txt")
    source_id = body_of(ask(working), 201)["id"]
    working.wait_ready(source_id)
    assert working.found("celadon") == working.found("celadon", buckets=["inbox"]) == [other]
    assert working.found("celadon", source_ids=[source_id, other]) == [other]
    page = working.provider.search(working.team_id, SearchQuery(text="refunds account"))
    assert [hit.source_id for hit in page.hits] == [source_id]


def test_nor_after_it_left_one_of_two_buckets(working: Daemon) -> None:
    source_id = body_of(ask(working), 201)["id"]
    working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": source_id})
    working.wait_ready(source_id)
    body_of(working.ask("DELETE", f"/v1/buckets/second/sources/{source_id}"))
    ready = working.add_ready(b"The celadon quay.\n", filename="other.txt")
    assert working.found("celadon") == [ready]


def test_the_same_request_is_answered_with_the_same_question(daemon: Daemon) -> None:
    first = body_of(ask(daemon, "k1"), 201)
    again = ask(daemon, "k1")
    assert (body_of(again)["id"], again.headers["Idempotent-Replayed"]) == (first["id"], "true")
    details_of(ask(daemon, "k1", answer="Never."), "idempotency_key_conflict")
    assert daemon.count("sources") == 1


def test_a_field_that_says_nothing_is_refused_by_name(shared: Daemon) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"question": " \n"}, "question"),
        ({"question": "x" * 1025}, "question"),
        ({"question": 7}, "question"),
        ({"answer": " ?!"}, "answer"),
        ({"alternate_questions": ["one", ""]}, "alternate_questions.1"),
        ({"webhook": {"url": "http://a.example"}}, "webhook"),
    ]
    for fields, path in cases:
        assert refused_field(ask(shared, **fields)) == path


def test_a_dry_run_leaves_nothing(daemon: Daemon) -> None:
    told = body_of(ask(daemon, "k1", dry_run=True))
    assert told["would_create"]["title"] == "When are refunds paid?"
    assert told["would_create"]["bucket_ids"] == [told["would_create"]["bucket_id"]]
    assert (daemon.count("sources"), daemon.count("idempotency")) == (0, 0)
    assert list(daemon.files.blobs.iterdir()) == []
