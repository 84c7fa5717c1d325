"""Destination buckets of the legacy routes: how a request names them, which are refused, and creating missing ones."""

from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.settings.limits import Limits
from tests.api import aliases
from tests.api.aliases import BATCH, DOORS, PAGE, SESSION, A, B, ask, body_for, create, replayed, slugs
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import allow, refuse
from tests.api.sessions import batch_body, session_body
from tests.api.sites import Site

MAKING: dict[str, Any] = {"bucket": "new", "create_missing_buckets": True}


# ---- naming buckets


@pytest.mark.rule("legacy.batch", "legacy.bucket-required", "bucket_required")
def test_create_without_a_destination_bucket_is_refused(shared: Daemon) -> None:
    before = shared.kept()
    for door in DOORS:
        for where in ({}, {"bucket_ids": [], "bucket_slugs": [], "bucket": ""}, {"bucket": None}):
            details_of(ask(shared, door, body_for(door, **where), "k"), "bucket_required")
    body = body_for(BATCH)
    body["manifest"]["items"][0]["bucket"] = "inbox"
    assert details_of(ask(shared, BATCH, body), "bucket_required")["items"] == ["manifest.items.1"]
    assert shared.kept() == before


@pytest.mark.rule("legacy.session")
def test_destination_named_by_two_fields_or_by_an_invalid_value_is_refused(shared: Daemon) -> None:
    wrong: list[tuple[str, Any]]
    wrong = [("bucket_ids", "inbox"), ("bucket_slugs", [7]), ("bucket", ["inbox"]), ("bucket", "x" * 256)]
    inbox = shared.make_bucket()
    for door in DOORS:
        root = "manifest." if door == BATCH else ""
        answer = ask(shared, door, body_for(door, bucket="inbox", bucket_slugs=["inbox"]))
        assert refused_field(answer) == f"{root}bucket"
        for way in ({"bucket": ""}, {"bucket": "inbox"}):
            answer = ask(shared, door, body_for(door, bucket_ids=[inbox], bucket_slugs=["inbox"], **way))
            assert refused_field(answer) == f"{root}bucket_slugs"
        for name, value in wrong:
            field = refused_field(ask(shared, door, body_for(door, **{name: value})))
            assert field.startswith(f"{root}{name}"), value
        assert refused_field(ask(shared, door, body_for(door, bucket="inbox", create_missing_buckets="yes")))
        assert refused_field(ask(shared, door, body_for(door, bucket="inbox") | {"team_id": "x"})) == "team_id"


@pytest.mark.rule("legacy.session", "bucket_assignment_failed")
@pytest.mark.parametrize("door", DOORS)
def test_refusal_names_every_bucket_that_cannot_be_assigned_and_why(daemon: Daemon, door: str) -> None:
    inbox, old = daemon.make_bucket(), daemon.make_bucket("old")
    theirs = daemon.make_bucket("theirs", key=daemon.add_team())
    daemon.patch("/v1/buckets/old", status="archived")
    daemon.make_bucket("going")
    daemon.delete("/v1/buckets/going", force="true")
    root, before = "manifest." if door == BATCH else "", daemon.kept()
    by_id = ((inbox, None), ("inbox", "not_found"), ("bkt_x", "not_found"), (theirs, "not_found"), (old, "archived"))
    by_slug = ((inbox, "invalid_slug"), ("old", "archived"), ("going", "deleting"), ("In Box", "invalid_slug"))
    cases: list[tuple[str, Any, tuple[bool, ...]]] = [
        ("bucket_ids", by_id, (False, True)),
        ("bucket_slugs", by_slug, (False, True)),
        ("bucket_slugs", (("imbox", "not_found"),), (False,)),
        ("bucket", ("bkt_x", "invalid_slug"), (False, True)),
        ("bucket", ("imbox", "not_found"), (False,)),
    ]
    for way, buckets, may_create in cases:
        several = way != "bucket"
        named: dict[str, Any] = {way: [name for name, _ in buckets] if several else buckets[0]}
        listed = [(f"{way}.{number}", *each) for number, each in enumerate(buckets)] if several else [(way, *buckets)]
        expected = [(f"{root}{path}", name, reason) for path, name, reason in listed if reason]
        for creates in may_create:
            body = body_for(door, **named, create_missing_buckets=creates)
            assert aliases.failed_buckets(ask(daemon, door, body, "k")) == expected
            assert daemon.kept() == before


@pytest.mark.rule("bucket_assignment_failed")
def test_refusal_names_the_bad_buckets_of_all_batch_items(shared: Daemon) -> None:
    body = batch_body([A, B])
    body["manifest"]["items"][0]["bucket_slugs"] = ["inbox", "imbox"]
    body["manifest"]["items"][1]["bucket"] = "bkt_x"
    paths = [path for path, _, _ in aliases.failed_buckets(ask(shared, BATCH, body))]
    assert paths == ["manifest.items.0.bucket_slugs.1", "manifest.items.1.bucket"]


def test_create_may_name_only_as_many_different_buckets_as_the_limit(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, destination_buckets=2))
    body = session_body(bucket_slugs=["a", "b", "c"], create_missing_buckets=True)
    assert refused_field(ask(daemon, SESSION, body)) == "bucket_slugs.2"
    assert slugs(daemon) == []
    create(daemon, SESSION, body | {"bucket_slugs": ["a", "a", "b"]})


