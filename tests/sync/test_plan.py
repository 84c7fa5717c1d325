"""What a sync does with each file, and merging the index with the sources in the bucket."""

import json
from typing import Any

import pytest

from svc_cli.sync.index import FileRow, State
from svc_cli.sync.plan import Verb, judge, merge
from svc_cli.transfer.contents import Fingerprint

PRINT = Fingerprint(5, 1, 2, 3, 4)
TRANSIENT = json.dumps({"code": "provider_failed", "retryable": True})
FINAL = json.dumps({"code": "no_extractable_text", "retryable": False})


def row(path: str = "a.md", sha256: str = "one", **fields: Any) -> FileRow:
    return FileRow(*PRINT, 9, path, path, sha256, "src_1", "src_1", "ready", None)._replace(**fields)


def source(source_id: str, title: str = "a.md", sha256: str = "one", **fields: Any) -> dict[str, Any]:
    known = {"status": "active", "ready": True, "replaces": None, "error": None}
    return {"id": source_id, "title": title, "sha256": sha256, **known, **fields}


def is_ours(row: FileRow) -> bool:
    """Whether all sources of the row are those of this folder."""
    return set(row.source_ids) <= {"src_1"}


SKIPPED = row(state="skipped", reason="type", source_id=None, place_id=None)
FAILED, TRIED = row(state="failed", reason=FINAL), row(state="failed", reason=TRANSIENT)
SENT, THEIRS = row(state="sent"), row(source_id="src_2", place_id="src_2")
#: A row, the hash of its file now, and what follows.
VERBS: list[tuple[FileRow | None, str, Verb]] = [
    (None, "one", Verb.CREATE),
    *((row(), "one", Verb.KEEP), (row(), "two", Verb.UPDATE)),
    *((SENT, "one", Verb.WAIT), (SENT, "two", Verb.UPDATE)),
    *((TRIED, "one", Verb.RETRY), (TRIED._replace(source_id="src_2"), "one", Verb.FAIL)),
    *((THEIRS, "one", Verb.KEEP), (THEIRS, "two", Verb.CONFLICT)),
    (THEIRS._replace(place_id="src_1"), "two", Verb.CONFLICT),
    *((FAILED, "one", Verb.FAIL), (FAILED, "two", Verb.UPDATE)),
    *((SKIPPED, "one", Verb.SKIP), (SKIPPED, "two", Verb.CREATE)),
]


@pytest.mark.parametrize(("known", "sha256", "verb"), VERBS)
def test_action_for_a_file_follows_from_its_row_and_its_hash(known: FileRow | None, sha256: str, verb: Verb) -> None:
    assert judge(known, sha256, is_ours) is verb


def test_every_state_has_an_action() -> None:
    assert {known.state for known, _, _ in VERBS if known} == set(State)


def test_lost_index_is_rebuilt_from_the_sources_in_the_bucket() -> None:
    rows, surplus = merge({}, [source("src_1"), source("src_2", "b.md", "two", status="failed", error={"code": "x"})])
    found = {path: (each.sha256, each.source_id, each.state) for path, each in rows.items()}
    assert found == {"a.md": ("one", "src_1", "ready"), "b.md": ("two", "src_2", "failed")}
    assert rows["b.md"].error == {"code": "x"}
    assert surplus == []
    assert not rows["a.md"].is_same(PRINT), "the file must be hashed"


def test_row_whose_source_is_still_in_the_bucket_keeps_its_fingerprint() -> None:
    known = row(hashed_ns=10**19, state="sent")
    rows, _ = merge({"a.md": known}, [source("src_1")])
    assert rows["a.md"] == known._replace(state=State.READY)
    assert rows["a.md"].is_same(PRINT)


def test_file_whose_source_was_changed_by_another_client_is_hashed_again() -> None:
    rows, _ = merge({"a.md": row()}, [source("src_9", sha256="theirs")])
    assert rows["a.md"].sha256 == "theirs"
    assert rows["a.md"].source_id == "src_9"
    assert not rows["a.md"].is_same(PRINT)


def test_row_is_dropped_if_its_source_left_the_bucket_but_a_skipped_row_is_kept() -> None:
    skipped = row("s.bin", state="skipped", source_id=None, place_id=None)
    rows, _ = merge({"a.md": row(), "s.bin": skipped}, [])
    assert rows == {"s.bin": skipped}


def test_row_of_a_pending_replacement_has_its_source_id_and_the_old_place_id() -> None:
    pending = source("src_2", sha256="two", ready=False, status="queued", replaces="src_1")
    rows, surplus = merge({}, [source("src_1"), pending])
    assert rows["a.md"].source_id == "src_2"
    assert rows["a.md"].place_id == "src_1"
    assert rows["a.md"].state == "sent"
    assert surplus == []


def test_failed_replacement_keeps_the_old_place_id_and_is_updated_only_with_new_content() -> None:
    failed = source("src_2", sha256="two", ready=False, status="failed", replaces="src_1", error={"retryable": False})
    rows, _ = merge({}, [source("src_1"), failed])
    assert rows["a.md"].source_id == "src_2"
    assert rows["a.md"].place_id == "src_1"
    found = [judge(rows["a.md"], sha256, lambda _: True) for sha256 in ("three", "two")]
    assert found == [Verb.UPDATE, Verb.FAIL]


def test_newest_source_with_a_title_is_kept_and_the_others_are_surplus() -> None:
    rows, surplus = merge({}, [source("src_2", sha256="two"), source("src_1")])
    assert rows["a.md"].source_id == "src_2"
    assert [each["id"] for each in surplus] == ["src_1"]


def test_file_hashed_within_two_seconds_of_its_change_is_hashed_again() -> None:
    moment_ns = 50_000_000_000
    just = Fingerprint(5, moment_ns, 2, 3, 4)
    fresh = FileRow(*just, moment_ns + 1_000_000_000, "a.md", "a.md", "one", None, None, "ready", None)
    assert not fresh.is_same(just), "a write within the clock's resolution would not change it"
    assert fresh._replace(hashed_ns=moment_ns + 2_000_000_001).is_same(just)
