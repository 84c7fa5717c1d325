"""Buckets over the API."""

import re
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.wire.buckets import BucketAnswer
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def show(daemon: Daemon, bucket: str = "inbox", key: str | None = None) -> dict[str, Any]:
    return body_of(daemon.ask("GET", f"/v1/buckets/{bucket}", key=key))


def slugs(daemon: Daemon, key: str | None = None, **query: str) -> list[str]:
    listed = body_of(daemon.ask("GET", "/v1/buckets", key=key, params=query))
    return [bucket["slug"] for bucket in listed["buckets"]]


def archive(daemon: Daemon, bucket: str) -> None:
    body_of(daemon.ask("PATCH", f"/v1/buckets/{bucket}", json={"status": "archived"}))


def test_a_put_makes_the_bucket_once(daemon: Daemon) -> None:
    sent = {"name": "Handbook", "description": "Rules.", "metadata": {"a": 1}, "chunking": {"target": 900}}
    first = body_of(daemon.ask("PUT", "/v1/buckets/handbook", json=sent), 201)
    assert first["created"] is True
    assert {name: first[name] for name in ("name", "description", "metadata")} == {
        name: sent[name] for name in ("name", "description", "metadata")
    }
    assert first["chunking"] == {"target": 900, "min": 800, "max": 1100, "overlap": 0}
    second = body_of(daemon.ask("PUT", "/v1/buckets/handbook", json={"name": "Other"}))
    assert second["created"] is False
    assert {**second, "created": True, "request_id": ""} == {**first, "request_id": ""}


def test_a_new_bucket_is_empty_and_says_so(daemon: Daemon) -> None:
    bucket = show(daemon)
    assert (bucket["slug"], bucket["name"], bucket["status"]) == ("inbox", "inbox", "active")
    assert (bucket["knowledgeIds"], bucket["memberCount"]) == ([], 0)
    assert bucket["counts"] == dict.fromkeys(("total", "file", "intents", "website", "qa", "retrievable"), 0)
    assert bucket["bucketStore"] == {
        "status": "empty",
        "member_count": 0,
        "indexed_member_count": 0,
        "pending_member_count": 0,
        "failed_member_count": 0,
        "rechunking_member_count": 0,
    }
    assert bucket["teamId"] == daemon.team_id
    assert all(TIMESTAMP.fullmatch(bucket[name]) for name in ("createdAt", "updatedAt"))


def test_racing_puts_make_one_bucket(daemon: Daemon) -> None:
    puts = [daemon.asking("PUT", "/v1/buckets/race", json={"name": str(number)}) for number in range(20)]
    answers = daemon.ask_together(*puts)
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert [answer.json()["created"] for answer in answers].count(True) == 1
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert slugs(daemon) == ["inbox", "race"]


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_the_slug_of_an_archived_bucket_is_taken(daemon: Daemon, method: str) -> None:
    daemon.make_bucket("attic")
    archive(daemon, "attic")
    path = "/v1/buckets" if method == "POST" else "/v1/buckets/attic"
    details = details_of(daemon.ask(method, path, json={"slug": "attic"}), "bucket_slug_exists")
    assert (details["slug"], details["status"]) == ("attic", "archived")


def test_a_repeated_post_replays(daemon: Daemon) -> None:
    def post(slug: str) -> Any:
        return daemon.ask("POST", "/v1/buckets", json={"slug": slug}, headers={"Idempotency-Key": "k1"})

    first, again = post("one"), post("one")
    made, replayed = body_of(first, 201), body_of(again)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert made.pop("request_id") != replayed.pop("request_id")
    assert made == replayed
    details_of(post("two"), "idempotency_key_conflict")


SLUGS = {
    "a": True,
    "0": True,
    "a-b": True,
    "a--b": True,
    "a" * 63: True,
    "a" * 64: False,
    "-a": False,
    "a-": False,
    "A": False,
    "a_b": False,
    "a.b": False,
    "bkt_1": False,
    "ä": False,
    "a\n": False,
    " a": False,
}


