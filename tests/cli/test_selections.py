"""From paths to files and titles."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_cli.errors import PathMissing, UsageError
from svc_cli.uploads.contents import STDIN
from svc_cli.uploads.selections import FolderPolicy, select
from svc_cli.uploads.skips import is_text

POLICY = FolderPolicy(frozenset({".md", ".pdf"}), 100)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("docs/a.md", "docs/sub/b.md", "c.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _titles(*paths: str) -> list[str]:
    return [file.title for file in select(paths, POLICY).files]


@pytest.mark.parametrize(
    ("paths", "titles"),
    [
        (("c.md",), ["c.md"]),
        (("./c.md",), ["c.md"]),
        (("docs",), ["docs/a.md", "docs/sub/b.md"]),
        (("docs/",), ["docs/a.md", "docs/sub/b.md"]),
        (("docs//sub",), ["docs/sub/b.md"]),
        ((".",), ["c.md", "docs/a.md", "docs/sub/b.md"]),
        (("c.md", "c.md", "./c.md"), ["c.md"]),
        (("docs", "docs/a.md"), ["docs/a.md", "docs/sub/b.md"]),
        (("docs/*.md",), ["docs/a.md"]),
        (("**/*.md",), ["c.md", "docs/a.md", "docs/sub/b.md"]),
        (("do?s",), ["docs/a.md", "docs/sub/b.md"]),
    ],
)
def test_a_title_is_the_path_as_given(work: Path, paths: tuple[str, ...], titles: list[str]) -> None:
    assert _titles(*paths) == titles


@pytest.mark.parametrize("path", ["missing.md", "missing/", "*.nothing"])
def test_a_path_that_leads_nowhere_is_named(work: Path, path: str) -> None:
    with pytest.raises(PathMissing) as told:
        select([path], POLICY)
    assert told.value.details == {"path": path}


def test_a_file_whose_name_looks_like_a_pattern_is_a_file_and_an_absolute_path_stays_absolute(work: Path) -> None:
    (work / "[x].md").write_text("text")
    assert _titles("[x].md", str(work / "c.md")) == ["[x].md", str(work / "c.md")]


def test_policy_leaves_out_and_says_why(work: Path) -> None:
    folder = work / "mixed"
    folder.mkdir()
    (folder / "good.md").write_text("text")
    (folder / "README").write_text("text without an extension")
    (folder / ".hidden.md").write_text("text")
    (folder / ".git").mkdir()
    (folder / "empty.md").write_text("")
    (folder / "large.md").write_text("x" * 101)
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    (folder / "link.md").symlink_to(folder / "good.md")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    selection = select(["mixed"], POLICY)
    assert [file.title for file in selection.files] == ["mixed/README", "mixed/good.md"]
    assert {skip.path.removeprefix("mixed/"): skip.reason for skip in selection.skips} == {
        ".hidden.md": "dotfile",
        ".git/": "dotfile",
        "empty.md": "empty",
        "large.md": "too large",
        "picture.png": "type can't be read",
        "link.md": "link",
        "loop/": "link",
        "pipe.md": "not a regular file",
    }


def test_a_compressed_text_is_sent_and_another_compressed_file_is_not(work: Path) -> None:
    for name in ("a.txt.gz", "A.MD.GZ", "a.tar.gz", "a.gz"):
        (work / "packed" / name).parent.mkdir(exist_ok=True)
        (work / "packed" / name).write_bytes(b"\x1f\x8b\x08\x00\xff")
    selection = select(("packed",), FolderPolicy(frozenset({".txt.gz", ".md.gz"}), 100))
    assert [each.title for each in selection.files] == ["packed/A.MD.GZ", "packed/a.txt.gz"]


def test_a_named_file_is_sent_whatever_it_is(work: Path) -> None:
    (work / ".hidden").write_text("")
    (work / "picture.png").write_bytes(b"\x89PNG\0")
    (work / "link.md").symlink_to("c.md")
    assert _titles(".hidden", "picture.png", "link.md") == [".hidden", "picture.png", "link.md"]


def test_two_systems_spell_the_same_name_the_same_way(work: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "über.md")
    (work / decomposed).write_text("text")
    assert _titles(decomposed) == ["über.md"]


def test_a_name_that_is_not_utf8_is_left_out_of_a_folder(work: Path) -> None:
    folder = work / "odd"
    folder.mkdir()
    try:
        (folder / os.fsdecode(b"b\xff.md")).write_text("text")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert [skip.reason for skip in select(["odd"], POLICY).skips] == ["name is not UTF-8"]


@pytest.fixture
def deep(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder that holds one file, deeper than functions can call themselves; removed from its end."""
    depth = 1200
    for _ in range(depth):
        Path("d").mkdir()
        monkeypatch.chdir("d")
    Path("deep.md").write_text("text")
    monkeypatch.chdir(work)
    yield "d/" * depth
    (work / ("d/" * depth) / "deep.md").unlink()
    for levels in range(depth, 0, -1):
        (work / ("d/" * levels)).rmdir()


def test_a_tree_deeper_than_calls_can_go_is_walked_to_its_end(deep: str) -> None:
    assert _titles("d") == [f"{deep}deep.md"]


def test_a_pipe_in_place_of_an_ignore_file_is_not_waited_for(work: Path) -> None:
    os.mkfifo(work / "docs" / ".gitignore")
    assert _titles("docs") == ["docs/a.md", "docs/sub/b.md"]


def test_a_title_goes_to_one_file_only_and_standard_input_needs_one(work: Path) -> None:
    assert [file.title for file in select(["c.md"], POLICY, "Chapter C").files] == ["Chapter C"]
    with pytest.raises(UsageError):
        select(["c.md", "docs/a.md"], POLICY, "Both")
    with pytest.raises(UsageError, match="no name"):
        select(["-"], POLICY)
    assert select(["-"], POLICY, "notes.md").files[0].path == Path(STDIN)


def test_text_is_distinguished_from_bytes() -> None:
    cut = "ü".encode()[:1]
    cells = {b"plain": True, "ü".encode(): True, b"a\0b": False, b"\xff\xfe": False}
    cells |= {b"x" * 8191 + cut: True, b"x" * 100 + cut: False}
    assert {start: is_text(start) for start in cells} == cells
