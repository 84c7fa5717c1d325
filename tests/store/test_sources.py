"""Sources: written and read whole, kept apart by team, listed by every filter."""

import random
import sqlite3
from dataclasses import fields, replace
from sqlite3 import Connection
from typing import Any

import pytest

from svc_daemon.errors import NotFound
from svc_daemon.store.candidates import FoundSource, list_active_sources
from svc_daemon.store.memberships import delete_membership
from svc_daemon.store.sources import (
    SourceFilter,
    SourceRow,
    delete_source,
    find_page,
    find_source,
    get_source,
    list_all_blobs,
    list_all_ids,
    list_replacing,
    list_sources,
    update_content,
    update_description,
    update_state,
)
from svc_daemon.store.tombstones import create_tombstone
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_bucket, add_source, add_task, make_source, plan

FULL: dict[str, Any] = {
    "type": "page",
    "generation": 3,
    "tags": ("a", 'with "quotes"', "ü"),
    "metadata": {"k": [1, {"deep": None}], "ü": "ö"},
    "mapping": "handbook",
    "source_url": "https://example.com/?a=%20",
    "url_key": "https://example.com/?a=%20",
    "fetched": {"final_url": "https://example.com/", "http_status": 200, "etag": None},
    "qa": {"question": "Why?", "answer": "ü", "alternate_questions": []},
    "webhook": {"url": "https://example.com/hook", "metadata": {"ü": 1}},
    "replaces": "src_0",
}


def _listed(connection: Connection, bucket_id: str, **chosen: Any) -> list[str]:
    return [
        source.id.removeprefix("src_")
        for source in list_sources(connection, OURS, bucket_id, SourceFilter(**{"status": "all", **chosen}))
    ]


def test_a_source_reads_back_as_it_was_written(connection: Connection) -> None:
    source = add_source(connection, "1", **FULL)
    assert find_source(connection, OURS, source.id) == source


def test_a_source_is_seen_with_its_places_and_its_task(connection: Connection) -> None:
    buckets = [add_bucket(connection, slug) for slug in ("b", "a")]
    task = add_task(connection, "1")
    source = add_source(connection, "1", *buckets, sync="syncing", task_id=task.id)
    found = get_source(connection, OURS, source.id)
    assert (found.task_type, found.task_status) == (task.type, "queued")
    assert list(found.places.items()) == [(bucket.id, "syncing") for bucket in reversed(buckets)]
    assert found.sync_status == "syncing"
    assert not found.ready


def test_ready_needs_every_place_and_at_least_one(connection: Connection) -> None:
    one, two = add_bucket(connection, "a"), add_bucket(connection, "b")
    source = add_source(connection, "1", one, two, sync="active", status="active")
    assert get_source(connection, OURS, source.id).ready
    delete_membership(connection, source.id, one.id)
    assert get_source(connection, OURS, source.id).ready
    delete_membership(connection, source.id, two.id)
    alone = get_source(connection, OURS, source.id)
    assert (alone.ready, alone.places, alone.sync_status) == (False, {}, "queued")


def test_another_teams_source_does_not_exist(connection: Connection) -> None:
    source = add_source(connection, "1")
    theirs = replace(source, team_id=THEIRS)
    assert find_source(connection, THEIRS, source.id) is None
    with pytest.raises(NotFound) as missing:
        get_source(connection, THEIRS, source.id)
    assert (missing.value.code, missing.value.details) == ("source_not_found", {})
    update_description(connection, replace(theirs, title="stolen"))
    update_state(connection, replace(theirs, status="failed"))
    delete_source(connection, THEIRS, source.id)
    assert find_source(connection, OURS, source.id) == source
    assert list_active_sources(connection, THEIRS, [source.id]) == {}
    assert list_replacing(connection, THEIRS, "src_0") == []


def test_a_replaced_source_names_its_successor_to_its_own_team(connection: Connection) -> None:
    add_source(connection, "new")
    create_tombstone(connection, OURS, "src_old", "src_new", NOW)
    with pytest.raises(NotFound) as missing:
        get_source(connection, OURS, "src_old")
    assert missing.value.details == {"replaced_by": "src_new"}
    with pytest.raises(NotFound) as foreign:
        get_source(connection, THEIRS, "src_old")
    assert foreign.value.details == {}


def test_describing_and_moving_write_their_own_fields_only(connection: Connection) -> None:
    source = add_source(connection, "1", **FULL)
    changed = replace(
        source,
        title="new",
        filename="new.txt",
        tags=("x",),
        metadata={},
        status="active",
        generation=4,
        content_type="text/html",
        error={"code": "c", "message": "m", "retryable": True},
        warnings=("page 2 has no text",),
        extraction={"chunks": 3},
        replaces=None,
        task_id="task_2",
        updated_at=LATER,
    )
    update_description(connection, changed)
    described = replace(source, title="new", filename="new.txt", tags=("x",), metadata={}, updated_at=LATER)
    assert find_source(connection, OURS, source.id) == described
    update_state(connection, changed)
    assert find_source(connection, OURS, source.id) == changed


