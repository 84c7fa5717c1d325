"""Sources: written and read whole, kept apart by team, listed by every filter."""

import random
import sqlite3
from dataclasses import fields, replace
from sqlite3 import Connection
from typing import Any

import pytest

from svc_daemon.errors import NotFound
from svc_daemon.store import sources
from svc_daemon.store.candidates import FoundSource, list_active_sources
from svc_daemon.store.memberships import delete_membership
from svc_daemon.store.sources import SourceFilter, find_source, get_source
from svc_daemon.store.tombstones import create_tombstone
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_bucket, add_source, add_task, set_sync

URL = "https://example.com/?a=%20"
FULL: dict[str, Any] = {"type": "page", "generation": 3, "tags": ("a", 'with "quotes"', "ü"), "mapping": "handbook"}
FULL |= {"metadata": {"k": [1, {"deep": None}], "ü": "ö"}, "source_url": URL, "url_key": URL, "replaces": "src_0"}
FULL |= {"fetched": {"final_url": "https://example.com/", "http_status": 200, "etag": None}}
FULL |= {"qa": {"question": "Why?", "answer": "ü", "alternate_questions": []}}
FULL |= {"webhook": {"url": "https://example.com/hook", "metadata": {"ü": 1}}}


def _listed(db: Connection, bucket_id: str, **chosen: Any) -> list[str]:
    listed = sources.list_sources(db, OURS, bucket_id, SourceFilter(**{"status": "all", **chosen}))
    return [source.id.removeprefix("src_") for source in listed]


def test_a_source_is_read_as_it_was_written_with_its_places_and_its_task(db: Connection) -> None:
    whole = add_source(db, "1", **FULL)
    assert find_source(db, OURS, whole.id) == whole
    first, second = add_bucket(db, "a"), add_bucket(db, "b")
    task = add_task(db, "1")
    found = get_source(db, OURS, add_source(db, "2", second, first, sync="syncing", task_id=task.id).id)
    assert (found.task_type, found.task_status) == (task.type, "queued")
    assert (found.sync_status, found.ready) == ("syncing", False)
    assert list(found.places.items()) == [(first.id, "syncing"), (second.id, "syncing")]


def test_ready_needs_every_place_and_at_least_one(db: Connection) -> None:
    one, two = add_bucket(db, "a"), add_bucket(db, "b")
    source = add_source(db, "1", one, two, sync="active", status="active")
    assert get_source(db, OURS, source.id).ready
    delete_membership(db, source.id, one.id)
    assert get_source(db, OURS, source.id).ready
    delete_membership(db, source.id, two.id)
    alone = get_source(db, OURS, source.id)
    assert (alone.ready, alone.places, alone.sync_status) == (False, {}, "queued")


def test_another_teams_source_does_not_exist(db: Connection) -> None:
    source = add_source(db, "1", status="active", replaces="src_0")
    theirs = replace(source, team_id=THEIRS)
    assert find_source(db, THEIRS, source.id) is None
    with pytest.raises(NotFound) as missing:
        get_source(db, THEIRS, source.id)
    assert (missing.value.code, missing.value.details) == ("source_not_found", {})
    sources.update_description(db, replace(theirs, title="stolen"))
    sources.update_state(db, replace(theirs, status="failed"))
    sources.delete_source(db, THEIRS, source.id)
    assert find_source(db, OURS, source.id) == source
    assert list_active_sources(db, THEIRS, [source.id]) == {}
    assert sources.list_replacing(db, THEIRS, "src_0") == []
    bucket = add_bucket(db, team_id=THEIRS)
    add_source(db, "2", bucket, team_id=THEIRS)
    assert _listed(db, bucket.id) == []
    assert sources.list_all_ids(db) == {"src_1", "src_2"}


def test_a_replaced_source_names_its_successor_to_its_own_team(db: Connection) -> None:
    add_source(db, "new")
    create_tombstone(db, OURS, "src_old", "src_new", NOW)
    for team_id, details in ((OURS, {"replaced_by": "src_new"}), (THEIRS, {})):
        with pytest.raises(NotFound) as missing:
            get_source(db, team_id, "src_old")
        assert missing.value.details == details