def test_a_slug_is_lower_case_letters_digits_and_inner_hyphens(shared: Daemon) -> None:
    for slug, is_good in SLUGS.items():
        posted = shared.ask("POST", "/v1/buckets", json={"slug": slug, "dry_run": True})
        put = shared.ask("PUT", f"/v1/buckets/{quote(slug)}", json={"dry_run": True})
        if is_good:
            assert body_of(posted)["valid"] and body_of(put)["valid"]
        else:
            assert (refused_field(posted), refused_field(put)) == ("slug", "slug")


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": "n" * 201}, "name"),
    ({"name": 7}, "name"),
    ({"description": "d" * 2001}, "description"),
    ({"metadata": []}, "metadata"),
    ({"metadata": "{}"}, "metadata"),
    ({"chunking": {"target": 5}}, "chunking.target"),
    ({"chunking": {"target": 900, "min": 1000}}, "chunking"),
    ({"chunking": {"overlap": 500}}, "chunking"),
    ({"dry_run": "true"}, "dry_run"),
    ({"team_id": "team_other"}, "team_id"),
]


def test_a_field_that_does_not_fit_is_named(shared: Daemon) -> None:
    for fields, path in BAD_FIELDS:
        assert refused_field(shared.ask("PUT", "/v1/buckets/never", json=fields)) == path
        assert refused_field(shared.ask("POST", "/v1/buckets", json={"slug": "never", **fields})) == path
        details_of(shared.ask("GET", "/v1/buckets/never"), "bucket_not_found")


def test_null_is_a_field_that_was_not_sent(daemon: Daemon) -> None:
    nothing = dict.fromkeys(("name", "description", "metadata", "chunking", "dry_run"))
    made = body_of(daemon.ask("PUT", "/v1/buckets/plain", json=nothing), 201)
    assert (made["name"], made["description"], made["metadata"], made["chunking"]) == ("plain", "", {}, None)


def test_metadata_takes_exactly_8192_bytes(daemon: Daemon) -> None:
    exact = {"k": "v" * (8192 - len('{"k":""}'))}
    body_of(daemon.ask("PUT", "/v1/buckets/full", json={"metadata": exact}), 201)
    over = {"k": exact["k"] + "v"}
    for method, path in (("PUT", "/v1/buckets/over"), ("PATCH", "/v1/buckets/inbox")):
        details = details_of(daemon.ask(method, path, json={"metadata": over}), "metadata_too_large")
        assert details == {"max_bytes": 8192, "size_bytes": 8193}


def test_a_dry_run_is_refused_as_the_create_would_be(daemon: Daemon) -> None:
    daemon.make_bucket("attic")
    archive(daemon, "attic")
    dry = {"dry_run": True}
    details_of(daemon.ask("POST", "/v1/buckets", json={"slug": "inbox", **dry}), "bucket_slug_exists")
    details_of(daemon.ask("PUT", "/v1/buckets/attic", json=dry), "bucket_slug_exists")
    limited = daemon.add_key(buckets=(show(daemon)["id"],))
    details_of(daemon.ask("PUT", "/v1/buckets/new", json=dry, key=limited), "forbidden_project_key")


def test_archived_buckets_are_shown_but_not_listed(daemon: Daemon) -> None:
    daemon.make_bucket("attic")
    archive(daemon, "attic")
    assert show(daemon, "attic")["status"] == "archived"
    assert slugs(daemon) == ["inbox"]
    assert slugs(daemon, include_archived="true") == ["inbox", "attic"]
    assert refused_field(daemon.ask("GET", "/v1/buckets?include_archived=maybe")) == "include_archived"
    body_of(daemon.ask("PATCH", "/v1/buckets/attic", json={"status": "active"}))
    assert slugs(daemon) == ["inbox", "attic"]


