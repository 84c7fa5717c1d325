"""Comparing a folder with the index: changed, unchanged, moved and deleted files, and unreadable ones."""

import hashlib
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc_cli.sync.comparing import Comparison, match_moves
from svc_cli.sync.index import FileRow
from svc_cli.sync.plan import Verb
from svc_cli.transfer.contents import Fingerprint
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.snapshots import Filters, Snapshot

FILTERS = Filters(max_bytes=100, max_path_characters=10_000, extensions=frozenset({".md"}))
#: Linux's maximum length of a path, with the NUL byte at its end.
PATH_MAX = 4096


def _compare(folder: Path, *paths: str) -> Comparison:
    rows = {path: FileRow(5, 1, 2, 3, 4, 6, path, path, "one", "src_1", "src_1", "ready", None) for path in paths}
    comparison = Comparison(Snapshot(Root(folder), FILTERS), rows, on_kept=lambda path: None, owns=lambda row: True)
    assert list(comparison) == []
    return comparison


def test_known_file_whose_name_is_too_long_is_left_out_and_not_gone(tmp_path: Path) -> None:
    hidden = f"{'x' * 300}.md"
    comparison = _compare(tmp_path, "gone.md", "gone/too.md", hidden)
    assert [row.path for row in comparison.gone] == ["gone.md", "gone/too.md"]
    assert [row.path for row in comparison.left_out] == [hidden]


def test_only_a_ready_file_with_the_same_fingerprint_yields_no_change_unless_thorough(tmp_path: Path) -> None:
    path, (hour_ns, now_ns) = tmp_path / "a.md", (3600 * 10**9, time.time_ns())
    path.write_bytes(b"moss")
    os.utime(path, ns=(now_ns - hour_ns,) * 2)
    sha256 = hashlib.sha256(b"moss").hexdigest()
    same = FileRow(*Fingerprint.of(path.stat()), now_ns, "a.md", "a.md", sha256, "src_1", "src_1", "ready", None)
    taken = same._replace(source_id="src_2", place_id="src_2")
    table = [
        (same, False, [], ["a.md"]),
        (same, True, [Verb.KEEP], []),
        (same._replace(mtime_ns=1), False, [Verb.KEEP], []),
        (same._replace(inode=1, sha256="0" * 64), False, [Verb.UPDATE], []),
        (same._replace(hashed_ns=now_ns - hour_ns), False, [Verb.KEEP], []),
        (same._replace(state="sent"), False, [Verb.WAIT], []),
        (same._replace(state="skipped", source_id=None, place_id=None), False, [Verb.SKIP], []),
        (same._replace(path="b.md", raw="b.md"), False, [Verb.MOVE], []),
        (None, False, [Verb.CREATE], []),
        (taken, False, [], ["a.md"]),
        (taken._replace(sha256="0" * 64, mtime_ns=1), False, [Verb.CONFLICT], []),
        (taken._replace(path="b.md", raw="b.md"), False, [Verb.CONFLICT], []),
    ]
    for row, is_thorough, verbs, names in table:
        kept: list[str] = []
        rows = {row.path: row} if row else {}
        snapshot = Snapshot(Root(tmp_path), FILTERS)
        comparison = Comparison(
            snapshot, rows, kept.append, lambda each: each.source_ids == same.source_ids, is_thorough
        )
        assert [change.verb for change in comparison] == verbs, row
        assert kept == names, row
        assert comparison.gone == [each for each in rows.values() if each.path == "b.md" and each.source_id == "src_2"]


def test_a_picture_is_skipped_until_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(b"\x89PNG\0")
    rows: dict[str, FileRow] = {}
    reads = replace(FILTERS, extensions=frozenset({".md", ".png"}))
    for filters, verb in (
        (FILTERS, Verb.SKIP),
        (replace(reads, pictures=frozenset({".png"})), Verb.SKIP),
        (reads, Verb.CREATE),
    ):
        comparison = Comparison(Snapshot(Root(tmp_path), filters), rows, lambda path: None, owns=lambda row: True)
        (change,) = comparison
        assert change.verb is verb
        rows = {row.path: row for row in comparison.take_refreshed()}


def test_walk_is_incomplete_if_the_metadata_of_a_file_cannot_be_read(tmp_path: Path) -> None:
    # The path of a link is short enough to be opened, and that of its target is not.
    depth = (PATH_MAX - 10 - len(str(tmp_path))) // 201
    here = os.open(tmp_path, os.O_RDONLY)
    for level in range(depth):
        if level == 5:
            os.symlink("/".join(["d" * 200] * (depth - level) + ["x" * 220]), "link", dir_fd=here)
        os.mkdir("d" * 200, dir_fd=here)
        there = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(os.open("x" * 220, os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    snapshot = Snapshot(Root(tmp_path), replace(FILTERS, follow_links=True))
    assert list(snapshot) == []
    failed = [skip.path.rpartition("/")[2] for skip in snapshot.skips if skip.error_code]
    assert not snapshot.is_complete
    assert failed == ["link"]


PRINT = Fingerprint(5, 1, 2, 3, 4)
FINAL = json.dumps({"code": "no_extractable_text", "retryable": False})


def row(path: str = "a.md", sha256: str = "one", **fields: Any) -> FileRow:
    return FileRow(*PRINT, 9, path, path, sha256, "src_1", "src_1", "ready", None)._replace(**fields)


def new(path: str, sha256: str) -> FileRow:
    return row(path, sha256, source_id=None, place_id=None, state="sent")


def test_new_file_with_the_hash_of_a_deleted_one_is_a_move() -> None:
    moves, rest = match_moves([new("b.md", "one"), new("c.md", "three")], [row("a.md", "one")])
    assert [(to.path, was.path) for to, was in moves] == [("b.md", "a.md")]
    assert [each.path for each in rest] == ["c.md"]


def test_files_with_equal_hashes_are_matched_by_name() -> None:
    gone = [row("x/a.md"), row("x/b.md")]
    moves, rest = match_moves([new("y/b.md", "one"), new("y/a.md", "one"), new("y/c.md", "one")], gone)
    assert [(to.path, was.path) for to, was in moves] == [("y/a.md", "x/a.md"), ("y/b.md", "x/b.md")]
    assert [each.path for each in rest] == ["y/c.md"]


@pytest.mark.parametrize("gone", (row(state="failed", reason=FINAL), row(source_id=None, state="skipped")))
def test_failed_or_skipped_file_is_not_matched_as_a_move(gone: FileRow) -> None:
    assert match_moves([new("b.md", "one")], [gone])[0] == []