def test_a_source_with_a_membership_cannot_be_deleted(connection: Connection) -> None:
    bucket = add_bucket(connection)
    source = add_source(connection, "1", bucket)
    with pytest.raises(Exception, match="FOREIGN KEY"):
        delete_source(connection, OURS, source.id)
    delete_membership(connection, source.id, bucket.id)
    delete_source(connection, OURS, source.id)
    delete_source(connection, OURS, source.id)
    assert list_all_ids(connection) == set()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("all", ["1", "2", "3", "4", "5"]),
        ("ready", ["4"]),
        ("queued", ["1"]),
        ("indexing", ["2"]),
        ("active", ["3", "4"]),
        ("failed", ["5"]),
    ],
)
def test_a_listing_filters_by_status(connection: Connection, status: str, expected: list[str]) -> None:
    bucket, other = add_bucket(connection), add_bucket(connection, "other")
    states = [("queued", "queued"), ("indexing", "queued"), ("active", "syncing"), ("active", "active")]
    for number, (state, sync) in enumerate([*states, ("failed", "queued")], start=1):
        add_source(connection, str(number), bucket, sync=sync, status=state)
    add_source(connection, "6", other, sync="active", status="active")
    assert _listed(connection, bucket.id, status=status) == expected


def test_ready_in_a_listing_is_that_of_this_bucket(connection: Connection) -> None:
    bucket, other = add_bucket(connection), add_bucket(connection, "other")
    source = add_source(connection, "1", bucket, other, sync="active", status="active")
    connection.execute("UPDATE memberships SET sync_status = 'queued' WHERE bucket_id = ?", (other.id,))
    assert _listed(connection, bucket.id, status="ready") == ["1"]
    assert _listed(connection, other.id, status="ready") == []
    assert not get_source(connection, OURS, source.id).ready


TAGS = {
    "1": ("alpha", "beta"),
    "2": ("Alpha",),
    "3": ("alphabet", "al"),
    "4": ("%", "_", "a_b"),
    "5": ('say "hi"', "back\\slash", 'a "b'),
    "6": ("Grün", "b"),
    "7": (),
    "8": ("a,b", "axb", "[", "null", "1"),
}


@pytest.mark.parametrize(
    "tag", sorted({tag for tags in TAGS.values() for tag in tags} | {"ALPHA", "grün", "hi", '"', "", "A_B", "\\", "é"})
)
def test_a_listing_by_tag_has_exactly_the_sources_with_that_tag(connection: Connection, tag: str) -> None:
    bucket = add_bucket(connection)
    for name, tags in TAGS.items():
        add_source(connection, name, bucket, tags=tags)
    assert _listed(connection, bucket.id, tag=tag) == [name for name, tags in TAGS.items() if tag in tags]


TITLES = {
    "1": ("100% sure", "a.txt"),
    "2": ("under_score", "b.txt"),
    "3": ("say \"hi\" 'there'", "c.txt"),
    "4": ("back\\slash", "d.txt"),
    "5": ("Über Größe", "E.TXT"),
    "6": ("ΔΈΛΤΑ Жизнь", "f.md"),
    "7": ("", "under the score.pdf"),
}
WORDS = ["%", "_", "100%", "r_s", "r s", '"hi"', "'", "\\", "k\\s", "--", "';", "%%", "a%e", "sure", "x", "under", ""]
WORDS += ["ÜBER", "über", "GRÖSS", "größe", "δέλτα", "ЖИЗНЬ", "TXT", "e.txt", ".md"]


@pytest.mark.parametrize("q", WORDS)
def test_a_listing_by_words_takes_them_at_their_letter_in_any_case(connection: Connection, q: str) -> None:
    bucket = add_bucket(connection)
    for name, (title, filename) in TITLES.items():
        add_source(connection, name, bucket, title=title, filename=filename)
    expected = [name for name, texts in TITLES.items() if any(q.lower() in text.lower() for text in texts)]
    assert _listed(connection, bucket.id, q=q) == expected


def test_a_listing_filters_by_each_exact_field_and_by_all_together(connection: Connection) -> None:
    bucket = add_bucket(connection)
    add_source(connection, "1", bucket, title="a", sha256="1" * 64, mapping="m", type="page", tags=("t",))
    add_source(connection, "2", bucket, title="A", sha256="2" * 64, mapping="M")
    add_source(connection, "3", bucket, title="a%", sha256="1" * 64)
    assert _listed(connection, bucket.id, title="a") == ["1"]
    assert _listed(connection, bucket.id, sha256="1" * 64) == ["1", "3"]
    assert _listed(connection, bucket.id, mapping="M") == ["2"]
    assert _listed(connection, bucket.id, type="page") == ["1"]
    every = {"title": "a", "sha256": "1" * 64, "mapping": "m", "type": "page", "tag": "t", "q": "A"}
    assert _listed(connection, bucket.id, **every) == ["1"]
    assert _listed(connection, bucket.id, **every, after="src_1") == []


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_put_together_are_the_whole_list(connection: Connection, limit: int) -> None:
    bucket, chance = add_bucket(connection), random.Random(limit)
    names = [f"{number:03}" for number in chance.sample(range(1000), 23)]
    for name in names:
        add_source(connection, name, bucket, sync=chance.choice(["active", "queued", "failed"]))
    pages: list[str] = []
    while page := _listed(connection, bucket.id, limit=limit, after=f"src_{pages[-1]}" if pages else ""):
        assert len(page) <= limit
        pages += page
    assert pages == sorted(names) == _listed(connection, bucket.id)