def test_an_archived_bucket_takes_in_nothing_and_is_not_searched(working: Daemon) -> None:
    source_id = working.add_ready()
    archive(working, "inbox")
    assert details_of(working.upload(), "bucket_not_found")["status"] == "archived"
    details_of(working.ask("POST", "/v1/buckets/inbox/sources", json={"source_id": source_id}), "bucket_not_found")
    details_of(working.search("quay", buckets=["inbox"]), "bucket_not_found")
    assert working.found("quay") == []
    assert working.members() == [source_id]
    body_of(working.ask("PATCH", "/v1/buckets/inbox", json={"status": "active"}))
    assert working.found("quay") == [source_id]


def test_a_page_of_buckets_leads_to_the_next(daemon: Daemon) -> None:
    made = [daemon.make_bucket(slug) for slug in ("inbox", "b", "c", "d")]
    page = body_of(daemon.ask("GET", "/v1/buckets?limit=2"))
    assert [bucket["id"] for bucket in page["buckets"]] == made[:2]
    assert (page["has_more"], page["last_id"]) == (True, made[1])
    rest = body_of(daemon.ask("GET", f"/v1/buckets?limit=2&after={made[1]}"))
    assert [bucket["id"] for bucket in rest["buckets"]] == made[2:]
    assert (rest["has_more"], rest["last_id"]) == (False, made[3])
    past = body_of(daemon.ask("GET", f"/v1/buckets?limit=1&after={made[3]}"))
    assert (past["buckets"], past["has_more"], past["last_id"]) == ([], False, None)
    everything = body_of(daemon.ask("GET", "/v1/buckets"))
    assert not {"has_more", "last_id"} & set(everything)


def test_a_limit_out_of_range_is_refused(shared: Daemon) -> None:
    for limit, path in product(
        ["0", "-1", "1001", "", "ten", "1.0", "٣", " 5", "9" * 5000], ["/v1/buckets", "/v1/buckets/inbox/sources"]
    ):
        assert refused_field(shared.ask("GET", path, params={"limit": limit})) == "limit"


def test_a_limit_at_its_bounds_is_taken(shared: Daemon) -> None:
    for limit in ["1", "1000"]:
        assert body_of(shared.ask("GET", "/v1/buckets", params={"limit": limit}))["has_more"] is False


def test_a_patch_changes_what_it_names(daemon: Daemon) -> None:
    before = show(daemon)
    daemon.advance(1)
    after = body_of(daemon.ask("PATCH", "/v1/buckets/inbox", json={"name": "In", "metadata": {"b": 2}}))
    assert (after["name"], after["metadata"], after["description"]) == ("In", {"b": 2}, "")
    assert after["revision"] > before["revision"]
    assert after["updatedAt"] > before["updatedAt"]
    after.pop("request_id")
    assert {**show(daemon), "request_id": ""} == {**after, "request_id": ""}


@pytest.mark.parametrize("change", [{}, {"name": None}, {"unknown": 1}])
def test_a_patch_without_fields_changes_nothing(daemon: Daemon, change: dict[str, Any]) -> None:
    before = show(daemon)
    daemon.advance(1)
    after = body_of(daemon.ask("PATCH", "/v1/buckets/inbox", json=change))
    assert {**after, "request_id": ""} == {**before, "request_id": ""}


def test_a_patch_that_does_not_fit_is_refused(shared: Daemon) -> None:
    cases: list[dict[str, Any]] = [{"status": "deleting"}, {"status": "gone"}, {"name": ""}, {"metadata": 1}]
    for change in cases:
        assert refused_field(shared.ask("PATCH", "/v1/buckets/inbox", json=change)) == next(iter(change))


def test_a_bucket_that_is_not_there_is_told(shared: Daemon) -> None:
    cases: list[str] = ["missing", "bkt_00000000000000000000000000", "a%0A", "x" * 500]
    for bucket, method in product(cases, ["GET", "PATCH"]):
        options: dict[str, Any] = {"json": {"name": "x"}} if method == "PATCH" else {}
        details_of(shared.ask(method, f"/v1/buckets/{bucket}", **options), "bucket_not_found")