def test_describing_and_moving_write_their_own_fields_only(db: Connection) -> None:
    source = add_source(db, "1", **FULL)
    description: dict[str, Any] = {
        "title": "new",
        "filename": "new.txt",
        "tags": ("x",),
        "metadata": {},
        "updated_at": LATER,
    }
    error = {"code": "c", "message": "m", "retryable": True}
    state: dict[str, Any] = {
        "status": "active",
        "generation": 4,
        "content_type": "text/html",
        "error": error,
        "task_id": "task_2",
    }
    state |= {"warnings": ("page 2 has no text",), "extraction": {"chunks": 3}, "replaces": None}
    changed = replace(source, **{**description, **state})
    sources.update_description(db, changed)
    assert find_source(db, OURS, source.id) == replace(source, **description)
    sources.update_state(db, changed)
    assert find_source(db, OURS, source.id) == changed


def test_a_source_with_a_membership_cannot_be_deleted(db: Connection) -> None:
    bucket = add_bucket(db)
    source = add_source(db, "1", bucket)
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        sources.delete_source(db, OURS, source.id)
    delete_membership(db, source.id, bucket.id)
    sources.delete_source(db, OURS, source.id)
    sources.delete_source(db, OURS, source.id)
    assert sources.list_all_ids(db) == set()


#: Status and sync of the source: under which of the listed statuses it is.
STATES = {
    ("queued", "queued"): {"queued"},
    ("indexing", "queued"): {"indexing"},
    ("active", "syncing"): {"active"},
    ("active", "active"): {"active", "ready"},
    ("failed", "queued"): {"failed"},
}


def test_a_listing_filters_by_status_and_ready_is_that_of_this_bucket(db: Connection) -> None:
    bucket, other = add_bucket(db), add_bucket(db, "other")
    for status, sync in STATES:
        add_source(db, f"{status}-{sync}", bucket, sync=sync, status=status)
    both = add_source(db, "both", bucket, other, sync="active", status="active")
    set_sync(db, "queued", both.id, other.id)
    for status in ("ready", "queued", "indexing", "active", "failed"):
        expected = sorted(f"{state}-{sync}" for (state, sync), listed in STATES.items() if status in listed)
        here = expected + (["both"] if status in STATES["active", "active"] else [])
        assert _listed(db, bucket.id, status=status) == sorted(here), status
        assert _listed(db, other.id, status=status) == (["both"] if status == "active" else []), status
    assert len(_listed(db, bucket.id)) == len(STATES) + 1
    assert not get_source(db, OURS, both.id).ready


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
OTHER_TAGS = {"ALPHA", "grün", "hi", '"', "", "A_B", "\\", "é"}
TITLES = {
    "1": ("100% sure", "a.txt"),
    "2": ("under_score", "b.txt"),
    "3": ("say \"hi\" 'there'", "c.txt"),
    "4": ("back\\slash", "d.txt"),
    "5": ("Über Größe", "E.TXT"),
    "6": ("ΔΈΛΤΑ Жизнь", "f.md"),
    "7": ("", "under the score.pdf"),
    "8": ("", "."),
}
WORDS = ["%", "_", "100%", "r_s", "r s", '"hi"', "'", "\\", "k\\s", "--", "';", "%%", "a%e", "sure", "x", "under", ""]
WORDS += ["ÜBER", "über", "GRÖSS", "größe", "δέλτα", "ЖИЗНЬ", "TXT", "e.txt", ".md"]


def test_a_listing_takes_a_tag_exactly_and_words_at_their_letter_in_any_case(db: Connection) -> None:
    bucket = add_bucket(db)
    for name, (title, filename) in TITLES.items():
        add_source(db, name, bucket, tags=TAGS[name], title=title, filename=filename)
    for tag in {tag for tags in TAGS.values() for tag in tags} | OTHER_TAGS:
        assert _listed(db, bucket.id, tag=tag) == [name for name, tags in TAGS.items() if tag in tags], tag
    for word in WORDS:
        expected = [name for name, texts in TITLES.items() if any(word.lower() in text.lower() for text in texts)]
        assert _listed(db, bucket.id, q=word) == expected, word


