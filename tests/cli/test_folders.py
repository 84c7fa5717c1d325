"""Which files a tool may read: only those that really are in an allowed folder."""

import os
from pathlib import Path

import pytest

from svc_cli.errors import PathMissing, SvcError, UsageError
from svc_cli.tools.folders import Folders, PathRefused

MOST = 1000


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a file; beside it is another one that nobody may see."""
    docs = tmp_path / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "a.md").write_text("allowed")
    (docs / "deep" / "b.md").write_text("deeper")
    (tmp_path / "docs-secret").mkdir()
    (tmp_path / "docs-secret" / "s.md").write_text("secret")
    return docs


def test_a_file_is_read_by_either_kind_of_path_and_looked_for_in_each_folder(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.md").write_text("more")
    folders = Folders([docs, tmp_path / "more"])
    assert folders.read("c.md", MOST) == ("c.md", b"more")
    assert folders.read(str(docs / "a.md"), MOST) == ("a.md", b"allowed")
    assert folders.read("a.md", MOST) == ("a.md", b"allowed")
    assert folders.read("deep/../deep/b.md", MOST) == ("b.md", b"deeper")


@pytest.mark.parametrize("path", ["../docs-secret/s.md", "{outside}/s.md", "{outside}/none.md", "/etc/passwd", "a\0b"])
def test_what_is_outside_is_refused_whether_it_is_there_or_not(docs: Path, path: str) -> None:
    with pytest.raises(PathRefused):
        Folders([docs]).read(path.format(outside=docs.parent / "docs-secret"), MOST)


def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed(docs: Path) -> None:
    (docs / "out.md").symlink_to(docs.parent / "docs-secret" / "s.md")
    (docs / "out").symlink_to(docs.parent / "docs-secret")
    (docs / "in.md").symlink_to(docs / "a.md")
    (docs / "loop").symlink_to(docs / "loop")
    folders = Folders([docs])
    for path in ("out.md", "out/s.md", "loop"):
        with pytest.raises(PathRefused):
            folders.read(path, MOST)
    assert folders.read("in.md", MOST) == ("in.md", b"allowed")


def test_a_folder_may_be_a_link_itself(docs: Path) -> None:
    link = docs.parent / "link"
    link.symlink_to(docs)
    assert Folders([link]).read(str(link / "a.md"), MOST)[1] == b"allowed"
    assert Folders([link]).read(str(docs / "a.md"), MOST)[1] == b"allowed"


def test_what_is_no_readable_file_is_refused(docs: Path) -> None:
    os.mkfifo(docs / "pipe")
    (docs / "empty.md").touch()
    (docs / "large.md").write_bytes(b"x" * (MOST + 1))
    codes = {"none.md": "svc_path_not_found", "x" * 5000: "svc_path_not_found", "pipe": "svc_not_a_file"}
    codes |= {"empty.md": "empty_file", "large.md": "file_too_large"}
    for path, code in codes.items():
        with pytest.raises(SvcError) as raised:
            Folders([docs]).read(path, MOST)
        assert raised.value.code == code


def test_only_folders_can_be_allowed_and_none_allows_nothing(docs: Path) -> None:
    assert not Folders([])
    with pytest.raises(PathRefused, match="No folder is allowed"):
        Folders([]).read(str(docs / "a.md"), MOST)
    with pytest.raises(PathMissing):
        Folders([docs / "none"])
    with pytest.raises(UsageError):
        Folders([docs / "a.md"])
