"""`svc ignore`: which rule leaves out a path, and what a folder's sync leaves out."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.consoles import RunSvc


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docs"
    (folder / "build").mkdir(parents=True)
    (folder / ".gitignore").write_text("# made by tools\n\nbuild/\n*.log\n")
    (folder / ".svcignore").write_text("!kept.log\ndrafts\n")
    for name in ("a.md", "kept.log", "other.log", "build/x.md", ".env"):
        (folder / name).write_text("Words.")
    (folder / "link.md").symlink_to("a.md")
    monkeypatch.chdir(folder)
    return folder


def check(svc: RunSvc, *words: str) -> dict[str, tuple[Any, ...]]:
    ended = svc("ignore", "check", *words, "--json")
    assert ended.exit == 0
    return {each["path"]: (each["reason"], each["at"], each["pattern"]) for each in ended.json["items"]}


def test_each_path_is_told_with_its_rule(svc: RunSvc, docs: Path) -> None:
    names = ("a.md", "build/x.md", "kept.log", "other.log", ".env", "link.md", "drafts/", "new/deep/b.log")
    assert check(svc, *names) == {
        "a.md": (None, "a.md", None),
        "build/x.md": ("ignored", "build/", "build/"),
        "kept.log": (None, "kept.log", "!kept.log"),
        "other.log": ("ignored", "other.log", "*.log"),
        ".env": ("dotfile", ".env", None),
        "link.md": ("link", "link.md", None),
        "drafts/": ("ignored", "drafts/", "drafts"),
        "new/deep/b.log": ("ignored", "new/deep/b.log", "*.log"),
    }


def test_the_file_of_the_rule_is_named(svc: RunSvc, docs: Path) -> None:
    shown = svc("ignore", "check", "other.log").stdout
    assert f"{docs / '.gitignore'}: *.log" in shown


def test_a_name_that_no_source_can_have_is_left_out(svc: RunSvc, docs: Path) -> None:
    reason, _, pattern = check(svc, "two\nlines.md")["two\nlines.md"]
    assert (reason, pattern) == ("name holds an invisible character", None)


def test_a_path_outside_of_the_folder_is_refused(svc: RunSvc, docs: Path) -> None:
    ended = svc("ignore", "check", "../elsewhere.md")
    assert ended.exit == 2
    assert "--root" in ended.stderr


def test_excludes_of_the_project_count(svc: RunSvc, docs: Path) -> None:
    (docs / "svc.toml").write_text('bucket = "b"\n[[map]]\ndir = "."\nexclude = ["a.*"]\n')
    assert check(svc, "a.md") == {"a.md": ("ignored", "a.md", "a.*")}


def test_a_list_names_all_that_is_left_out(svc: RunSvc, docs: Path) -> None:
    ended = svc("ignore", "list", "--json")
    assert {each["path"]: each["reason"] for each in ended.json["items"]} == {
        ".env": "dotfile",
        ".gitignore": "dotfile",
        ".svcignore": "dotfile",
        "build/": "ignored",
        "other.log": "ignored",
        "link.md": "link",
    }
    assert ended.json["taken"] == 2
    assert svc("ignore", "list", "nothere").exit == 5
