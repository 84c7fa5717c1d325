"""Ignore files, held against git itself."""

import subprocess
from pathlib import Path

import pytest

from svc_cli.uploads.ignores import IgnoreRules, rules_above
from svc_cli.uploads.selections import FolderPolicy, select

POLICY = FolderPolicy(frozenset({".md", ".txt", ".log"}), 1000)
FILES = (
    *("a.md", "b.log", "keep.log", "build/x.md", "build/sub/y.md", "docs/a.md", "docs/b.log", "docs/important.log"),
    *("docs/build/z.md", "deep/one/two/c.txt", "deep/one/two/skip.txt", "with space.md", "üml.md", "#hash.md"),
)
GITIGNORE = "# comment\n*.log\n!keep.log\n/build/\ndeep/**/skip.txt\n\\#hash.md\nwith\\ space.md\n"
NESTED = "!important.log\nbuild/\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    (root / ".gitignore").write_text(GITIGNORE)
    (root / "docs" / ".gitignore").write_text(NESTED)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def _kept_by_git(root: Path, under: str) -> list[str]:
    listed = subprocess.run(
        ["git", "-c", "core.quotePath=false", "ls-files", "-co", "--exclude-standard", "-z", under],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    names = [name for name in listed.stdout.split("\0") if name]
    return sorted(name for name in names if not Path(name).name.startswith("."))


@pytest.mark.parametrize("under", [".", "docs", "deep/one", "docs/build"])
def test_what_git_keeps_is_what_is_sent(tree: Path, monkeypatch: pytest.MonkeyPatch, under: str) -> None:
    monkeypatch.chdir(tree)
    selection = select([under], POLICY)
    assert sorted(candidate.title for candidate in selection.candidates) == _kept_by_git(tree, under)


def test_svcignore_wins_over_gitignore(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    (tree / ".svcignore").write_text("!b.log\na.md\n")
    titles = {candidate.title for candidate in select(["."], POLICY).candidates}
    assert "b.log" in titles
    assert not titles & {"a.md"}


def test_an_ignored_folder_is_one_line_and_is_not_entered(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    skips = {skip.title: skip.reason for skip in select(["."], POLICY).skips}
    assert skips["build/"] == "ignored"
    assert not any(title.startswith("build/") and title != "build/" for title in skips)


def test_a_folder_outside_any_repository_has_its_own_rules_only(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    assert rules_above(folder) == IgnoreRules()


def test_a_named_file_is_sent_even_if_ignored(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert [candidate.title for candidate in select(["b.log"], POLICY).candidates] == ["b.log"]
