"""Matching new files with deleted ones to find moved files."""

import json
from typing import Any

import pytest

from svc_cli.sync.comparing import match_moves
from svc_cli.sync.index import FileRow
from svc_cli.transfer.contents import Fingerprint

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
