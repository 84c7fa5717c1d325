"""The event log: what it records, in which order, for whom, and for how long."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from starlette.requests import Request

from svc_daemon.api.handlers import events as handlers
from svc_daemon.core.access.event_cursors import EventCursors
from svc_daemon.operations.shared import events as verbs
from svc_daemon.store.rows.events import START, EventFilter
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import ask_finalize, finalize_batch, open_batch, put, wait_swept

INDEXED = ("source.queued", "source.indexing", "source.active", "source.ready")


def events(daemon: Daemon, **query: str) -> list[dict[str, Any]]:
    return list(daemon.show("/v1/events", **query)["data"])


def latest(daemon: Daemon) -> str:
    page = daemon.show("/v1/events", after="latest")
    assert page["data"] == []
    return str(page["last_id"])


def types(daemon: Daemon, after: str, **query: str) -> list[str]:
    return [event["type"] for event in events(daemon, after=after, **query)]


def await_types(daemon: Daemon, after: str, *expected: str) -> list[dict[str, Any]]:
    """The events after this one, which must be of these types."""
    daemon.wait(lambda: len(types(daemon, after)) >= len(expected), f"{expected}")
    found = events(daemon, after=after)
    assert [event["type"] for event in found] == list(expected)
    return found


def watching(daemon: Daemon) -> Callable[..., list[dict[str, Any]]]:
    """Return a function that awaits the next events, which must be of the given types."""
    start = latest(daemon)

    def since(*expected: str) -> list[dict[str, Any]]:
        nonlocal start
        found = await_types(daemon, start, *expected)
        start = found[-1]["id"]
        return found

    return since


@pytest.mark.rule("log.transitions")
def test_each_transition_is_an_event_in_order_with_what_a_client_waits_for(working: Daemon) -> None:
    working.make_bucket("second")
    since = watching(working)
    source_id = working.add_source()
    path = f"/v1/sources/{source_id}"
    found = since(*INDEXED)
    states = [("queued", False), ("indexing", False), ("active", False), ("active", True)]
    assert [(each["data"]["status"], each["data"]["ready"]) for each in found] == states
    bucket_id = working.show("/v1/buckets/inbox")["id"]
    # The key's request has caused the first one; the service did the others by itself.
    assert [bool(each["key_id"]) for each in found] == [True, False, False, False]
    assert {(each["source_id"], each["bucket_id"], each["data"]["title"]) for each in found} == {
        (source_id, bucket_id, "notes.md")
    }
    working.patch(path, title="Renamed")
    since("source.updated")
    working.post("/v1/buckets/second/sources", json={"source_id": source_id})
    since("source.attached", "source.ready")
    working.delete(f"/v1/buckets/second/sources/{source_id}")
    since("source.detached")
    new_id = working.add_source(b"The cobalt quay.\n", replaces=source_id)
    *_, replaced, ready = since(*INDEXED[:3], "source.replaced", "source.ready")
    assert (replaced["source_id"], replaced["data"]["replaced_by"], ready["source_id"]) == (source_id, new_id, new_id)


def test_failures_and_buckets_have_events_too(working: Daemon) -> None:
    bucket_id = working.make_bucket()
    working.make_bucket("second")
    working.add_ready()
    since = watching(working)
    failed_id = working.add_source(b" \n", filename="blank.txt")
    assert since(*INDEXED[:2], "source.failed")[-1]["data"]["error"]["code"] == "no_extractable_text"
    working.post(f"/v1/sources/{failed_id}/retry", json={})
    since(*INDEXED[:2], "source.failed")
    working.delete(f"/v1/sources/{failed_id}")
    assert since("source.deleted")[0]["bucket_ids"] == [bucket_id]
    working.patch("/v1/buckets/second", name="Second")
    working.patch("/v1/buckets/second", status="archived")
    working.make_bucket("third")
    since("bucket.updated", "bucket.archived", "bucket.created")
    working.delete("/v1/buckets/inbox", force="true")
    since("bucket.updated", "source.deleted", "bucket.deleted")


@pytest.mark.rule("log.maintenance")
def test_a_rebuild_begins_and_ends_for_every_key(working: Daemon) -> None:
    working.add_ready()
    start, key = latest(working), working.add_key(buckets=(working.make_bucket("other"),))
    token = {"Authorization": f"Bearer {working.operator_token}"}
    working.post(f"/admin/teams/{working.team_id}/rebuild", headers=token)
    working.wait(lambda: len(types(working, start, types="store")) == 2, "the rebuild has ended")
    for page in (working.show("/v1/events", key=each, after=start, types="store.maintenance") for each in (None, key)):
        seen = [(each["data"]["status"], each["bucket_ids"]) for each in page["data"]]
        assert seen == [("began", None), ("ended", None)]


@pytest.mark.rule("log.batches")
@pytest.mark.parametrize("given_up", [False, True])
def test_a_batch_ends_with_its_last_file_and_again_after_a_retry(working: Daemon, given_up: bool) -> None:
    batch = open_batch(working, [("a", NOTES), ("b", b" \n")])
    start = latest(working)
    put(working, batch["by_id"]["a"], NOTES)
    if given_up:
        made = finalize_batch(working, batch, mode="abandon_pending")["finalized"]
    else:
        put(working, batch["by_id"]["b"], b" \n")
        made = finalize_batch(working, batch)["finalized"]
    working.wait(lambda: types(working, start, types="batch") != [], "the batch has ended")
    (end,) = events(working, after=start, types="batch")
    assert (end["type"], end["batch_id"], end["data"]["status"]) == (
        "batch.completed",
        batch["batch_id"],
        "completed_with_failures",
    )
    assert {each["batch_id"] for each in events(working, after=start, types="source")} == {batch["batch_id"]}
    if not given_up:
        (failed,) = (each["source_id"] for each in events(working, after=start, types="source.failed"))
        assert failed in [each["knowledge_id"] for each in made]
        working.post(f"/v1/sources/{failed}/retry", json={})
        working.wait(lambda: len(types(working, start, types="batch")) == 2, "the batch has ended again")


@pytest.mark.rule("log.batches")
def test_the_sweeper_reports_a_batch_that_nobody_sent(daemon: Daemon) -> None:
    batch = open_batch(daemon, [("a", NOTES)])
    start = latest(daemon)
    daemon.advance(daemon.limits.session_seconds + 1)
    wait_swept(daemon, lambda: types(daemon, start, types="batch") == ["batch.expired"], "the batch has expired")
    assert events(daemon, after=start, types="batch")[0]["batch_id"] == batch["batch_id"]


@pytest.mark.rule("log.reach")
def test_a_key_sees_what_it_can_reach_and_no_other_buckets(daemon: Daemon) -> None:
    first, second = daemon.make_bucket("first"), daemon.make_bucket("second")
    start = latest(daemon)
    source_id, hidden = daemon.add_source(bucket="first"), daemon.add_source(bucket="second")
    for bucket in ("second", "inbox"):
        daemon.post(f"/v1/buckets/{bucket}/sources", json={"source_id": source_id})
    daemon.patch(f"/v1/sources/{source_id}", title="Renamed")
    daemon.delete(f"/v1/sources/{hidden}")
    limited = daemon.add_key("knowledge:read", buckets=(first,))
    page = daemon.show("/v1/events", key=limited, after=start)
    assert [(each["type"], each["source_id"], each["bucket_ids"]) for each in page["data"]] == [
        ("source.queued", source_id, [first]),
        ("source.updated", source_id, [first]),
    ]
    assert (second in str(page), {each["key_id"] for each in page["data"]}) == (False, {None})
    assert details_of(daemon.ask("GET", "/v1/events?bucket=second", key=limited), "bucket_not_found")
    theirs = daemon.add_team()
    assert daemon.show("/v1/events", key=theirs)["data"] == []
    assert details_of(daemon.ask("GET", f"/v1/events?after={start}", key=theirs), "events_expired") == {}


@pytest.mark.rule("log.cause")
def test_who_did_what_is_a_question_of_those_who_manage_keys(daemon: Daemon) -> None:
    start, other = latest(daemon), daemon.add_key("knowledge:file:create", "knowledge:read")
    mine, theirs = daemon.add_source(), daemon.add_source(b"Another.\n", key=other)
    by_source = {each["source_id"]: each["key_id"] for each in events(daemon, after=start)}
    assert len(set(by_source.values())) == 2
    listed = daemon.ask("GET", "/v1/events", params={"after": start, "key": by_source[theirs]}).json()["data"]
    assert [each["source_id"] for each in listed] == [theirs]
    refused = daemon.ask("GET", "/v1/events", key=other, params={"key": by_source[mine]})
    assert details_of(refused, "forbidden_project_key")["required_capability"] == "key:manage"
    own = daemon.ask("GET", "/v1/events", key=other, params={"key": by_source[theirs], "after": start}).json()["data"]
    assert [(each["source_id"], each["key_id"]) for each in own] == [(theirs, by_source[theirs])]


@pytest.mark.rule("log.after")
def test_pages_go_on_where_the_last_one_ended_whatever_the_filter(daemon: Daemon, monkeypatch: Any) -> None:
    monkeypatch.setattr(verbs, "READ_ROWS", 3)
    start = latest(daemon)
    made = [daemon.add_source(f"Quay {number}.\n".encode()) for number in range(5)]
    for source_id in made:
        daemon.patch(f"/v1/sources/{source_id}", title="Renamed")
    # A page of three ends with the last row of a read, which is not the last event.
    for query, expected in (({"limit": "2", "types": "source.updated,bucket"}, made), ({"limit": "3"}, made + made)):
        seen, after, has_more = [], start, True
        while has_more:
            page = daemon.show("/v1/events", after=after, **query)
            seen += [each["source_id"] for each in page["data"]]
            after, has_more = page["last_id"], page["has_more"]
        assert (seen, after) == (expected, latest(daemon))
    assert daemon.show("/v1/events", after=after)["last_id"] == after
    assert events(daemon)[0]["type"] == "bucket.created"
    for field, value in (("types", "source.gone"), ("limit", "0"), ("limit", "1001")):
        assert refused_field(daemon.ask("GET", "/v1/events", params={field: value})) == field


def test_client_that_prefers_json_to_a_stream_gets_a_page(daemon: Daemon) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    assert daemon.ask("GET", "/v1/events", headers=accept).json()["object"] == "list"


@pytest.mark.rule("log.expired")
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_place_that_the_key_does_not_know_has_expired(daemon: Daemon, is_stream: bool) -> None:
    mine, cursor = daemon.make_bucket("mine"), latest(daemon)
    daemon.add_source(bucket=daemon.make_bucket("hidden"))
    hidden, theirs = events(daemon)[-1]["id"], daemon.show("/v1/events", key=daemon.add_team(), after="latest")
    assert theirs["last_id"] is None
    limited, accept = daemon.add_key("knowledge:read", buckets=(mine,)), "text/event-stream" if is_stream else "*/*"
    other = EventCursors.of_team(daemon.context.secret, "team_other").of(hidden)
    for after in (
        hidden,
        other,
        cursor[:-1],
        f"{cursor}A",
        cursor.swapcase(),
        "evt_unknown",
        "x" * 5000,
        "cur_",
        "%C3%A9",
    ):
        answer = daemon.ask("GET", f"/v1/events?after={after}", key=limited, headers={"Accept": accept})
        assert details_of(answer, "events_expired") == {}
        assert len(answer.text) < 500
        if is_stream:
            resumed = {"Accept": accept, "Last-Event-ID": after}
            assert details_of(daemon.ask("GET", "/v1/events", key=limited, headers=resumed), "events_expired") == {}


@pytest.mark.rule("log.pages")
def test_pages_of_a_limited_key_end_with_what_it_sees_and_go_on_after_what_it_does_not(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "READ_ROWS", 3)
    mine, hidden, start = daemon.make_bucket("mine"), daemon.make_bucket("hidden"), latest(daemon)
    limited, seen = daemon.add_key("knowledge:read", buckets=(mine,)), []
    for number in range(2):
        seen.append(daemon.add_source(f"Quay {number}.\n".encode(), bucket="mine"))
        for place in range(4):
            daemon.add_source(f"Hidden {number} {place}.\n".encode(), bucket="hidden")
    pages = [daemon.show("/v1/events", key=limited, after=start, limit="1")]
    pages.append(daemon.show("/v1/events", key=limited, after=pages[0]["last_id"], limit="1"))
    pages.append(daemon.show("/v1/events", key=limited, after=pages[1]["last_id"], limit="1"))
    assert [[each["source_id"] for each in page["data"]] for page in pages] == [seen[:1], seen[1:], []]
    # That there are hidden events after the last one is not shown.
    assert [page["has_more"] for page in pages] == [True, False, False]
    assert pages[1]["last_id"] == pages[2]["last_id"] == latest(daemon)
    assert not any(each["id"] in str(pages) for each in events(daemon, bucket=hidden) if each["bucket_id"] == hidden)


@pytest.mark.rule("log.reach")
def test_a_limited_key_sees_only_batches_that_it_reaches(daemon: Daemon) -> None:
    mine, start = daemon.make_bucket("mine"), latest(daemon)
    daemon.make_bucket("hidden")
    batches = {bucket: open_batch(daemon, [("a", NOTES)], bucket=bucket) for bucket in ("hidden", "mine")}
    for bucket, batch in batches.items():
        put(daemon, batch["by_id"]["a"], NOTES)
        (made,) = body_of(ask_finalize(daemon, batch, bucket=bucket))["finalized"]
        daemon.ask("POST", "/v1/buckets/mine/sources", json={"source_id": made["knowledge_id"]})
    listed = daemon.show("/v1/events", key=daemon.add_key(buckets=(mine,)), after=start)["data"]
    shown = [(each["type"], each["batch_id"]) for each in listed]
    assert shown == [("source.attached", None), ("source.queued", batches["mine"]["batch_id"])]


@pytest.mark.rule("log.expired")
def test_old_events_go_in_steps_and_the_latest_stays(daemon: Daemon, monkeypatch: Any) -> None:
    monkeypatch.setattr(verbs, "STEP_ROWS", 4)
    for number in range(10):
        daemon.add_source(f"Quay {number}.\n".encode())
    first, *_, last = (each["id"] for each in events(daemon))
    cursors = daemon.show("/v1/events", limit="1")["last_id"], latest(daemon)
    daemon.advance(86_400 * daemon.limits.event_days + 60)
    assert daemon.loop.run(verbs.forget_events(daemon.context)) == 10
    assert [each["id"] for each in events(daemon)] == [last]
    daemon.add_source(b"New.\n")
    assert types(daemon, last) == types(daemon, cursors[1]) == ["source.queued"]
    for after in (first, cursors[0]):
        assert details_of(daemon.ask("GET", f"/v1/events?after={after}"), "events_expired") == {}
    assert daemon.loop.run(verbs.forget_events(daemon.context)) == 1


@pytest.mark.rule("log.transitions")
def test_what_is_rolled_back_is_no_event(daemon: Daemon) -> None:
    start = latest(daemon)
    daemon.upload(sha256="0" * 64)
    daemon.ask("PUT", "/v1/buckets/inbox")
    daemon.ask("DELETE", "/v1/buckets/inbox")
    assert types(daemon, start) == []


@pytest.mark.rule("log.lookup")
def test_many_sources_are_looked_up_at_once(daemon: Daemon) -> None:
    made = [daemon.add_source(f"Quay {number}.\n".encode()) for number in range(3)]
    hidden = daemon.add_source(b"Hidden.\n", bucket="inbox")
    daemon.delete(f"/v1/sources/{hidden}")
    listed = daemon.show("/v1/sources", ids=",".join([made[2], "src_missing", made[0], hidden, made[2]]))
    assert [each["id"] for each in listed["sources"]] == [made[2], made[0]]
    assert (listed["missing"], listed["replaced_by"]) == (["src_missing", hidden], {})
    limited = daemon.add_key("knowledge:read", buckets=(daemon.make_bucket("other"),))
    assert daemon.show("/v1/sources", key=limited, ids=made[0])["missing"] == made[:1]
    for ids in ("", ",", ",".join(f"src_{number}" for number in range(daemon.limits.lookup_sources + 1))):
        assert refused_field(daemon.ask("GET", "/v1/sources", params={"ids": ids})) == "ids"


@pytest.mark.rule("log.streams")
def test_an_idle_stream_names_the_last_event_although_it_was_not_sent(daemon: Daemon, monkeypatch: Any) -> None:
    """So that a client that waits for rare events never resumes after one that is no longer kept."""
    monkeypatch.setattr(handlers, "BEAT_S", 0.0)
    source_id, last = daemon.add_source(), latest(daemon)
    request, key = Request({"type": "http", "app": daemon.app}), daemon.admin

    async def take(types: frozenset[str], count: int) -> list[bytes]:
        stream = handlers.follow(request, key, EventFilter(types=types), START, None)
        async with aclosing(stream):
            return [await anext(stream) for _ in range(count)]

    assert daemon.loop.run(take(frozenset({"batch.completed"}), 2)) == [b": \n\n", f"id: {last}\n: \n\n".encode()]
    _, sent = daemon.loop.run(take(frozenset({"source.queued"}), 2))
    assert sent.startswith(f"id: {last}\nevent: source.queued\ndata: {{".encode())
    assert json.loads(sent.partition(b"data: ")[2])["source_id"] == source_id


@pytest.mark.rule("log.slow")
def test_a_client_that_leaves_as_something_happens_ends_its_stream(daemon: Daemon, monkeypatch: Any) -> None:
    monkeypatch.setattr(handlers, "LOOK_S", PATIENCE_S)
    request, key = Request({"type": "http", "app": daemon.app}), daemon.admin

    async def leave() -> None:
        stream = handlers.follow(request, key, EventFilter(types=frozenset({"batch.completed"})), START, None)
        async with aclosing(stream), asyncio.timeout(PATIENCE_S):
            await anext(stream)
            # In a task of its own, as it is while a response is sent.
            following = asyncio.ensure_future(anext(stream))
            waiting = daemon.context.followers._waiting
            while not any(woken._waiters for woken in waiting):  # noqa: ASYNC110
                await asyncio.sleep(0)
            daemon.context.followers.wake()
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following

    daemon.loop.run(leave())
