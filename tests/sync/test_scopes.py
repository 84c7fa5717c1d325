"""A part of a folder: what belongs to it, and what leads there."""

from pathlib import Path

import pytest

from svc_cli.sync.snapshots import Filters, FolderPart, Snapshot


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("a", True),
        ("a/b", True),
        ("a/b/c.md", True),
        ("a/b/c/d", True),
        ("a/bc", False),
        ("x.md", True),
        ("x.md2", False),
    ],
)
def test_a_scope_leads_to_its_paths_and_to_all_below_them(path: str, leads: bool) -> None:
    assert FolderPart(["a/b", "x.md"]).leads_to(path) is leads


def test_a_walk_over_a_part_meets_that_part_under_the_rules_of_the_whole(tmp_path: Path) -> None:
    for name in ("a/one.md", "a/two.md", "a/deep/three.md", "b/four.md", "a/ignored.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path / ".gitignore").write_text("*.log\n")
    filters = Filters(max_bytes=100, max_path_characters=100)
    scope = FolderPart(["a/one.md", "a/deep", "a/ignored.log", "gone.md"])
    assert [entry.path for entry in Snapshot(tmp_path, filters, scope)] == ["a/one.md", "a/deep/three.md"]


def test_one_of_two_spellings_brings_the_other_along(tmp_path: Path) -> None:
    composed, apart = "caf\u00e9.md", "cafe\u0301.md"
    for name in (composed, apart):
        (tmp_path / name).write_text("text")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this file system knows one spelling only")
    snapshot = Snapshot(tmp_path, Filters(max_bytes=100, max_path_characters=100), FolderPart([composed]))
    assert [entry.path for entry in snapshot] == [composed]
    assert len(snapshot.skips) == 1
