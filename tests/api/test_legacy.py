"""The legacy doors: sources in several buckets, deprecation, keys and repeats; else the same as the other doors."""

from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.settings import Limits
from svc_daemon.wire.batches import Batch
from svc_daemon.wire.buckets import BucketList
from svc_daemon.wire.sources import SourceAnswer
from svc_daemon.wire.uploads import Upload
from tests.api.aliases import (
    BATCH,
    BUCKETS,
    DOORS,
    PAGE,
    SESSION,
    SUCCESSORS,
    A,
    B,
    ask,
    body_for,
    failed_buckets,
    kept,
    told_link,
)
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import (
    ask_batch,
    ask_finalize,
    ask_session,
    batch_body,
    batch_status,
    outcomes,
    put,
    session_body,
    session_path,
)
from tests.api.sites import Site

# ---- the list


def test_the_list_is_that_of_the_other_door(daemon: Daemon) -> None:
    daemon.make_bucket("old")
    body_of(daemon.ask("PATCH", "/v1/buckets/old", json={"status": "archived"}))
    for query, expected in (({}, ["inbox"]), ({"include_archived": "true"}, ["inbox", "old"])):
        answer = daemon.ask("GET", BUCKETS, params=query)
        told = body_of(answer)
        assert BucketList.model_validate(told, extra="forbid")
        assert set(told) == {"team_id", "buckets", "request_id"}
        assert [bucket["slug"] for bucket in told["buckets"]] == expected
        assert told_link(answer) == "/v1/buckets"
        other = daemon.ask("GET", "/v1/buckets", params=query)
        assert other.json()["buckets"] == told["buckets"]
        assert "Deprecation" not in other.headers
    assert refused_field(daemon.ask("GET", BUCKETS, params={"include_archived": "x"})) == "include_archived"
    assert refused_field(daemon.ask("GET", BUCKETS, params={"team_id": daemon.team_id})) == "team_id"


# ---- deprecation


@pytest.mark.parametrize("door", DOORS)
def test_every_answer_tells_the_successor(daemon: Daemon, site: Site, door: str) -> None:
    successor = SUCCESSORS[door]
    assert (
        told_link(ask(daemon, door, body_for(door, site.url("/page"), bucket="inbox")))
        == f"/v1/buckets/inbox/{successor}"
    )
    unknown = f"/v1/buckets/%7Bbucket%7D/{successor}"
    assert told_link(ask(daemon, door, body_for(door))) == unknown
    assert told_link(ask(daemon, door, body_for(door, bucket="inbox"), key="")) == unknown
    assert told_link(ask(daemon, door, body_for(door, bucket="inbox"), "")) == unknown
    assert told_link(daemon.ask("POST", door, content=b"{")) == unknown


def test_what_reaches_no_alias_is_not_deprecated(daemon: Daemon) -> None:
    for method, path in (("GET", SESSION), ("DELETE", BATCH), ("GET", PAGE), ("POST", BUCKETS), ("GET", "/v1/buckets")):
        assert "Deprecation" not in daemon.ask(method, path).headers
    details_of(daemon.ask("GET", SESSION), "source_not_found")
    assert details_of(daemon.ask("GET", PAGE), "method_not_allowed")["allowed_methods"] == ["POST"]


def test_the_document_marks_the_aliases(shared: Daemon) -> None:
    paths = shared.ask("GET", "/openapi.json").json()["paths"]
    marked = {path for path, methods in paths.items() for row in methods.values() if row.get("deprecated")}
    assert marked == {BUCKETS, *DOORS}


# ---- creates, to their end