def test_a_listing_never_shows_another_teams_bucket(connection: Connection) -> None:
    theirs = add_bucket(connection, team_id=THEIRS)
    add_source(connection, "1", theirs, team_id=THEIRS)
    assert _listed(connection, theirs.id) == []


def test_active_sources_are_found_by_id(connection: Connection) -> None:
    for name, status in (("1", "active"), ("2", "queued"), ("3", "active"), ("4", "failed")):
        add_source(connection, name, status=status)
    add_source(connection, "5", team_id=THEIRS, status="active")
    asked = ["src_1", "src_2", "src_4", "src_5", "src_6", "'; --"]
    assert set(list_active_sources(connection, OURS, asked)) == {"src_1"}
    assert list_active_sources(connection, OURS, []) == {}


def test_a_found_source_tells_what_the_whole_one_does(connection: Connection) -> None:
    add_source(connection, "1", add_bucket(connection), status="active", **FULL | {"valid_from": 2})
    whole = get_source(connection, OURS, "src_1")
    found = list_active_sources(connection, OURS, ["src_1"])["src_1"]
    assert {field.name: getattr(found, field.name) for field in fields(FoundSource)} == {
        field.name: getattr(whole, field.name) for field in fields(FoundSource)
    }


def test_those_that_wait_to_replace_a_source_are_found(connection: Connection) -> None:
    for name, replaces in (("2", "src_1"), ("3", "src_1"), ("4", "src_2"), ("5", None)):
        add_source(connection, name, replaces=replaces)
    assert [source.id for source in list_replacing(connection, OURS, "src_1")] == ["src_2", "src_3"]


def test_all_ids_are_those_of_every_team(connection: Connection) -> None:
    add_source(connection, "1")
    add_source(connection, "2", team_id=THEIRS)
    assert list_all_ids(connection) == {"src_1", "src_2"}


def test_sources_are_found_through_indexes(connection: Connection) -> None:
    queries = {
        "one": lambda: find_source(connection, OURS, "src_1"),
        "some": lambda: list_active_sources(connection, OURS, ["src_1"]),
        "replacing": lambda: list_replacing(connection, OURS, "src_1"),
        "members": lambda: list_sources(connection, OURS, "bkt_1", SourceFilter()),
    }
    steps = {name: plan(connection, query) for name, query in queries.items()}
    for name, step in steps.items():
        scanned = [line for line in step.splitlines() if line.startswith("SCAN") and "json_each" not in line]
        assert scanned == [], (name, step)
    assert "sources_replacing" in steps["replacing"]
    # The bucket's own members in their order, however many sources the team has elsewhere.
    assert "memberships_of_bucket (bucket_id=? AND source_id>?)" in steps["members"]
    assert "TEMP B-TREE" not in steps["members"]


def test_a_source_made_by_hand_equals_one_that_was_stored(connection: Connection) -> None:
    assert isinstance(add_source(connection, "1"), SourceRow)
    assert make_source("1") == find_source(connection, OURS, "src_1")


def test_a_team_has_one_page_under_each_key(connection: Connection) -> None:
    add_source(connection, "1", type="page", url_key="http://a.example/")
    assert find_page(connection, OURS, "http://a.example/") == "src_1"
    assert find_page(connection, THEIRS, "http://a.example/") is None
    with pytest.raises(sqlite3.IntegrityError):
        add_source(connection, "2", type="page", url_key="http://a.example/")
    add_source(connection, "3", team_id=THEIRS, type="page", url_key="http://a.example/")
    assert "sources_of_url" in plan(connection, lambda: find_page(connection, OURS, "http://a.example/"))


def test_new_content_is_written_and_nothing_else(connection: Connection) -> None:
    old = add_source(connection, "1", title="Old", fetched={"etag": "v1"}, webhook={"url": "u", "metadata": {}})
    new = replace(old, blob="blob_1", size_bytes=9, sha256="1" * 64, content_type="text/html", fetched={"etag": "v2"})
    update_content(connection, replace(new, title="New", status="active"))
    found = find_source(connection, OURS, "src_1")
    assert found == new
    assert found.blob_name == "blob_1"
    add_source(connection, "2")
    assert set(list_all_blobs(connection)) == {"blob_1", "src_2"}


def test_a_question_is_searched_in_no_bucket(connection: Connection) -> None:
    bucket = add_bucket(connection)
    for name, type_ in (("1", "qa"), ("2", "file"), ("3", "page")):
        add_source(connection, name, bucket, type=type_)
    found = [find_source(connection, OURS, f"src_{name}") for name in "123"]
    assert [source.searched_places for source in found if source] == [[], [bucket.id], [bucket.id]]
