"""Buckets over the API, and that a deleted one is out of reach from the answer on."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import Daemon

BUCKETS, INBOX, FORCE = "/v1/buckets", "/v1/buckets/inbox", {"force": "true"}


def put(daemon: Daemon, slug: str, **options: Any) -> httpx.Response:
    return daemon.ask("PUT", f"{BUCKETS}/{slug}", **options)


def slugs(daemon: Daemon, key: str | None = None, **query: str) -> list[str]:
    return [bucket["slug"] for bucket in daemon.show(BUCKETS, key=key, **query)["buckets"]]


def add_archived(daemon: Daemon, slug: str) -> None:
    daemon.make_bucket(slug)
    daemon.patch(f"{BUCKETS}/{slug}", status="archived")


@pytest.mark.rule("buckets.put")
def test_a_put_makes_the_bucket_once(shared: Daemon) -> None:
    sent: dict[str, Any] = {"name": "Handbook", "description": "Rules.", "chunking": {"target": 900}}
    sent |= {"metadata": {"a": [1, None, {"ü": True}]}}
    first = body_of(put(shared, "handbook", json=sent), 201)
    expected = {**sent, "created": True, "chunking": {"target": 900, "min": 800, "max": 1100, "overlap": 0}}
    assert {name: first[name] for name in expected} == expected
    second = body_of(put(shared, "handbook", json={"name": "Other"}))
    assert without_id(second) == without_id(first) | {"created": False}


@pytest.mark.rule("buckets.put")
def test_racing_puts_make_one_bucket(daemon: Daemon) -> None:
    puts = [daemon.asking("PUT", f"{BUCKETS}/race", json={"name": str(number)}) for number in range(20)]
    answers = [(answer.status_code, answer.json()) for answer in daemon.ask_together(*puts)]
    assert sorted((status, body["created"]) for status, body in answers) == [(200, False)] * 19 + [(201, True)]
    assert len({body["id"] for _, body in answers}) == 1
    assert slugs(daemon) == ["inbox", "race"]


@pytest.mark.rule("bucket_slug_exists")
def test_the_slug_of_an_archived_bucket_is_taken(shared: Daemon) -> None:
    add_archived(shared, "attic")
    dry = {"dry_run": True}
    for body in ({}, dry):
        refused = put(shared, "attic", json=body), shared.ask("POST", BUCKETS, json={"slug": "attic", **body})
        for answer in refused:
            details = details_of(answer, "bucket_slug_exists")
            assert (details["slug"], details["status"]) == ("attic", "archived")
    details_of(shared.ask("POST", BUCKETS, json={"slug": "inbox", **dry}), "bucket_slug_exists")
    limited = shared.add_key(buckets=(shared.make_bucket(),))
    details_of(put(shared, "new", json=dry, key=limited), "forbidden_project_key")


@pytest.mark.rule("endpoint.idempotency")
@pytest.mark.parametrize("attaches", [False, True])
def test_a_request_that_needs_no_idempotency_key_checks_it_and_claims_nothing(daemon: Daemon, attaches: bool) -> None:
    body, before = {"source_id": daemon.add_source()}, daemon.count("idempotency")

    def ask(slug: str, repeat_key: str) -> httpx.Response:
        daemon.make_bucket(slug if attaches else "inbox")
        request = ("POST", f"{BUCKETS}/{slug}/sources") if attaches else ("PUT", f"{BUCKETS}/{slug}")
        return daemon.ask(*request, repeat_key=repeat_key, json=body if attaches else {})

    for bad in ("", "two words", "ä".encode().decode("latin-1"), "x" * 256):
        details_of(ask("one", bad), "invalid_idempotency_key")
    answers = [ask(slug, "k") for slug in ("one", "one", "two")]
    assert {answer.is_success for answer in answers} == {True}
    assert not any("Idempotent-Replayed" in answer.headers for answer in answers)
    assert daemon.count("idempotency") == before
    body_of(daemon.upload(repeat_key="k"), 201)


def test_a_slug_is_lower_case_letters_digits_and_inner_hyphens(shared: Daemon) -> None:
    good = ("a", "0", "a-b", "a--b", "a" * 63)
    for slug in (*good, "a" * 64, "-", "-a", "a-", "A", "a_b", "a.b", "bkt_1", "ä", "a\n", " a", "a b", "\u0661"):
        posted = shared.ask("POST", BUCKETS, json={"slug": slug, "dry_run": True})
        answers = (posted, put(shared, quote(slug), json={"dry_run": True}))
        if slug in good:
            assert [body_of(answer)["valid"] for answer in answers] == [True, True], slug
        else:
            assert [refused_field(answer) for answer in answers] == ["slug", "slug"], slug


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    *(({"name": name}, "name") for name in ("", "n" * 201, 7)),
    ({"description": "d" * 2001}, "description"),
    ({"metadata": []}, "metadata"),
    ({"metadata": "{}"}, "metadata"),
    *(({"chunking": {"target": size}}, "chunking.target") for size in (5, "1000", 1000.5)),
    *(({"chunking": sizes}, "chunking") for sizes in ({"target": 900, "min": 1000}, {"overlap": 500})),
    ({"chunking": []}, "chunking"),
    *(({"chunking": sizes}, "chunking.size") for sizes in ({"size": 300}, {"target": 900, "size": 300})),
    ({"chunking": {"max": "many"}}, "chunking.max"),
    *(({"dry_run": flag}, "dry_run") for flag in ("true", 1)),
    ({"team_id": "team_other"}, "team_id"),
]


def test_a_field_that_does_not_fit_is_named(shared: Daemon) -> None:
    for fields, path in BAD_FIELDS:
        assert refused_field(put(shared, "never", json=fields)) == path, fields
        assert refused_field(shared.ask("POST", BUCKETS, json={"slug": "never", **fields})) == path, fields
        if "dry_run" not in fields:
            assert refused_field(shared.ask("PATCH", INBOX, json=fields)) == path, fields
    details_of(shared.ask("GET", f"{BUCKETS}/never"), "bucket_not_found")
    for status in ("deleting", "gone"):
        assert refused_field(shared.ask("PATCH", INBOX, json={"status": status})) == "status", status


def test_null_is_a_field_that_was_not_sent(shared: Daemon) -> None:
    nothing = dict.fromkeys(("name", "description", "metadata", "chunking", "dry_run"))
    made = body_of(put(shared, "plain", json=nothing), 201)
    assert (made["name"], made["description"], made["metadata"], made["chunking"]) == ("plain", "", {}, None)


@pytest.mark.rule("limit.metadata")
def test_metadata_takes_exactly_8192_bytes(shared: Daemon) -> None:
    exact = {"k": "v" * (8192 - len('{"k":""}'))}
    body_of(put(shared, "full", json={"metadata": exact}), 201)
    for method, path in (("PUT", f"{BUCKETS}/over"), ("PATCH", INBOX)):
        answer = shared.ask(method, path, json={"metadata": {"k": exact["k"] + "v"}})
        assert details_of(answer, "metadata_too_large") == {"max_bytes": 8192, "size_bytes": 8193}


@pytest.mark.rule("bucket.status")
def test_archived_buckets_are_shown_but_not_listed(daemon: Daemon) -> None:
    add_archived(daemon, "attic")
    assert daemon.show(f"{BUCKETS}/attic")["status"] == "archived"
    assert (slugs(daemon), slugs(daemon, include_archived="true")) == (["inbox"], ["inbox", "attic"])
    assert refused_field(daemon.ask("GET", f"{BUCKETS}?include_archived=maybe")) == "include_archived"
    daemon.patch(f"{BUCKETS}/attic", status="active")
    assert slugs(daemon) == ["inbox", "attic"]


@pytest.mark.rule("error.archived", "bucket_not_found")
def test_an_archived_bucket_takes_in_nothing_and_is_not_searched(working: Daemon) -> None:
    source_id = working.add_ready()
    working.patch(INBOX, status="archived")
    assert details_of(working.upload(), "bucket_not_found")["status"] == "archived"
    details_of(working.ask("POST", f"{INBOX}/sources", json={"source_id": source_id}), "bucket_not_found")
    details_of(working.search("quay", buckets=["inbox"]), "bucket_not_found")
    assert (working.found("quay"), working.members()) == ([], [source_id])
    working.patch(INBOX, status="active")
    assert working.found("quay") == [source_id]


def test_a_patch_changes_what_it_names(daemon: Daemon) -> None:
    before = daemon.show(INBOX)
    daemon.advance(1)
    unnamed: list[dict[str, Any]] = [{}, {"name": None}, {"unknown": 1}]
    for change in unnamed:
        assert without_id(daemon.patch(INBOX, **change)) == without_id(before)
    after = daemon.patch(INBOX, name="In", metadata={"b": 2})
    assert (after["name"], after["metadata"], after["description"]) == ("In", {"b": 2}, "")
    assert after["revision"] > before["revision"]
    assert after["updatedAt"] > before["updatedAt"]
    assert without_id(daemon.show(INBOX)) == without_id(after)


@pytest.mark.rule("bucket.members")
def test_a_view_without_members_has_all_else(working: Daemon) -> None:
    working.add_ready()
    for path in (BUCKETS, INBOX, "/v1/knowledge/buckets"):
        whole, bare = (without_id(working.show(path, **query)) for query in ({}, {"members": "false"}))
        views = [whole] if "slug" in whole else whole["buckets"]
        assert [len(view.pop("knowledgeIds")) for view in views] == [1]
        assert bare == whole
        assert refused_field(working.ask("GET", path, params={"members": "none"})) == "members"
        assert "knowledgeIds" in working.ask("GET", path, params={"members": "true"}).text


def delete(daemon: Daemon, bucket: str = "inbox", **options: Any) -> dict[str, Any]:
    return body_of(daemon.ask("DELETE", f"/v1/buckets/{bucket}", params=FORCE, **options))


@pytest.mark.rule("deletion.force", "deletion.again", "buckets.delete", "delete_in_progress")
def test_the_answer_shows_the_deletion_and_the_next_call_its_task(daemon: Daemon) -> None:
    bucket_id = daemon.make_bucket()
    daemon.add_source()
    answer = without_id(delete(daemon))
    deletion = answer.pop("deletion")
    assert answer == {"id": bucket_id, "slug": "inbox", "object": "bucket", "status": "deleting"}
    task_id = deletion.pop("task_id")
    assert deletion == {"total": 1, "deleted": 0, "detached": 0, "failed": 0}
    task = daemon.show(f"/v1/knowledge/tasks/{task_id}")
    assert (task["type"], task["status"], task["bucket_id"]) == ("bucket_delete_cascade", "queued", bucket_id)
    details = details_of(daemon.ask("DELETE", INBOX, params=FORCE), "delete_in_progress")
    assert details == {"task_id": task_id, "retry_after_seconds": 1}
    details_of(daemon.ask("PATCH", INBOX, json={"name": "x"}), "delete_in_progress")


@pytest.mark.rule("deletion.force", "force_required")
def test_without_force_nothing_happens(daemon: Daemon) -> None:
    daemon.add_source()
    for params in ({}, {"force": "false"}):
        assert details_of(daemon.ask("DELETE", INBOX, params=params), "force_required") == {"member_count": 1}
    assert refused_field(daemon.ask("DELETE", INBOX, params={"force": "yes"})) == "force"
    assert daemon.show(INBOX)["status"] == "active"


@pytest.mark.rule("service.path")
@pytest.mark.parametrize("by_id", (True, False))
def test_an_archived_bucket_can_be_deleted_by_either_name(shared: Daemon, by_id: bool) -> None:
    slug = f"archived-{by_id}".lower()
    bucket_id = shared.make_bucket(slug)
    shared.patch(f"/v1/buckets/{slug}", status="archived")
    assert delete(shared, bucket_id if by_id else slug)["status"] == "deleting"


def test_from_the_answer_on_nothing_finds_or_lists_it(working: Daemon) -> None:
    lone, shared = working.add_ready(), working.add_ready()
    second = working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": shared})
    working.wait_ready(shared)
    working.stop()
    delete(working)
    assert working.found("quay") == [shared]
    details_of(working.search("quay", buckets=["inbox"]), "bucket_not_found")
    details_of(working.ask("GET", f"{INBOX}/sources"), "bucket_not_found")
    for query in ({}, {"include_archived": "true"}):
        assert [bucket["slug"] for bucket in working.show("/v1/buckets", **query)["buckets"]] == ["second"]
    for source_id, expected in ((lone, (False, [])), (shared, (True, [second]))):
        source = working.source(source_id)
        assert (source["ready"], source["bucket_ids"]) == expected
    shown = working.show(INBOX)
    assert (shown["status"], shown["knowledgeIds"], shown["counts"]["retrievable"]) == ("deleting", [], 0)


def test_a_search_that_began_before_the_answer_misses_it_too(working: Daemon) -> None:
    working.add_ready()
    with working.provider.held("search") as hold:
        search = working.loop.begin(working.asking("POST", "/v1/search", json={"query": "quay"})())
        hold.wait_entered()
        working.stop()
        delete(working)
    assert body_of(search.result(PATIENCE_S))["data"] == []


def test_nothing_new_comes_into_it_and_its_sources_can_be_deleted(daemon: Daemon) -> None:
    daemon.make_bucket("second")
    inside, outside = daemon.add_source(), daemon.add_source(bucket="second")
    delete(daemon)
    details_of(daemon.upload(), "bucket_not_found")
    details_of(daemon.ask("POST", f"{INBOX}/sources", json={"source_id": outside}), "bucket_not_found")
    session = {"filename": "a.txt", "size_bytes": 1}
    details_of(daemon.ask("POST", f"{INBOX}/uploads", json=session), "bucket_not_found")
    assert details_of(daemon.ask("PUT", INBOX), "bucket_slug_exists")["status"] == "deleting"
    daemon.delete(f"/v1/sources/{inside}")
    assert (daemon.count("sources"), daemon.count("memberships")) == (1, 1)


def test_a_key_needs_the_bucket_to_delete_it_and_to_see_the_task(daemon: Daemon) -> None:
    kept = daemon.add_key(buckets=(daemon.make_bucket(),))
    elsewhere = daemon.add_key(buckets=(daemon.make_bucket("second"),))
    for key in (elsewhere, daemon.add_team()):
        details_of(daemon.ask("DELETE", INBOX, params=FORCE, key=key), "bucket_not_found")
    path = f"/v1/knowledge/tasks/{delete(daemon, key=kept)['deletion']['task_id']}"
    assert daemon.show(path, key=kept)["type"] == "bucket_delete_cascade"
    details_of(daemon.ask("GET", path, key=elsewhere), "task_not_found")