def test_a_session_into_several_buckets_ends_in_one_source(working: Daemon) -> None:
    ids = [working.make_bucket(slug) for slug in ("red", "blue")]
    body = session_body(title="Quay", tags=["x"], metadata={"n": 1}, bucket_slugs=["red", "blue", "red"])
    answer = ask(working, SESSION, body)
    session = body_of(answer, 201)
    assert Upload.model_validate(session, extra="forbid")
    assert session["bucket_ids"] == ids
    assert (answer.headers["Location"], answer.headers["Cache-Control"]) == (session["upload_url"], "no-store")
    body_of(put(working, session, NOTES))
    details_of(working.ask("POST", f"{session_path(session)}/finalize"), "session_not_found")
    source = body_of(working.ask("POST", f"{session_path(session, 'blue')}/finalize"), 201)
    again = working.ask("POST", f"{session_path(session, ids[0])}/finalize")
    assert (body_of(again)["id"], again.headers["Idempotent-Replayed"]) == (source["id"], "true")
    assert (source["bucket_ids"], source["title"], source["metadata"]) == (sorted(ids), "Quay", {"n": 1})
    working.wait_ready(source["id"])
    assert working.members("red") == working.members("blue") == [source["id"]]
    assert working.found("quay", buckets=["red"]) == working.found("quay", buckets=["blue"]) == [source["id"]]
    assert working.members() == []


def test_ready_means_every_bucket(daemon: Daemon) -> None:
    ids = [daemon.make_bucket(slug) for slug in ("red", "blue")]
    session = body_of(ask(daemon, SESSION, session_body(bucket_ids=ids)), 201)
    body_of(put(daemon, session, NOTES))
    source_id = body_of(daemon.ask("POST", f"{session_path(session, 'red')}/finalize"), 201)["id"]
    daemon.start("indexing")
    daemon.wait_status(source_id, "active")
    half = "UPDATE memberships SET sync_status = 'active', due_at = NULL WHERE bucket_id = :id"
    daemon.write(lambda connection: connection.execute(half, {"id": ids[0]}))
    source = daemon.source(source_id)
    assert (source["ready"], source["bucket_sync_status"]) == (False, "queued")
    assert (daemon.members("red"), daemon.members("blue")) == ([source_id], [])
    daemon.start("syncing")
    daemon.wait_ready(source_id)


def test_a_page_goes_into_several_buckets(working: Daemon, site: Site) -> None:
    ids = [working.make_bucket(slug) for slug in ("red", "blue")]
    body = {"url": site.url("/page"), "bucket_ids": ids, "title": "T", "tags": ["x"]}
    source = body_of(ask(working, PAGE, body), 201)
    assert SourceAnswer.model_validate(source, extra="forbid")
    assert (source["type"], source["bucket_ids"], source["title"]) == ("page", ids, "T")
    working.wait_ready(source["id"])
    assert working.members("red") == working.members("blue") == [source["id"]]
    details = details_of(ask(working, PAGE, {"url": site.url("/page#x"), "bucket": "inbox"}), "website_url_exists")
    assert details == {"source_id": source["id"]}


def test_a_document_is_sent_to_a_bucket_that_exists(daemon: Daemon, site: Site) -> None:
    body = {"url": site.url("/file.pdf"), "bucket_slugs": ["new", "inbox"], "create_missing_buckets": True}
    before = kept(daemon)
    details = details_of(ask(daemon, PAGE, body), "url_is_file")
    assert details["suggested_endpoint"] == "/v1/buckets/inbox/files/import"
    assert kept(daemon) == before
    body_of(daemon.ask("POST", details["suggested_endpoint"], json={"url": site.url("/file.pdf")}), 201)
    source = body_of(ask(daemon, PAGE, body | {"force": True}), 201)
    assert len(source["bucket_ids"]) == 2
    details_of(ask(daemon, PAGE, {"url": "ftp://a.example/", "bucket": "inbox"}), "url_fetch_blocked")
    details_of(ask(daemon, PAGE, {"url": site.url("/missing"), "bucket": "inbox"}), "website_analysis_failed")


