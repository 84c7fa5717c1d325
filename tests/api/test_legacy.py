"""The legacy routes: several buckets for each source, deprecation headers, access by keys, and idempotency keys."""

from functools import partial
from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from tests.api import aliases
from tests.api.aliases import BATCH, DOORS, PAGE, SESSION, A, B, ask, body_for, create, replayed, successor_of
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import ask_finalize, batch_body, batch_status, outcomes, put, session_body, session_path
from tests.api.sites import Site

Json = dict[str, Any]
COLOURS = ("red", "blue")


def make_colours(daemon: Daemon) -> list[str]:
    return [daemon.make_bucket(slug) for slug in COLOURS]


def create_uploaded(daemon: Daemon, body: Json, repeat_key: str | None = None) -> Json:
    """Create a batch of both files, upload their bytes, and return the batch."""
    batch = create(daemon, BATCH, body, repeat_key)
    for item, (_, data) in zip(batch["items"], (A, B), strict=True):
        body_of(put(daemon, item, data))
    return batch


def open_uploaded(daemon: Daemon, **where: Any) -> Json:
    """Create a session, upload its bytes, and return the session."""
    session = create(daemon, SESSION, session_body(**where))
    body_of(put(daemon, session, NOTES))
    return session


def batch_of(*places: Json) -> Json:
    """Return the body of a batch whose items each have their own destination."""
    body = batch_body([A, B])
    body["manifest"]["items"] = [item | where for item, where in zip(body["manifest"]["items"], places, strict=True)]
    return body


# ---- listing buckets


@pytest.mark.rule("legacy.buckets", "legacy.deprecation")
def test_legacy_bucket_list_equals_the_current_one_and_is_marked_as_deprecated(daemon: Daemon) -> None:
    daemon.make_bucket("old")
    body_of(daemon.ask("PATCH", "/v1/buckets/old", json={"status": "archived"}))
    for query, expected in (({}, ["inbox"]), ({"include_archived": "true"}, ["inbox", "old"])):
        answer = daemon.ask("GET", aliases.BUCKETS, params=query)
        listed = body_of(answer)
        assert set(listed) == {"team_id", "buckets", "request_id"}
        assert ([bucket["slug"] for bucket in listed["buckets"]], successor_of(answer)) == (expected, "/v1/buckets")
        other = daemon.ask("GET", "/v1/buckets", params=query)
        assert (other.json()["buckets"], "Deprecation" in other.headers) == (listed["buckets"], False)
    for name, value in (("include_archived", "x"), ("team_id", daemon.team_id)):
        assert refused_field(daemon.ask("GET", aliases.BUCKETS, params={name: value})) == name


# ---- deprecation


@pytest.mark.rule("legacy.deprecation", "version.aliases")
@pytest.mark.parametrize("door", DOORS)
def test_every_legacy_response_links_to_the_successor_route(daemon: Daemon, site: Site, door: str) -> None:
    body = body_for(door, site.url("/page"), bucket="inbox")
    assert successor_of(ask(daemon, door, body)) == f"/v1/buckets/inbox/{aliases.SUCCESSORS[door]}"
    refused = [ask(daemon, door, body_for(door)), ask(daemon, door, body, key=""), ask(daemon, door, body, "")]
    refused.append(daemon.ask("POST", door, content=b"{"))
    assert [successor_of(answer) for answer in refused] == [f"/v1/buckets/%7Bbucket%7D/{aliases.SUCCESSORS[door]}"] * 4


@pytest.mark.rule("legacy.deprecation")
def test_only_legacy_routes_are_marked_as_deprecated(daemon: Daemon) -> None:
    others = (("GET", SESSION), ("DELETE", BATCH), ("GET", PAGE), ("POST", aliases.BUCKETS), ("GET", "/v1/buckets"))
    for method, path in others:
        assert "Deprecation" not in daemon.ask(method, path).headers, path
    details_of(daemon.ask("GET", SESSION), "source_not_found")
    assert details_of(daemon.ask("GET", PAGE), "method_not_allowed")["allowed_methods"] == ["POST"]
    paths = daemon.ask("GET", "/openapi.json").json()["paths"]
    marked = {path for path, methods in paths.items() for row in methods.values() if row.get("deprecated")}
    assert marked == {aliases.BUCKETS, *DOORS}


# ---- creating sources


@pytest.mark.rule("legacy.session", "version.aliases")
def test_session_for_several_buckets_creates_one_source_in_all_of_them(working: Daemon) -> None:
    ids = make_colours(working)
    body = session_body(title="Quay", tags=["x"], metadata={"n": 1}, bucket_slugs=["red", "blue", "red"])
    answer = ask(working, SESSION, body)
    session = body_of(answer, 201)
    assert session["bucket_ids"] == ids
    assert (answer.headers["Location"], answer.headers["Cache-Control"]) == (session["upload_url"], "no-store")
    body_of(put(working, session, NOTES))
    details_of(working.ask("POST", f"{session_path(session)}/finalize"), "session_not_found")
    source = working.post(f"{session_path(session, 'blue')}/finalize", 201)
    again = working.ask("POST", f"{session_path(session, ids[0])}/finalize")
    assert (body_of(again)["id"], again.headers["Idempotent-Replayed"]) == (source["id"], "true")
    assert (source["bucket_ids"], source["title"], source["metadata"]) == (sorted(ids), "Quay", {"n": 1})
    working.wait_ready(source["id"])
    for slug in COLOURS:
        assert working.members(slug) == working.found("quay", buckets=[slug]) == [source["id"]]
    assert working.members() == []


