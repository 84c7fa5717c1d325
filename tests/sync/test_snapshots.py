"""Walking a folder: order, filters, links, folders that disappear, long paths and partial walks."""

from pathlib import Path

import pytest

from svc_cli.errors import FileRefused
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.skips import Skip
from svc_cli.transfer.snapshots import Filters, FolderPart, Snapshot
from tests.cli.terminals import write

MOST_BYTES = 1000

pytestmark = pytest.mark.usefixtures("opens_folders")


def walk(root: Path, **filters: object) -> tuple[list[str], dict[str, str], bool]:
    """Return the paths in order, the reason for each skipped path, and whether the walk was complete."""
    known = {"max_bytes": MOST_BYTES, "max_path_characters": 300} | filters
    snapshot = Snapshot(Root(root), Filters(**known))  # type: ignore[arg-type]
    return [each.path for each in snapshot], {skip.path: skip.reason for skip in snapshot.skips}, snapshot.is_complete


def test_files_are_sorted_and_those_of_a_folder_precede_its_subfolders(tmp_path: Path) -> None:
    write(tmp_path, "z.md", "b/two.md", "b/one.md", "b/c/deep.md", "a/x.md")
    assert walk(tmp_path)[0] == ["z.md", "a/x.md", "b/one.md", "b/two.md", "b/c/deep.md"]


def test_skipped_paths_are_listed_with_their_reasons(tmp_path: Path) -> None:
    write(tmp_path, "kept.md", ".env", ".git/config", "build/x.md", "a.log", "sub/b.log", "sub/kept.txt", "drafts/d.md")
    write(tmp_path, "empty.md", data=b"")
    write(tmp_path, "large.md", data=bytes(MOST_BYTES + 1))
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / ".svcignore").write_text("!a.log\n")
    paths, skips, is_complete = walk(tmp_path, exclude=("drafts",))
    assert paths == ["a.log", "kept.md", "sub/kept.txt"]
    assert is_complete is True
    expected = dict.fromkeys((".env", ".git/", ".gitignore", ".svcignore"), "dotfile")
    expected |= dict.fromkeys(("build/", "drafts/", "sub/b.log"), "ignored")
    assert skips == expected | {"empty.md": "empty", "large.md": "too large"}


def test_only_included_files_are_found_and_the_others_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.txt", "sub/c.md", "sub/d.txt")
    paths, skips, _ = walk(tmp_path, include=("*.md",))
    assert paths == ["a.md", "sub/c.md"]
    assert skips == dict.fromkeys(("b.txt", "sub/d.txt"), "not included")


def test_links_are_skipped_or_followed_within_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root, "real/a.md")
    write(outside, "secret.md")
    for name, target in {"file.md": "real/a.md", "folder": "real", "away": "../outside", "dead.md": "nowhere"}.items():
        (root / name).symlink_to(target)
    assert walk(root)[:2] == (["real/a.md"], dict.fromkeys(["away/", "dead.md", "file.md", "folder/"], "link"))
    paths, skips, _ = walk(root, follow_links=True)
    assert sorted(paths) == ["file.md", "folder/a.md", "real/a.md"]
    assert skips == {"away/": "link out of the folder", "dead.md": "link leads nowhere"}
    paths, _, _ = walk(root, follow_links=True, include=("a.md",))
    assert sorted(paths) == ["folder/a.md", "real/a.md"], "filters treat a link to a folder as a folder"


def test_links_in_a_circle_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "a/x.md", "b/y.md")
    for name, target in {"a/up": "..", "a/to_b": "../b", "b/to_a": "../a"}.items():
        (tmp_path / name).symlink_to(target)
    paths, skips, _ = walk(tmp_path, follow_links=True)
    assert sorted(paths) == ["a/to_b/y.md", "a/x.md", "b/to_a/x.md", "b/y.md"]
    assert set(skips.values()) == {"link in a circle"}


def test_walk_is_incomplete_if_a_folder_is_deleted_meanwhile(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "gone/b.md")
    snapshot = Snapshot(Root(tmp_path), Filters(max_bytes=MOST_BYTES, max_path_characters=300))
    walking = iter(snapshot)
    assert next(walking).path == "a.md"
    (tmp_path / "gone" / "b.md").unlink()
    (tmp_path / "gone").rmdir()
    assert list(walking) == []
    assert not snapshot.is_complete