def test_a_batch_with_buckets_at_its_root_is_finalized_through_any_of_them(working: Daemon) -> None:
    ids = [working.make_bucket(slug) for slug in ("red", "blue")]
    batch = body_of(ask(working, BATCH, batch_body([A, B], bucket_slugs=["red", "blue"])), 201)
    assert Batch.model_validate(batch, extra="forbid")
    assert batch["bucket_ids"] == ids
    assert [item["bucket_ids"] for item in batch["items"]] == [ids, ids]
    for item, (_, data) in zip(batch["items"], (A, B), strict=True):
        body_of(put(working, item, data))
    details_of(ask_finalize(working, batch), "batch_not_found")
    assert outcomes(body_of(ask_finalize(working, batch, "red"))) == dict.fromkeys("ab", "finalized")
    told = body_of(ask_finalize(working, batch, "blue"))
    assert outcomes(told) == dict.fromkeys("ab", "replayed")
    made = sorted(item["knowledge_id"] for item in told["replayed"])
    working.wait_ready(*made)
    assert sorted(working.members("red")) == sorted(working.members("blue")) == made
    assert batch_status(working, batch)["status"] == "completed"


def test_items_of_a_batch_go_into_buckets_of_their_own(working: Daemon) -> None:
    ids = {slug: working.make_bucket(slug) for slug in ("red", "blue")}
    body = batch_body([A, B])
    body["manifest"]["items"][0]["bucket"] = "red"
    body["manifest"]["items"][1]["bucket_ids"] = [ids["blue"], ids["red"]]
    batch = body_of(ask(working, BATCH, body, "k"), 201)
    assert (batch["bucket_ids"], ids["red"]) == ([ids["red"], ids["blue"]], ids["red"])
    assert [item["bucket_ids"] for item in batch["items"]] == [[ids["red"]], [ids["blue"], ids["red"]]]
    for item, (_, data) in zip(batch["items"], (A, B), strict=True):
        body_of(put(working, item, data))
    told = body_of(ask_finalize(working, batch, "blue"))
    made = {item["client_file_id"]: item["knowledge_id"] for item in told["finalized"]}
    working.wait_ready(*made.values())
    assert (working.members("blue"), sorted(working.members("red"))) == ([made["b"]], sorted(made.values()))
    again = ask(working, BATCH, body, "k")
    assert (body_of(again)["batch_id"], again.headers["Idempotent-Replayed"]) == (batch["batch_id"], "true")
    body["manifest"]["items"][0]["bucket"] = "blue"
    details_of(ask(working, BATCH, body, "k"), "idempotency_key_conflict")


def test_an_item_may_repeat_the_root_and_not_contradict_it(daemon: Daemon) -> None:
    inbox, _ = daemon.make_bucket(), daemon.make_bucket("red")
    body = batch_body([A, B], bucket="inbox")
    body["manifest"]["items"][1]["bucket_ids"] = [inbox]
    assert body_of(ask(daemon, BATCH, body), 201)["bucket_ids"] == [inbox]
    before = kept(daemon)
    body["manifest"]["items"][1] |= {"bucket_ids": [], "bucket_slugs": ["inbox", "red"]}
    assert refused_field(ask(daemon, BATCH, body)) == "manifest.items.1"
    assert kept(daemon) == before


# ---- keys


@pytest.mark.parametrize("door", DOORS)
def test_a_key_that_is_kept_to_some_buckets_needs_each_of_them(daemon: Daemon, site: Site, door: str) -> None:
    inbox, red = daemon.make_bucket(), daemon.make_bucket("red")
    key = daemon.add_key(buckets=(inbox,))
    before = kept(daemon)
    answer = ask(daemon, door, body_for(door, bucket_ids=[inbox, red]), key=key)
    assert [told[1:] for told in failed_buckets(answer)] == [(red, "not_found")]
    for slug in ("red", "new"):
        answer = ask(daemon, door, body_for(door, bucket=slug, create_missing_buckets=True), key=key)
        assert [told[1:] for told in failed_buckets(answer)] == [(slug, "not_found")]
    assert kept(daemon) == before
    body_of(ask(daemon, door, body_for(door, site.url("/page"), bucket_ids=[inbox]), key=key), 201)