@pytest.mark.rule("legacy.websites")
def test_page_is_added_to_several_buckets(working: Daemon, site: Site) -> None:
    ids = make_colours(working)
    source = create(working, PAGE, {"url": site.url("/page"), "bucket_ids": ids, "title": "T", "tags": ["x"]})
    assert (source["type"], source["bucket_ids"], source["title"]) == ("page", ids, "T")
    working.wait_ready(source["id"])
    assert working.members("red") == working.members("blue") == [source["id"]]
    details = details_of(ask(working, PAGE, {"url": site.url("/page#x"), "bucket": "inbox"}), "website_url_exists")
    assert details == {"source_id": source["id"]}


@pytest.mark.rule("legacy.websites")
def test_suggested_endpoint_for_a_document_names_an_existing_bucket(daemon: Daemon, site: Site) -> None:
    body = {"url": site.url("/file.pdf"), "bucket_slugs": ["new", "inbox"], "create_missing_buckets": True}
    before = daemon.kept()
    details = details_of(ask(daemon, PAGE, body), "url_is_file")
    assert details["suggested_endpoint"] == "/v1/buckets/inbox/files/import"
    assert daemon.kept() == before
    daemon.post(details["suggested_endpoint"], 201, json={"url": site.url("/file.pdf")})
    assert len(create(daemon, PAGE, body | {"force": True})["bucket_ids"]) == 2
    details_of(ask(daemon, PAGE, {"url": "ftp://a.example/", "bucket": "inbox"}), "url_fetch_blocked")
    details_of(ask(daemon, PAGE, {"url": site.url("/missing"), "bucket": "inbox"}), "website_analysis_failed")


@pytest.mark.rule("legacy.batch", "version.aliases")
def test_batch_for_several_buckets_can_be_finalized_through_each_of_them(working: Daemon) -> None:
    ids = make_colours(working)
    batch = create_uploaded(working, batch_body([A, B], bucket_slugs=["red", "blue"]))
    assert [batch["bucket_ids"], *(item["bucket_ids"] for item in batch["items"])] == [ids, ids, ids]
    details_of(ask_finalize(working, batch), "batch_not_found")
    assert outcomes(body_of(ask_finalize(working, batch, "red"))) == dict.fromkeys("ab", "finalized")
    again = body_of(ask_finalize(working, batch, "blue"))
    assert outcomes(again) == dict.fromkeys("ab", "replayed")
    made = sorted(item["knowledge_id"] for item in again["replayed"])
    working.wait_ready(*made)
    assert sorted(working.members("red")) == sorted(working.members("blue")) == made
    assert batch_status(working, batch)["status"] == "completed"


@pytest.mark.rule("legacy.batch")
def test_batch_items_are_added_to_their_own_buckets(working: Daemon) -> None:
    red, blue = make_colours(working)
    body = batch_of({"bucket": "red"}, {"bucket_ids": [blue, red]})
    batch = create_uploaded(working, body, "k")
    listed = [batch["bucket_ids"], *(item["bucket_ids"] for item in batch["items"])]
    assert listed == [[red, blue], [red], [blue, red]]
    finalized = body_of(ask_finalize(working, batch, "blue"))["finalized"]
    made = {item["client_file_id"]: item["knowledge_id"] for item in finalized}
    working.wait_ready(*made.values())
    assert (working.members("blue"), sorted(working.members("red"))) == ([made["b"]], sorted(made.values()))
    assert replayed(working, BATCH, body, "k")["batch_id"] == batch["batch_id"]
    body["manifest"]["items"][0]["bucket"] = "blue"
    details_of(ask(working, BATCH, body, "k"), "idempotency_key_conflict")


def test_batch_item_may_name_the_same_bucket_as_the_batch_but_no_other(daemon: Daemon) -> None:
    inbox, _ = daemon.make_bucket(), daemon.make_bucket("red")
    body = batch_body([A, B], bucket="inbox")
    body["manifest"]["items"][1]["bucket_ids"] = [inbox]
    assert create(daemon, BATCH, body)["bucket_ids"] == [inbox]
    before = daemon.kept()
    body["manifest"]["items"][1] |= {"bucket_ids": [], "bucket_slugs": ["inbox", "red"]}
    assert refused_field(ask(daemon, BATCH, body)) == "manifest.items.1"
    assert daemon.kept() == before


# ---- keys