def test_a_listing_filters_by_each_exact_field_and_by_all_together(db: Connection) -> None:
    bucket = add_bucket(db)
    add_source(db, "1", bucket, title="a", sha256="1" * 64, mapping="m", type="page", tags=("t",))
    add_source(db, "2", bucket, title="A", sha256="2" * 64, mapping="M")
    add_source(db, "3", bucket, title="a%", sha256="1" * 64)
    every = {"title": "a", "sha256": "1" * 64, "mapping": "m", "type": "page", "tag": "t", "q": "A"}
    for chosen, names in (
        ({"title": "a"}, ["1"]),
        ({"sha256": "1" * 64}, ["1", "3"]),
        ({"mapping": "M"}, ["2"]),
        ({"type": "page"}, ["1"]),
        (every, ["1"]),
        ({**every, "after": "src_1"}, []),
    ):
        assert _listed(db, bucket.id, **chosen) == names, chosen


def test_pages_put_together_are_the_whole_list(db: Connection) -> None:
    bucket, chance = add_bucket(db), random.Random(7)
    names = [f"{number:03}" for number in chance.sample(range(1000), 23)]
    for name in names:
        add_source(db, name, bucket, sync=chance.choice(["active", "queued", "failed"]))
    for limit in (1, 2, 3, 7, 100):
        pages: list[str] = []
        while page := _listed(db, bucket.id, limit=limit, after=f"src_{pages[-1]}" if pages else ""):
            assert len(page) <= limit
            pages += page
        assert pages == sorted(names) == _listed(db, bucket.id)


def test_active_sources_are_found_by_id_with_what_the_whole_ones_have(db: Connection) -> None:
    add_source(db, "1", add_bucket(db), status="active", **FULL | {"valid_from": 2})
    for name, status in (("2", "queued"), ("3", "active"), ("4", "failed")):
        add_source(db, name, status=status)
    add_source(db, "5", team_id=THEIRS, status="active")
    found = list_active_sources(db, OURS, ["src_1", "src_2", "src_4", "src_5", "src_6", "'; --"])
    whole = get_source(db, OURS, "src_1")
    assert found == {"src_1": FoundSource(**{field.name: getattr(whole, field.name) for field in fields(FoundSource)})}
    assert list_active_sources(db, OURS, []) == {}


def test_those_that_wait_to_replace_a_source_are_found(db: Connection) -> None:
    for name, replaces in (("2", "src_1"), ("3", "src_1"), ("4", "src_2"), ("5", None)):
        add_source(db, name, replaces=replaces)
    assert [source.id for source in sources.list_replacing(db, OURS, "src_1")] == ["src_2", "src_3"]


def test_a_team_has_one_page_under_each_key(db: Connection) -> None:
    page = {"type": "page", "url_key": "http://a.example/"}
    add_source(db, "1", **page)
    assert [sources.find_page(db, team_id, "http://a.example/") for team_id in (OURS, THEIRS)] == ["src_1", None]
    with pytest.raises(sqlite3.IntegrityError):
        add_source(db, "2", **page)
    add_source(db, "3", team_id=THEIRS, **page)


def test_new_content_is_written_and_nothing_else(db: Connection) -> None:
    old = add_source(db, "1", title="Old", fetched={"etag": "v1"}, webhook={"url": "u", "metadata": {}})
    new = replace(old, blob="blob_1", size_bytes=9, sha256="1" * 64, content_type="text/html", fetched={"etag": "v2"})
    sources.update_content(db, replace(new, title="New", status="active"))
    assert find_source(db, OURS, "src_1") == new
    assert new.blob_name == "blob_1"
    add_source(db, "2")
    assert set(sources.list_all_blobs(db)) == {"blob_1", "src_2"}


def test_a_question_is_searched_in_no_bucket(db: Connection) -> None:
    bucket = add_bucket(db)
    for kind, places in (("qa", []), ("file", [bucket.id]), ("page", [bucket.id])):
        source = add_source(db, kind, bucket, type=kind)
        assert get_source(db, OURS, source.id).searched_places == places, kind