def test_ending_what_others_opened_takes_a_key_for_all_of_its_buckets(daemon: Daemon) -> None:
    inbox, red = daemon.make_bucket(), daemon.make_bucket("red")
    key = daemon.add_key(buckets=(inbox,))
    session = body_of(ask(daemon, SESSION, session_body(bucket_ids=[inbox, red])), 201)
    body_of(put(daemon, session, NOTES))
    path = session_path(session)
    assert body_of(daemon.ask("GET", path, key=key))["bucket_ids"] == [inbox]
    assert body_of(daemon.ask("GET", path))["bucket_ids"] == [inbox, red]
    for method, address in (("POST", f"{path}/finalize"), ("DELETE", path)):
        details = details_of(daemon.ask(method, address, key=key), "forbidden_project_key")
        assert details["required_capability"] == api_keys.FILE_CREATE
    body_of(daemon.ask("POST", f"{path}/finalize", key=daemon.add_key(buckets=(inbox, red))), 201)


def test_a_key_sees_of_a_batch_what_goes_into_its_buckets(daemon: Daemon) -> None:
    inbox, _ = daemon.make_bucket(), daemon.make_bucket("red")
    key = daemon.add_key(buckets=(inbox,))
    body = batch_body([A, B])
    for item, slug in zip(body["manifest"]["items"], ("inbox", "red"), strict=True):
        item["bucket"] = slug
    batch = body_of(ask(daemon, BATCH, body), 201)
    path = f"/v1/knowledge/batches/{batch['batch_id']}"
    told = body_of(daemon.ask("GET", path, key=key, params={"include_items": "true"}))
    assert ([item["client_file_id"] for item in told["items"]], told["counters"]["total"]) == (["a"], 1)
    assert len(body_of(daemon.ask("GET", path, params={"include_items": "true"}))["items"]) == 2
    details_of(ask_finalize(daemon, batch, key=key), "forbidden_project_key")
    body_of(ask_finalize(daemon, batch))


# ---- repeating


@pytest.mark.parametrize("door", DOORS)
def test_a_key_belongs_to_the_door_at_which_it_was_used(daemon: Daemon, site: Site, door: str) -> None:
    legacy = body_for(door, site.url("/page"), bucket="inbox")
    other = f"/v1/buckets/inbox/{SUCCESSORS[door]}"
    body_of(ask(daemon, door, legacy, "k1"), 201)
    details_of(ask(daemon, other, body_for(door, site.url("/page")), "k1"), "idempotency_key_conflict")
    body_of(ask(daemon, other, body_for(door, site.url("/index.php")), "k2"), 201)
    details_of(ask(daemon, door, legacy, "k2"), "idempotency_key_conflict")


@pytest.mark.parametrize("door", DOORS)
def test_a_repeated_create_is_replayed_however_its_buckets_are_spelled(daemon: Daemon, site: Site, door: str) -> None:
    inbox, red = daemon.make_bucket(), daemon.make_bucket("red")
    first = ask(daemon, door, body_for(door, site.url("/page"), bucket_slugs=["inbox", "red"]), "k")
    before = kept(daemon)
    for where in ({"bucket_ids": [red, inbox]}, {"bucket_slugs": ["red", "inbox", "red"]}):
        again = ask(daemon, door, body_for(door, site.url("/page"), **where), "k")
        assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
        assert again.json()["bucket_ids"] == first.json()["bucket_ids"]
    assert kept(daemon) == before
    other = ask(daemon, door, body_for(door, site.url("/page"), bucket="red"), "k")
    if door == PAGE:
        assert body_of(other)["id"] == first.json()["id"]
    else:
        details_of(other, "idempotency_key_conflict")
    details_of(ask(daemon, door, body_for(door, bucket="inbox"), ""), "invalid_idempotency_key")