# ---- creating missing buckets


@pytest.mark.rule("legacy.session")
@pytest.mark.parametrize("door", DOORS)
def test_create_also_creates_the_missing_buckets(daemon: Daemon, site: Site, door: str) -> None:
    body = body_for(door, site.url("/page"), bucket_slugs=["inbox", "new"], create_missing_buckets=True)
    made = create(daemon, door, body, "k")["bucket_ids"]
    assert (len(made), slugs(daemon)) == (2, ["inbox", "new"])
    assert replayed(daemon, door, body, "k")["bucket_ids"] == made


@pytest.mark.parametrize("door", DOORS)
def test_refused_create_stores_neither_a_bucket_nor_its_idempotency_key(
    make_daemon: MakeDaemon, site: Site, door: str
) -> None:
    full = make_daemon("full")
    with full.refusing_bytes():
        # A node of a cluster checks no free space, so it fetches a page before storing the page fails.
        details_of(ask(full, door, body_for(door, site.url("/page"), **MAKING)), "storage_full")
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=10))
    refused = body_for(door, site.url("/page"), **MAKING)
    details_of(ask(daemon, door, refused, "k"), "quota_exceeded")
    # Two of these requests are a second apart only if the machine is suspended.
    codes = {ask(daemon, door, refused, "k").json()["error"]["code"] for _ in range(5)}
    assert {"upload_rate_limited"} <= codes <= {"quota_exceeded", "upload_rate_limited"}
    details_of(ask(daemon, door, refused | {"webhook": 7, "files": []}, "k"), "invalid_request")
    assert set(daemon.kept().values()) == set(full.kept().values()) == {0}


@pytest.mark.parametrize(("door", "table"), [(SESSION, "uploads"), (BATCH, "uploads"), (PAGE, "sources")])
def test_create_that_fails_in_its_transaction_stores_nothing_and_can_be_repeated(
    daemon: Daemon, site: Site, door: str, table: str
) -> None:
    before, body = daemon.kept(), body_for(door, site.url("/page"), **MAKING)
    refuse(daemon, "INSERT", table)
    details_of(ask(daemon, door, body, "k"), "internal_error")
    assert daemon.kept() == before
    allow(daemon, table)
    create(daemon, door, body, "k")


def test_bucket_that_only_a_rejected_file_names_is_not_created(daemon: Daemon) -> None:
    body = batch_body([A, ("b", b"")], create_missing_buckets=True)
    for item, slug in zip(body["manifest"]["items"], ("red", "blue"), strict=True):
        item["bucket_slugs"] = [slug]
    assert [item["client_file_id"] for item in create(daemon, BATCH, body)["rejected"]] == ["b"]
    assert slugs(daemon) == ["inbox", "red"]


@pytest.mark.parametrize("door", [SESSION, BATCH])
def test_concurrent_creates_share_one_new_bucket(daemon: Daemon, door: str) -> None:
    answers = daemon.ask_together(*(daemon.asking("POST", door, json=body_for(door, **MAKING)) for _ in range(8)))
    made = {tuple(body_of(answer, 201)["bucket_ids"]) for answer in answers}
    assert (len(made), slugs(daemon)) == (1, ["inbox", "new"])


def test_creating_missing_buckets_takes_the_bucket_create_capability(daemon: Daemon) -> None:
    creator, reader = daemon.add_key(api_keys.FILE_CREATE), daemon.add_key(api_keys.READ)
    before = daemon.kept()
    for door in DOORS:
        made, given = (MAKING, creator, api_keys.BUCKET_CREATE), ({"bucket": "inbox"}, reader, api_keys.FILE_CREATE)
        for where, key, needed in (made, given):
            details = details_of(ask(daemon, door, body_for(door, **where), key=key), "forbidden_project_key")
            assert details["required_capability"] == needed, door
        details_of(ask(daemon, door, body_for(door, bucket="inbox"), key=""), "invalid_project_key")
    assert daemon.kept() == before


# ---- dry runs


@pytest.mark.rule("rule9.legacy")
@pytest.mark.parametrize("door", DOORS)
def test_dry_run_lists_the_missing_buckets_and_stores_nothing(daemon: Daemon, site: Site, door: str) -> None:
    inbox, before = daemon.make_bucket(), daemon.kept()
    body = body_for(door, site.url("/page"), bucket_slugs=["inbox", "new"], create_missing_buckets=True)
    in_query = ask(daemon, door, body, "k", params={"dry_run": "true"})
    for answer in (in_query, ask(daemon, door, body | {"dry_run": True}, "k")):
        judged = body_of(answer)
        assert (judged["dry_run"], judged["valid"]) == (True, True)
        assert judged["would_create"].items() >= {"bucket_ids": [inbox], "missing_buckets": ["new"]}.items()
        assert aliases.successor_of(answer).startswith("/v1/buckets/inbox/")
        assert (daemon.kept(), site.server.requests) == (before, [])
    bad = body_for(door, bucket="imbox") | {"dry_run": True}
    assert aliases.failed_buckets(ask(daemon, door, bad))[0][1:] == ("imbox", "not_found")
