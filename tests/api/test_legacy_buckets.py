"""Where the legacy doors put things: every way to name buckets, each that can't be had, and those made on the way."""

from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.settings import Limits
from tests.api.aliases import BATCH, DOORS, PAGE, SESSION, A, B, ask, body_for, failed_buckets, kept, slugs, told_link
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import batch_body, session_body
from tests.api.sites import Site

# ---- where to


def test_a_create_without_a_destination_is_refused(shared: Daemon) -> None:
    for door in DOORS:
        before = kept(shared)
        for where in ({}, {"bucket_ids": [], "bucket_slugs": [], "bucket": ""}, {"bucket": None}):
            details_of(ask(shared, door, body_for(door, **where), "k"), "bucket_required")
        if door == BATCH:
            body = body_for(door)
            body["manifest"]["items"][0]["bucket"] = "inbox"
            assert details_of(ask(shared, door, body), "bucket_required")["items"] == ["manifest.items.1"]
        assert kept(shared) == before


def test_only_one_way_may_name_the_destination(shared: Daemon) -> None:
    for door in DOORS:
        root = "manifest." if door == BATCH else ""
        answer = ask(shared, door, body_for(door, bucket="inbox", bucket_slugs=["inbox"]))
        assert refused_field(answer) == f"{root}bucket"
        for where in ({"bucket_ids": "inbox"}, {"bucket_slugs": [7]}, {"bucket": ["inbox"]}, {"bucket": "x" * 256}):
            assert refused_field(ask(shared, door, body_for(door, **where))).startswith(f"{root}{next(iter(where))}")
        assert refused_field(ask(shared, door, body_for(door, bucket="inbox", create_missing_buckets="yes")))
        assert refused_field(ask(shared, door, body_for(door, bucket="inbox") | {"team_id": "x"})) == "team_id"


@pytest.mark.parametrize("door", DOORS)
def test_every_bucket_that_cannot_be_assigned_is_named(daemon: Daemon, door: str) -> None:
    inbox, old = daemon.make_bucket(), daemon.make_bucket("old")
    theirs = daemon.make_bucket("theirs", key=daemon.add_team())
    body_of(daemon.ask("PATCH", "/v1/buckets/old", json={"status": "archived"}))
    daemon.make_bucket("going")
    body_of(daemon.ask("DELETE", "/v1/buckets/going", params={"force": "true"}))
    root = "manifest." if door == BATCH else ""
    before = kept(daemon)

    def failed(**where: Any) -> list[tuple[str, str, str]]:
        told = failed_buckets(ask(daemon, door, body_for(door, **where), "k"))
        assert kept(daemon) == before
        return [(path.removeprefix(root), name, reason) for path, name, reason in told]

    for creates in (False, True):
        assert failed(bucket_ids=[inbox, "inbox", "bkt_x", theirs, old], create_missing_buckets=creates) == [
            ("bucket_ids.1", "inbox", "not_found"),
            ("bucket_ids.2", "bkt_x", "not_found"),
            ("bucket_ids.3", theirs, "not_found"),
            ("bucket_ids.4", old, "archived"),
        ]
        assert failed(bucket_slugs=[inbox, "old", "going", "In Box"], create_missing_buckets=creates) == [
            ("bucket_slugs.0", inbox, "invalid_slug"),
            ("bucket_slugs.1", "old", "archived"),
            ("bucket_slugs.2", "going", "deleting"),
            ("bucket_slugs.3", "In Box", "invalid_slug"),
        ]
        assert failed(bucket="bkt_x", create_missing_buckets=creates) == [("bucket", "bkt_x", "invalid_slug")]
    assert failed(bucket_slugs=["imbox"]) == [("bucket_slugs.0", "imbox", "not_found")]
    assert failed(bucket="imbox") == [("bucket", "imbox", "not_found")]


def test_the_bad_buckets_of_all_items_are_told_at_once(shared: Daemon) -> None:
    body = batch_body([A, B])
    body["manifest"]["items"][0]["bucket_slugs"] = ["inbox", "imbox"]
    body["manifest"]["items"][1]["bucket"] = "bkt_x"
    told = failed_buckets(ask(shared, BATCH, body))
    assert [path for path, _, _ in told] == ["manifest.items.0.bucket_slugs.1", "manifest.items.1.bucket"]


def test_a_create_names_no_more_buckets_than_the_limit(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, destination_buckets=2))
    names = ["a", "b", "c"]
    body = session_body(bucket_slugs=names, create_missing_buckets=True)
    assert refused_field(ask(daemon, SESSION, body)) == "bucket_slugs.2"
    assert slugs(daemon) == []
    body_of(ask(daemon, SESSION, session_body(bucket_slugs=["a", "a", "b"], create_missing_buckets=True)), 201)


# ---- buckets made on the way


@pytest.mark.parametrize("door", DOORS)
def test_missing_buckets_are_made_with_what_goes_into_them(daemon: Daemon, site: Site, door: str) -> None:
    body = body_for(door, site.url("/page"), bucket_slugs=["inbox", "new"], create_missing_buckets=True)
    answer = ask(daemon, door, body, "k")
    assert len(body_of(answer, 201)["bucket_ids"]) == 2
    assert slugs(daemon) == ["inbox", "new"]
    again = ask(daemon, door, body, "k")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.json()["bucket_ids"] == answer.json()["bucket_ids"]