def test_the_manifests_own_key_repeats_a_batch(daemon: Daemon) -> None:
    body = batch_body([A, B], bucket="inbox", batch_idempotency_key="lot-7")
    batch_id = body_of(ask(daemon, BATCH, body), 201)["batch_id"]
    assert body_of(ask(daemon, BATCH, body))["batch_id"] == batch_id
    details_of(ask_batch(daemon, batch_body([A, B], batch_idempotency_key="lot-7")), "idempotency_key_conflict")


# ---- what the other doors refuse, these refuse


def test_replacing_takes_a_member_of_one_of_the_buckets(working: Daemon) -> None:
    old = working.add_ready()
    working.make_bucket("red")
    details_of(ask(working, SESSION, session_body(bucket="red", replaces=old)), "source_not_found")
    session = body_of(ask(working, SESSION, session_body(bucket_slugs=["red", "inbox"], replaces=old)), 201)
    body_of(put(working, session, NOTES))
    new = body_of(working.ask("POST", f"{session_path(session)}/finalize"), 201)["id"]
    working.wait_ready(new)
    assert working.members() == working.members("red") == [new]
    assert details_of(working.ask("GET", f"/v1/sources/{old}"), "source_not_found")["replaced_by"] == new


def test_a_session_is_judged_as_at_the_other_door(shared: Daemon) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"size_bytes": 0}, "empty_file"),
        ({"size_bytes": 26_214_401}, "file_too_large"),
        ({"metadata": {"x": "y" * 9000}}, "metadata_too_large"),
        ({"tags": [str(number) for number in range(21)]}, "too_many_tags"),
        ({"filename": ".."}, "invalid_request"),
        ({"webhook": {"url": "https://a.example/"}}, "invalid_request"),
    ]
    for fields, code in cases:
        before = kept(shared)
        ours = details_of(ask(shared, SESSION, session_body(bucket="inbox", **fields)), code)
        assert ours == details_of(ask_session(shared, **fields), code)
        assert kept(shared) == before


def test_a_batch_is_judged_as_at_the_other_door(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, batch_files=2))
    daemon.make_bucket()
    three = batch_body([A, B, ("c", b"x")], bucket="inbox")
    mixed = batch_body([A, B], bucket="inbox")
    mixed["files"][1]["client_file_id"] = "c"
    for body in (three, mixed, batch_body([], bucket="inbox"), batch_body([("a", b"")], bucket="inbox")):
        assert refused_field(ask(daemon, BATCH, body)) == "files"
    rejected = body_of(ask(daemon, BATCH, batch_body([A, ("b", b"")], bucket="inbox")), 201)["rejected"]
    assert [(item["client_file_id"], item["error"]["code"]) for item in rejected] == [("b", "empty_file")]


def test_a_bucket_that_is_archived_meanwhile_fails_the_finalize(daemon: Daemon) -> None:
    daemon.make_bucket("red")
    session = body_of(ask(daemon, SESSION, session_body(bucket_slugs=["red", "inbox"])), 201)
    body_of(put(daemon, session, NOTES))
    body_of(daemon.ask("PATCH", "/v1/buckets/red", json={"status": "archived"}))
    for bucket in ("red", "inbox"):
        details_of(daemon.ask("POST", f"{session_path(session, bucket)}/finalize"), "bucket_not_found")
    assert daemon.count("sources") == 0


def test_a_session_goes_on_without_a_bucket_that_is_deleted(working: Daemon) -> None:
    inbox, _ = working.make_bucket(), working.make_bucket("red")
    session = body_of(ask(working, SESSION, session_body(bucket_slugs=["red", "inbox"])), 201)
    body_of(put(working, session, NOTES))
    deletion = body_of(working.ask("DELETE", "/v1/buckets/red", params={"force": "true"}))["deletion"]
    path = f"/v1/knowledge/tasks/{deletion['task_id']}"
    working.wait(lambda: working.ask("GET", path).json()["status"] == "succeeded", "the bucket is gone")
    source = body_of(working.ask("POST", f"{session_path(session)}/finalize"), 201)
    assert source["bucket_ids"] == [inbox]
    working.wait_ready(source["id"])
