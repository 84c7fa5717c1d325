"""Ignore files, held against git itself."""

import subprocess
from pathlib import Path
from random import Random

import pytest

from svc_cli.uploads.ignores import IgnoreRules, Patterns, rules_above
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
    assert sorted(file.title for file in selection.files) == _kept_by_git(tree, under)


def test_svcignore_wins_over_gitignore_and_an_ignored_folder_is_one_line(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    skips = {skip.path: skip.reason for skip in select(["."], POLICY).skips}
    assert [path for path in skips if path.startswith("build/")] == ["build/"]
    (tree / ".svcignore").write_text("!b.log\na.md\n")
    titles = {file.title for file in select(["."], POLICY).files}
    assert titles & {"b.log", "a.md"} == {"b.log"}
    assert [file.title for file in select(["a.md"], POLICY).files] == ["a.md"], "what is named is sent"


#: What git takes for a pattern and what it does not, and names to try them on; no name has a letter of two bytes, since
#: git's `?` stands for one byte and ours for one character.
PLAIN = r"a b foo *.md * ** *** ? [ab] [!a] [^a]* [a-c] foo* *o f**o \#h \!n #h !n \[z\] [ [a [] [!] []a] [z-a]"
ODD = r"[[:alpha:]] [[:no:]] \ a\ *\ [\]]"
PIECES = (*PLAIN.split(), *ODD.split(), "a b", "a\\ b", "b ")
NAMES = ("a", "b", "foo", "x.md", "a b", "#h", "!n", "[z]", "A", "foo.md", "a\\", "b ", "]")


def _random_line(random: Random) -> str:
    line = "/".join(random.choice(PIECES) for _ in range(random.choice([1, 1, 2, 3])))
    ends = [(0.3, "/"), (0.05, "\r"), (0.03, "\x0c")]
    marks = [(0.25, "/", ""), (0.25, "!", ""), (0.03, "\ufeff", ""), *((share, "", end) for share, end in ends)]
    for share, before, behind in marks:
        if random.random() < share:
            line = before + line + behind
    return line


def _make_tree(random: Random, folder: Path, depth: int = 0) -> None:
    for name in random.sample(NAMES, 4):
        path = folder / name
        if depth < 3 and random.random() < 0.5:
            path.mkdir()
            _make_tree(random, path, depth + 1)
        else:
            path.write_text("text")
    (folder / ".gitignore").write_bytes("\n".join(_random_line(random) for _ in range((depth and 2) or 3)).encode())


@pytest.mark.parametrize("seed", range(12))
def test_any_pattern_means_what_it_means_to_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    root = tmp_path / "repo"
    for number in range(8):
        (root / str(number)).mkdir(parents=True)
        _make_tree(Random(seed * 8 + number), root / str(number))
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    selection = select(["."], POLICY)
    # Git knows nothing of the service, which takes no name that ends in a backslash.
    refused = [skip.path for skip in selection.skips if skip.reason == "name is blank or a path"]
    assert sorted([*(file.title for file in selection.files), *refused]) == _kept_by_git(root, ".")


def test_rules_reach_a_folder_from_its_repository_and_from_nowhere_else(tmp_path: Path) -> None:
    assert rules_above(tmp_path / "plain") == IgnoreRules()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n!build/keep.md\n")
    rules = rules_above(tmp_path / "build" / "sub")
    assert rules.ignores(str(tmp_path / "build" / "sub" / "a.md"), is_folder=False)


def test_an_include_takes_a_folder_with_all_that_is_in_it() -> None:
    included = Patterns(["docs/", "*.md", "!docs/drafts/", "[", "[]", "[!]b"])
    paths = ["docs/a.txt", "docs/deep/b.txt", "a.md", "a.txt", "docs/drafts/c.md", "xb"]
    assert [included.covers(path) for path in paths] == [True, True, True, False, False, False]