@pytest.mark.parametrize("door", DOORS)
def test_a_refused_create_makes_no_bucket_and_claims_no_key(make_daemon: MakeDaemon, site: Site, door: str) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=10))
    where: dict[str, Any] = {"bucket": "new", "create_missing_buckets": True}
    refused = body_for(door, site.url("/page"), **where)
    details_of(ask(daemon, door, refused, "k"), "quota_exceeded")
    # A second passes between two of them only on a machine that stands still.
    codes = {ask(daemon, door, refused, "k").json()["error"]["code"] for _ in range(5)}
    assert "upload_rate_limited" in codes
    assert codes <= {"quota_exceeded", "upload_rate_limited"}
    details_of(ask(daemon, door, refused | {"webhook": 7, "files": []}, "k"), "invalid_request")
    assert kept(daemon) == (0, 0, 0, 0, 0)


def test_a_full_disk_makes_no_bucket(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, free_disk_bytes=10**15))
    for door in DOORS:
        details_of(ask(daemon, door, body_for(door, bucket="new", create_missing_buckets=True)), "storage_full")
    assert kept(daemon) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize(("door", "table"), [(SESSION, "uploads"), (BATCH, "uploads"), (PAGE, "sources")])
def test_a_create_that_fails_in_its_transaction_makes_no_bucket(
    daemon: Daemon, site: Site, door: str, table: str
) -> None:
    before = kept(daemon)
    trigger = f"CREATE TEMP TRIGGER broken BEFORE INSERT ON main.{table} BEGIN SELECT RAISE(ABORT, 'broken'); END"
    daemon.write(lambda connection: connection.execute(trigger))
    body = body_for(door, site.url("/page"), bucket="new", create_missing_buckets=True)
    details_of(ask(daemon, door, body, "k"), "internal_error")
    assert kept(daemon) == before
    daemon.write(lambda connection: connection.execute("DROP TRIGGER broken"))
    body_of(ask(daemon, door, body, "k"), 201)


def test_a_bucket_that_only_a_rejected_file_names_is_not_made(daemon: Daemon) -> None:
    body = batch_body([A, ("b", b"")], create_missing_buckets=True)
    for item, slug in zip(body["manifest"]["items"], ("red", "blue"), strict=True):
        item["bucket_slugs"] = [slug]
    batch = body_of(ask(daemon, BATCH, body), 201)
    assert [item["client_file_id"] for item in batch["rejected"]] == ["b"]
    assert slugs(daemon) == ["inbox", "red"]


@pytest.mark.parametrize("door", [SESSION, BATCH])
def test_racing_creates_share_the_bucket_that_they_make(daemon: Daemon, door: str) -> None:
    body = body_for(door, bucket="new", create_missing_buckets=True)
    answers = daemon.ask_together(*(daemon.asking("POST", door, json=body) for _ in range(8)))
    made = {tuple(body_of(answer, 201)["bucket_ids"]) for answer in answers}
    assert (len(made), slugs(daemon)) == (1, ["inbox", "new"])


@pytest.mark.parametrize("door", DOORS)
def test_making_buckets_takes_the_capability(daemon: Daemon, door: str) -> None:
    key = daemon.add_key(api_keys.FILE_CREATE)
    before = kept(daemon)
    body = body_for(door, bucket="new", create_missing_buckets=True)
    details = details_of(ask(daemon, door, body, key=key), "forbidden_project_key")
    assert details["required_capability"] == api_keys.BUCKET_CREATE
    details = details_of(
        ask(daemon, door, body_for(door, bucket="inbox"), key=daemon.add_key(api_keys.READ)), "forbidden_project_key"
    )
    assert details["required_capability"] == api_keys.FILE_CREATE
    details_of(ask(daemon, door, body_for(door, bucket="inbox"), key=""), "invalid_project_key")
    assert kept(daemon) == before


# ---- dry runs


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("where", ["body", "query"])
def test_a_dry_run_says_what_would_be_made_and_leaves_nothing(
    daemon: Daemon, site: Site, door: str, where: str
) -> None:
    inbox, before = daemon.make_bucket(), kept(daemon)
    body = body_for(door, site.url("/page"), bucket_slugs=["inbox", "new"], create_missing_buckets=True)
    body |= {"dry_run": True} if where == "body" else {}
    query = {"dry_run": "true"} if where == "query" else {}
    answer = ask(daemon, door, body, "k", params=query)
    told = body_of(answer)
    assert (told["dry_run"], told["valid"]) == (True, True)
    assert (told["would_create"]["bucket_ids"], told["would_create"]["missing_buckets"]) == ([inbox], ["new"])
    assert told_link(answer).startswith("/v1/buckets/inbox/")
    assert (kept(daemon), site.server.requests) == (before, [])
    bad = body_for(door, bucket="imbox") | {"dry_run": True}
    assert failed_buckets(ask(daemon, door, bad))[0][1:] == ("imbox", "not_found")
