"""Tests sources: writing, reading and listing them, and that teams are separate."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound
from svc_daemon.store.rows.sources import sources
from svc_daemon.store.rows.sources.listings import SourceFilter, list_sources
from svc_daemon.store.rows.sources.memberships import SyncClaim, create_memberships
from svc_daemon.store.rows.sources.search_candidates import FoundSource, list_active_sources
from svc_daemon.store.rows.sources.sources import SourceRow, find_source, get_source
from svc_daemon.wire.sources import FetchFacts
from tests.store.rows import LATER, OURS, THEIRS, add_bucket, add_source

URL = "https://example.com/?a=%20"
FULL: dict[str, Any] = {"type": "page", "generation": 3, "tags": ("a", 'with "quotes"', "ü"), "mapping": "handbook"}
FULL |= {"metadata": {"k": [1, {"deep": None}], "ü": "ö"}, "source_url": URL, "url_key": URL, "replaces": "src_0"}
FULL |= {"fetched": {"final_url": "https://example.com/", "http_status": 200, "etag": None, "last_modified": None}}
FULL |= {"qa": {"question": "Why?", "answer": "ü", "alternate_questions": []}}
FULL |= {"webhook": {"url": "https://example.com/hook", "metadata": {"ü": 1}}}


def _listed(db: Connection, bucket_id: str, **chosen: Any) -> list[str]:
    listed = list_sources(db, OURS, bucket_id, SourceFilter(**{"status": "all", **chosen}))
    return [source.id.removeprefix("src_") for source in listed]


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
    assert (list_active_sources(db, THEIRS, [source.id]), sources.list_replacing(db, THEIRS, "src_0")) == ({}, [])
    bucket = add_bucket(db, team_id=THEIRS)
    add_source(db, "2", bucket, team_id=THEIRS)
    assert (_listed(db, bucket.id), sources.list_all_ids(db)) == ([], {"src_1", "src_2"})


def test_updates_of_description_and_state_write_only_their_fields(db: Connection) -> None:
    source = add_source(db, "1", **FULL)
    description: dict[str, Any] = {"title": "new", "filename": "new.txt", "tags": ("x",), "metadata": {}}
    description["updated_at"] = LATER
    error = {"code": "c", "message": "m", "retryable": True}
    state: dict[str, Any] = {"status": "active", "generation": 4, "content_type": "text/html", "error": error}
    state |= {"warnings": ("page 2",), "extraction": {"chunks": 3}, "replaces": None, "task_id": "task_2"}
    changed = replace(source, **{**description, **state})
    sources.update_description(db, changed)
    assert find_source(db, OURS, source.id) == replace(source, **description)
    sources.update_state(db, changed)
    assert find_source(db, OURS, source.id) == changed


def test_found_sources_have_all_later_changes(db: Connection) -> None:
    bucket = add_bucket(db)
    changes: list[Callable[[SourceRow], object]] = [
        lambda source: sources.update_description(db, replace(source, title="new")),
        lambda source: sources.update_description(db, replace(source, tags=("new",), updated_at=LATER)),
        lambda source: sources.update_state(db, replace(source, generation=7)),
        lambda source: sources.update_state(db, replace(source, task_id="task_2")),
        lambda source: sources.update_state(db, replace(source, replaces=None)),
        lambda source: create_memberships(
            db, [SyncClaim(source_id=source.id, bucket_id=bucket.id, team_id=OURS)], LATER
        ),
    ]
    for number in range(len(changes) + 2):
        add_source(db, str(number), replaces="src_x")
    known = list(sources.find_sources(db, OURS, [f"src_{number}" for number in range(len(changes) + 2)]).values())
    for change, source in zip(changes, known, strict=False):
        change(source)
    sources.delete_source(db, OURS, known[-1].id)
    found = sources.find_again(db, OURS, known)
    assert found == sources.find_sources(db, OURS, [source.id for source in known])
    assert [source.id for source in known if found.get(source.id) is source] == [known[-2].id]
    assert sources.find_again(db, THEIRS, known) == {}


TAGS = {"1": ("alpha", "beta"), "2": ("Alpha",), "3": ("alphabet", "al"), "4": ("%", "_", "a_b"), "6": ("Grün", "b")}
TAGS |= {"5": ('say "hi"', "back\\slash", 'a "b'), "7": (), "8": ("a,b", "axb", "[", "null", "1")}
OTHER_TAGS = {"ALPHA", "grün", "hi", '"', "", "A_B", "\\", "é"}
TITLES = {"1": ("100% sure", "a.txt"), "2": ("under_score", "b.txt"), "3": ("say \"hi\" 'there'", "c.txt")}
TITLES |= {"4": ("back\\slash", "d.txt"), "5": ("Über Größe", "E.TXT"), "6": ("ΔΈΛΤΑ Жизнь", "f.md")}
TITLES |= {"7": ("", "under the score.pdf"), "8": ("", ".")}
WORDS = ["%", "_", "100%", "r_s", "r s", '"hi"', "'", "\\", "k\\s", "--", "';", "%%", "a%e", "sure", "x", "under", ""]
WORDS += ["ÜBER", "über", "GRÖSS", "größe", "δέλτα", "ЖИЗНЬ", "TXT", "e.txt", ".md"]


def test_a_list_is_filtered_by_exact_tag_and_by_text_in_any_case(db: Connection) -> None:
    bucket = add_bucket(db)
    for name, (title, filename) in TITLES.items():
        add_source(db, name, bucket, tags=TAGS[name], title=title, filename=filename)
    for tag in {tag for tags in TAGS.values() for tag in tags} | OTHER_TAGS:
        assert _listed(db, bucket.id, tag=tag) == sorted(name for name, tags in TAGS.items() if tag in tags), tag
    for word in WORDS:
        expected = [name for name, texts in TITLES.items() if any(word.lower() in text.lower() for text in texts)]
        assert _listed(db, bucket.id, words=(word,)) == expected, word


def test_active_sources_are_found_by_id_with_the_same_fields(db: Connection) -> None:
    add_source(db, "1", add_bucket(db), status="active", **FULL | {"valid_from": 2})
    for name, status in (("2", "queued"), ("3", "active"), ("4", "failed")):
        add_source(db, name, status=status)
    add_source(db, "5", team_id=THEIRS, status="active")
    found = list_active_sources(db, OURS, ["src_1", "src_2", "src_4", "src_5", "src_6", "'; --"])
    whole = get_source(db, OURS, "src_1")
    assert found == {"src_1": FoundSource(**{field.name: getattr(whole, field.name) for field in fields(FoundSource)})}
    assert list_active_sources(db, OURS, []) == {}


def test_an_update_of_content_writes_only_its_fields(db: Connection) -> None:
    was, facts = (FetchFacts(final_url="u", etag=tag, last_modified=None, fetched_at=LATER) for tag in ("v1", "v2"))
    old = add_source(db, "1", title="Old", fetched=was, webhook={"url": "u", "metadata": {}})
    new = replace(old, blob="blob_1", size_bytes=9, sha256="1" * 64, content_type="text/html", fetched=facts)
    sources.update_content(db, replace(new, title="New", status="active"))
    assert (find_source(db, OURS, "src_1"), new.blob_name) == (new, "blob_1")
    add_source(db, "2")
    assert set(sources.list_all_blobs(db)) == {"blob_1", "src_2"}