def test_another_teams_bucket_is_as_if_missing(daemon: Daemon) -> None:
    theirs = daemon.add_team()
    other_id = daemon.make_bucket("theirs", key=theirs)
    assert slugs(daemon) == ["inbox"]
    assert slugs(daemon, key=theirs) == ["theirs"]
    foreign = daemon.ask("GET", f"/v1/buckets/{other_id}").text
    missing_id = f"{other_id[:-6]}zzzzzz"
    missing = daemon.ask("GET", f"/v1/buckets/{missing_id}").text
    assert _nameless(foreign, other_id) == _nameless(missing, missing_id)


def _nameless(text: str, named: str) -> str:
    return re.sub(r"req_\w+", "req", text).replace(named, "ID")


def test_a_limited_key_reaches_its_buckets_alone(daemon: Daemon) -> None:
    mine = daemon.make_bucket("mine")
    limited = daemon.add_key(buckets=(mine,))
    assert slugs(daemon, key=limited) == ["mine"]
    details_of(daemon.ask("GET", "/v1/buckets/inbox", key=limited), "bucket_not_found")
    details_of(daemon.ask("PATCH", "/v1/buckets/inbox", key=limited, json={"name": "x"}), "bucket_not_found")
    details_of(daemon.upload(key=limited), "bucket_not_found")


def test_a_limited_key_may_put_what_it_has_and_make_nothing(daemon: Daemon) -> None:
    mine = daemon.make_bucket("mine")
    limited = daemon.add_key(buckets=(mine,))
    again = body_of(daemon.ask("PUT", "/v1/buckets/mine", key=limited))
    assert (again["id"], again["created"]) == (mine, False)
    for slug in ("inbox", "new"):
        details_of(daemon.ask("PUT", f"/v1/buckets/{slug}", key=limited), "forbidden_project_key")
        details_of(daemon.ask("POST", "/v1/buckets", key=limited, json={"slug": slug}), "forbidden_project_key")
    assert slugs(daemon) == ["inbox", "mine"]


NEEDED = [
    ("PUT", "/v1/buckets/new", api_keys.BUCKET_CREATE),
    ("POST", "/v1/buckets", api_keys.BUCKET_CREATE),
    ("PATCH", "/v1/buckets/inbox", api_keys.BUCKET_UPDATE),
]


@pytest.mark.parametrize("path", ["/v1/buckets", "/v1/buckets/inbox", "/v1/knowledge/buckets"])
def test_a_view_without_members_has_all_else(working: Daemon, path: str) -> None:
    working.add_ready()
    whole, bare = (body_of(working.ask("GET", path, params=query)) for query in ({}, {"members": "false"}))
    for answer in (whole, bare):
        del answer["request_id"]
    views = [whole] if "slug" in whole else whole["buckets"]
    assert [len(view.pop("knowledgeIds")) for view in views] == [1]
    assert bare == whole
    assert refused_field(working.ask("GET", path, params={"members": "none"})) == "members"
    assert "knowledgeIds" in working.ask("GET", path, params={"members": "true"}).text


def test_counts_agree_with_each_other_and_with_the_listing(working: Daemon) -> None:
    ready = [working.add_ready(), working.add_ready(b"Another quay.\n", filename="b.txt")]
    failed = working.add_source(b" \n", filename="blank.txt")
    working.wait_status(failed, "failed")
    working.stop()
    queued = working.add_source(b"A third.\n")
    bucket = show(working)
    assert bucket["knowledgeIds"] == working.members() == ready
    assert bucket["memberCount"] == len(ready)
    assert (bucket["counts"]["total"], bucket["counts"]["file"], bucket["counts"]["retrievable"]) == (4, 4, 2)
    assert bucket["bucketStore"] == {
        "status": "indexing",
        "member_count": 4,
        "indexed_member_count": 2,
        "pending_member_count": 1,
        "failed_member_count": 1,
        "rechunking_member_count": 0,
    }
    assert working.members(status="all") == [*ready, failed, queued]


def test_the_answers_are_of_the_model(daemon: Daemon) -> None:
    for answer in (daemon.ask("GET", "/v1/buckets/inbox"), daemon.ask("PATCH", "/v1/buckets/inbox", json={})):
        assert BucketAnswer.model_validate(answer.json(), extra="forbid")
