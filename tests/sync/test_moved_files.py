"""Which new files are moved ones."""

import json
from typing import Any

from svc_cli.sync.index import FileRow
from svc_cli.sync.moved_files import match_moves
from svc_cli.sync.snapshots import Fingerprint

PRINT = Fingerprint(5, 1, 2, 3, 4)
FINAL = json.dumps({"code": "no_extractable_text", "retryable": False})


def row(path: str = "a.md", sha256: str = "one", **fields: Any) -> FileRow:
    return FileRow(*PRINT, 9, path, path, sha256, "src_1", "src_1", "ready", None)._replace(**fields)


def new(path: str, sha256: str) -> FileRow:
    return row(path, sha256, source_id=None, place_id=None, state="sent")


def test_a_new_file_with_the_bytes_of_one_that_is_gone_is_a_move() -> None:
    moves, rest = match_moves([new("b.md", "one"), new("c.md", "three")], [row("a.md", "one")])
    assert ([(to.path, was.path) for to, was in moves], [each.path for each in rest]) == ([("b.md", "a.md")], ["c.md"])


def test_of_several_with_the_same_bytes_the_one_of_the_same_name_moves() -> None:
    gone = [row("x/a.md"), row("x/b.md")]
    moves, rest = match_moves([new("y/b.md", "one"), new("y/a.md", "one"), new("y/c.md", "one")], gone)
    assert [(to.path, was.path) for to, was in moves] == [("y/a.md", "x/a.md"), ("y/b.md", "x/b.md")]
    assert [each.path for each in rest] == ["y/c.md"]


def test_what_is_not_in_the_bucket_cannot_move() -> None:
    for gone in (row(state="failed", reason=FINAL), row(source_id=None, state="skipped")):
        assert match_moves([new("b.md", "one")], [gone])[0] == []