@pytest.mark.parametrize("door", DOORS)
def test_bucket_limited_key_cannot_create_in_any_other_bucket(daemon: Daemon, site: Site, door: str) -> None:
    inbox, red = daemon.make_bucket(), daemon.make_bucket("red")
    key = daemon.add_key(buckets=(inbox,))
    before = daemon.kept()
    cases: list[tuple[Json, str]] = [({"bucket_ids": [inbox, red]}, red)]
    cases += [({"bucket": slug, "create_missing_buckets": True}, slug) for slug in ("red", "new")]
    for where, missing in cases:
        failed = aliases.failed_buckets(ask(daemon, door, body_for(door, **where), key=key))
        assert [each[1:] for each in failed] == [(missing, "not_found")]
    assert daemon.kept() == before
    body_of(ask(daemon, door, body_for(door, site.url("/page"), bucket_ids=[inbox]), key=key), 201)


def test_finalizing_or_canceling_another_keys_session_takes_a_key_for_all_its_buckets(daemon: Daemon) -> None:
    inbox, red = daemon.make_bucket(), daemon.make_bucket("red")
    key = daemon.add_key(buckets=(inbox,))
    path = session_path(open_uploaded(daemon, bucket_ids=[inbox, red]))
    assert [daemon.show(path, key=each)["bucket_ids"] for each in (key, None)] == [[inbox], [inbox, red]]
    for method, address in (("POST", f"{path}/finalize"), ("DELETE", path)):
        details = details_of(daemon.ask(method, address, key=key), "forbidden_project_key")
        assert details["required_capability"] == api_keys.FILE_CREATE
    daemon.post(f"{path}/finalize", 201, key=daemon.add_key(buckets=(inbox, red)))


def test_bucket_limited_key_sees_only_the_batch_items_of_its_buckets(daemon: Daemon) -> None:
    inbox, _ = daemon.make_bucket(), daemon.make_bucket("red")
    key = daemon.add_key(buckets=(inbox,))
    batch = create(daemon, BATCH, batch_of({"bucket": "inbox"}, {"bucket": "red"}))
    path = f"/v1/knowledge/batches/{batch['batch_id']}"
    seen = daemon.show(path, key=key, include_items="true")
    assert ([item["client_file_id"] for item in seen["items"]], seen["counters"]["total"]) == (["a"], 1)
    assert len(daemon.show(path, include_items="true")["items"]) == 2
    details_of(ask_finalize(daemon, batch, key=key), "forbidden_project_key")
    body_of(ask_finalize(daemon, batch))


# ---- idempotency


@pytest.mark.rule("legacy.session")
@pytest.mark.parametrize("door", DOORS)
def test_create_is_replayed_even_if_its_buckets_are_named_in_another_way(daemon: Daemon, site: Site, door: str) -> None:
    inbox, red = daemon.make_bucket(), daemon.make_bucket("red")

    body = partial(body_for, door, site.url("/page"))
    first = create(daemon, door, body(bucket_slugs=["inbox", "red"]), "k")
    before = daemon.kept()
    for where in ({"bucket_ids": [red, inbox]}, {"bucket_slugs": ["red", "inbox", "red"]}):
        assert replayed(daemon, door, body(**where), "k")["bucket_ids"] == first["bucket_ids"]
    assert daemon.kept() == before
    other = ask(daemon, door, body(bucket="red"), "k")
    if door == PAGE:
        assert body_of(other)["id"] == first["id"]
    else:
        details_of(other, "idempotency_key_conflict")
    details_of(ask(daemon, door, body_for(door, bucket="inbox"), ""), "invalid_idempotency_key")


# ---- replacing sources, and buckets that are archived or deleted


def test_replaced_source_must_be_a_member_of_one_of_the_buckets(working: Daemon) -> None:
    old = working.add_ready()
    working.make_bucket("red")
    details_of(ask(working, SESSION, session_body(bucket="red", replaces=old)), "source_not_found")
    session = open_uploaded(working, bucket_slugs=["red", "inbox"], replaces=old)
    new = working.post(f"{session_path(session)}/finalize", 201)["id"]
    working.wait_ready(new)
    assert working.members() == working.members("red") == [new]
    assert details_of(working.ask("GET", f"/v1/sources/{old}"), "source_not_found")["replaced_by"] == new


def test_finalize_fails_with_an_archived_bucket_and_leaves_out_a_deleted_one(working: Daemon) -> None:
    inbox, _ = working.make_bucket(), working.make_bucket("red")
    failing, session = (open_uploaded(working, bucket_slugs=["red", "inbox"]) for _ in range(2))
    working.patch("/v1/buckets/red", status="archived")
    for bucket in ("red", "inbox"):
        details_of(working.ask("POST", f"{session_path(failing, bucket)}/finalize"), "bucket_not_found")
    assert working.count("sources") == 0
    path = f"/v1/knowledge/tasks/{working.delete('/v1/buckets/red', force='true')['deletion']['task_id']}"
    working.wait(lambda: working.show(path)["status"] == "succeeded", "the bucket is deleted")
    source = working.post(f"{session_path(session)}/finalize", 201)
    assert source["bucket_ids"] == [inbox]
    working.wait_ready(source["id"])