def test_folder_that_becomes_a_link_during_the_walk_is_not_entered(tmp_path: Path) -> None:
    write(tmp_path / "docs", "a.md", "sub/b.md", "z/c.md")
    write(tmp_path / "foreign", "b.md")
    snapshot = Snapshot(Root(tmp_path / "docs"), Filters(max_bytes=MOST_BYTES, follow_links=True))
    walking = iter(snapshot)
    assert next(walking).path == "a.md"
    (tmp_path / "docs" / "sub").rename(tmp_path / "away")
    (tmp_path / "docs" / "sub").symlink_to("../foreign")
    assert [entry.path for entry in walking] == ["z/c.md"]
    assert not snapshot.is_complete
    reason = "can't be read: a link or another file has taken its place"
    assert snapshot.skips == [Skip("sub/", reason, "svc_file_unreadable")]


@pytest.mark.parametrize("target", ["../../rules", "/etc/hostname", "nowhere", ".svcignore"])
def test_folder_whose_ignore_file_cannot_be_read_inside_the_root_is_left_out(tmp_path: Path, target: str) -> None:
    write(tmp_path, "rules", data=b"*.log\n")
    write(tmp_path / "docs", "a.md", "sub/a.md")
    (tmp_path / "docs" / "sub" / ".svcignore").symlink_to(target)
    paths, skips, is_complete = walk(tmp_path / "docs")
    assert paths == ["a.md"]
    assert is_complete is False
    assert [*skips] == ["sub/"]
    assert f"can't be read: {tmp_path}/docs/sub/.svcignore: " in skips["sub/"]
    with pytest.raises(FileRefused, match=r"sub can't be read: .*\.svcignore"):
        walk(tmp_path / "docs" / "sub")


def test_linked_ignore_file_inside_the_root_applies(tmp_path: Path) -> None:
    write(tmp_path, "a.log", "sub/a.log", "sub/a.md")
    write(tmp_path, "rules", data=b"*.log\n")
    (tmp_path / "sub" / ".gitignore").symlink_to("../rules")
    assert walk(tmp_path)[0] == ["a.log", "rules", "sub/a.md"]


def test_missing_root_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(Snapshot(Root(tmp_path / "nowhere"), Filters(max_bytes=1, max_path_characters=1)))


def test_walk_reaches_a_long_path_if_the_limit_allows_it(tmp_path: Path) -> None:
    deep = f"{'folder/' * 50}deep.md"
    write(tmp_path, deep)
    assert walk(tmp_path)[:2] == ([], {deep: "path is too long"})
    assert walk(tmp_path, max_path_characters=400)[0] == [deep]


def test_part_includes_its_paths_their_parents_and_everything_below_them() -> None:
    inside, part = ["a", "a/b", "a/b/c.md", "a/b/c/d", "x.md"], FolderPart(["a/b", "x.md"])
    assert [path for path in [*inside, "a/bc", "x.md2"] if part.leads_to(path)] == inside


def test_walk_of_a_part_finds_only_that_part_and_applies_the_ignore_files_of_the_root(tmp_path: Path) -> None:
    write(tmp_path, "a/one.md", "a/two.md", "a/deep/three.md", "b/four.md", "a/ignored.log")
    (tmp_path / ".gitignore").write_text("*.log\n")
    filters = Filters(max_bytes=100, max_path_characters=100)
    scope = FolderPart(["a/one.md", "a/deep", "a/ignored.log", "gone.md"])
    assert [entry.path for entry in Snapshot(Root(tmp_path), filters, scope)] == ["a/one.md", "a/deep/three.md"]


@pytest.mark.parametrize(
    ("composed", "apart"), (("caf\u00e9.md", "cafe\u0301.md"), ("K.md", "\u212a.md"), ("a;b.md", "a\u037eb.md"))
)
def test_walk_of_a_part_also_skips_another_unicode_spelling_of_the_same_name(
    composed: str, apart: str, tmp_path: Path
) -> None:
    folder = tmp_path / ascii(composed)
    write(folder, composed, apart)
    if len(list(folder.iterdir())) == 1:
        pytest.skip("this file system treats both spellings as one file")
    snapshot = Snapshot(Root(folder), Filters(max_bytes=100, max_path_characters=100), FolderPart([composed]))
    assert [entry.path for entry in snapshot] == [composed]
    assert len(snapshot.skips) == 1
