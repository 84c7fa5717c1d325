"""What a sync does, from disk, index and bucket: every case by name."""

import json
from typing import Any

from svc_cli.sync.index import FileRow, State
from svc_cli.sync.plan import Verb, judge, merge
from svc_cli.sync.snapshots import Fingerprint

PRINT = Fingerprint(5, 1, 2, 3, 4)
TRANSIENT = json.dumps({"code": "provider_failed", "retryable": True})
FINAL = json.dumps({"code": "no_extractable_text", "retryable": False})


def row(path: str = "a.md", sha256: str = "one", **fields: Any) -> FileRow:
    return FileRow(*PRINT, 9, path, path, sha256, "src_1", "src_1", "ready", None)._replace(**fields)


def source(source_id: str, title: str = "a.md", sha256: str = "one", **fields: Any) -> dict[str, Any]:
    known = {"status": "active", "ready": True, "replaces": None, "error": None}
    return {"id": source_id, "title": title, "sha256": sha256, **known, **fields}


def test_a_file_is_judged_by_its_row_and_its_hash() -> None:
    skipped = row(state="skipped", reason="type", source_id=None, place_id=None)
    failed = row(state="failed", reason=FINAL)
    cells = [
        (None, "one", Verb.CREATE),
        *((row(), "one", Verb.KEEP), (row(), "two", Verb.UPDATE)),
        *((row(state="sent"), "one", Verb.WAIT), (row(state="sent"), "two", Verb.UPDATE)),
        (row(state="failed", reason=TRANSIENT), "one", Verb.RETRY),
        *((failed, "one", Verb.FAIL), (failed, "two", Verb.UPDATE)),
        *((skipped, "one", Verb.SKIP), (skipped, "two", Verb.CREATE)),
    ]
    for known, sha256, verb in cells:
        assert judge(known, sha256) is verb
    assert {known.state for known, _, _ in cells if known} == set(State), "every state has a cell"


def test_a_lost_index_comes_back_from_the_bucket() -> None:
    rows, surplus = merge({}, [source("src_1"), source("src_2", "b.md", "two", status="failed", error={"code": "x"})])
    found = {path: (each.sha256, each.source_id, each.state) for path, each in rows.items()}
    assert found == {"a.md": ("one", "src_1", "ready"), "b.md": ("two", "src_2", "failed")}
    assert (rows["b.md"].error, surplus) == ({"code": "x"}, [])
    assert not rows["a.md"].is_same(PRINT), "nobody has seen the file yet"


def test_what_the_bucket_still_has_keeps_its_fingerprint() -> None:
    known = row(hashed_ns=10**19, state="sent")
    rows, _ = merge({"a.md": known}, [source("src_1")])
    assert rows["a.md"] == known._replace(state=State.READY)
    assert rows["a.md"].is_same(PRINT)


def test_what_somebody_else_changed_in_the_bucket_is_hashed_again() -> None:
    rows, _ = merge({"a.md": row()}, [source("src_9", sha256="theirs")])
    assert (rows["a.md"].sha256, rows["a.md"].source_id, rows["a.md"].is_same(PRINT)) == ("theirs", "src_9", False)


def test_what_somebody_took_out_of_the_bucket_is_forgotten_and_a_skip_is_not() -> None:
    skipped = row("s.bin", state="skipped", source_id=None, place_id=None)
    rows, _ = merge({"a.md": row(), "s.bin": skipped}, [])
    assert rows == {"s.bin": skipped}


def test_a_replacement_on_its_way_is_the_newest_and_the_old_one_holds_the_place() -> None:
    pending = source("src_2", sha256="two", ready=False, status="queued", replaces="src_1")
    rows, surplus = merge({}, [source("src_1"), pending])
    assert (rows["a.md"].source_id, rows["a.md"].place_id, rows["a.md"].state) == ("src_2", "src_1", "sent")
    assert surplus == []


def test_a_replacement_that_failed_leaves_the_place_to_the_old_one() -> None:
    failed = source("src_2", sha256="two", ready=False, status="failed", replaces="src_1", error={"retryable": False})
    rows, _ = merge({}, [source("src_1"), failed])
    assert (rows["a.md"].source_id, rows["a.md"].place_id) == ("src_2", "src_1")
    assert [judge(rows["a.md"], sha256) for sha256 in ("three", "two")] == [Verb.UPDATE, Verb.FAIL]


def test_a_title_that_is_there_twice_keeps_the_newest_and_returns_the_others() -> None:
    rows, surplus = merge({}, [source("src_2", sha256="two"), source("src_1")])
    assert (rows["a.md"].source_id, [each["id"] for each in surplus]) == ("src_2", ["src_1"])


def test_a_file_changed_in_the_moment_of_its_hashing_is_read_again() -> None:
    moment_ns = 50_000_000_000
    just = Fingerprint(5, moment_ns, 2, 3, 4)
    fresh = FileRow(*just, moment_ns + 1_000_000_000, "a.md", "a.md", "one", None, None, "ready", None)
    assert not fresh.is_same(just), "written once more within the clock's grain it would look the same"
    assert fresh._replace(hashed_ns=moment_ns + 2_000_000_001).is_same(just)
