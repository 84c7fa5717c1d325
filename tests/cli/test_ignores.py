"""Ignore files, compared with git itself, and `svc ignore`, which shows the rule that excludes a path."""

import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from svc_cli.transfer.ignores import IgnoreRules, Patterns, rules_above, spellings
from svc_cli.transfer.selections import select
from svc_cli.transfer.snapshots import Filters
from tests.cli.terminals import RunSvc, needs_git, write
from tests.cli.test_globs import NAMES, random_pattern

POLICY = Filters(extensions=frozenset({".md", ".txt", ".log"}), max_bytes=1000)


def _kept_by_git(root: Path, under: str) -> list[str]:
    command = ["git", "-c", "core.quotePath=false", "ls-files", "-co", "--exclude-standard", "-z", under]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.split("\0") if name]
    return sorted(name for name in names if not Path(name).name.startswith("."))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    return root


#: Names of files and folders that the service takes, except those that end in a backslash.
TREE_NAMES = (*NAMES, "a b", "#a", "!a", "a ", "a]", "x.md")


def _random_line(random: Random) -> str:
    """Return a line of an ignore file, which may begin with a byte order mark and end in a form feed."""
    line = random_pattern(random)
    for share, before, behind in ((0.25, "!", ""), (0.03, "\ufeff", ""), (0.03, "", "\x0c")):
        line = before + line + behind if random.random() < share else line
    return line


def _make_tree(random: Random, folder: Path, depth: int = 0) -> None:
    for name in random.sample(TREE_NAMES, 4):
        path = folder / name
        if depth < 3 and random.random() < 0.5:
            path.mkdir()
            _make_tree(random, path, depth + 1)
        else:
            path.write_text("text")
    (folder / ".gitignore").write_bytes("\n".join(_random_line(random) for _ in range((depth and 2) or 3)).encode())


@needs_git
def test_random_patterns_select_the_same_files_as_git(repository: Path) -> None:
    for seed in range(96):
        (repository / str(seed)).mkdir()
        _make_tree(Random(seed), repository / str(seed))
    for under in (".", "7", "8"):
        selection = select([under], POLICY)
        # Unlike git, the service refuses a name that ends in a backslash.
        refused = [skip.path for skip in selection.skips if skip.reason == "name is blank or a path"]
        assert sorted([*(file.title for file in selection.files), *refused]) == _kept_by_git(repository, under), under


def ignores(rules: IgnoreRules, path: Path, *, is_folder: bool = False) -> bool:
    """Whether the last rule that matches the path ignores it."""
    found = rules.find(str(path), is_folder=is_folder)
    return found is not None and not found[1].keeps


def test_rules_above_a_folder_come_only_from_its_repository(tmp_path: Path) -> None:
    assert rules_above(tmp_path / "plain") == IgnoreRules()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n!build/keep.md\n")
    rules = rules_above(tmp_path / "build" / "sub")
    assert ignores(rules, tmp_path / "build" / "sub" / "a.md")


def test_rules_around_a_linked_folder_apply_too_but_do_not_ignore_all_of_it(tmp_path: Path) -> None:
    for repository, rules in (("site", "*.tmp\n/current/drafts\n"), ("work", "releases/\n*.log\n")):
        write(tmp_path / repository, ".git/HEAD")
        (tmp_path / repository / ".gitignore").write_text(rules)
    write(tmp_path / "work" / "releases" / "42", *(names := ("a.md", "a.log", "a.tmp", "drafts/b.md")))
    (tmp_path / "site" / "current").symlink_to("../work/releases/42")
    rules_of = rules_above(tmp_path / "site" / "current")
    base = tmp_path / "site" / "current"
    assert [ignores(rules_of, base / name) for name in names] == [False, True, True, False]
    assert ignores(rules_of, base / "drafts", is_folder=True)
    real = tmp_path / "work" / "releases" / "42"
    assert ignores(rules_above(real), real / "a.md"), "without the link, all of it is ignored"


def test_include_pattern_of_a_folder_covers_all_files_in_it() -> None:
    included = Patterns(["docs/", "*.md", "!docs/drafts/", "[", "[]", "[!]b"])
    paths = ["docs/a.txt", "docs/deep/b.txt", "a.md", "a.txt", "docs/drafts/c.md", "xb"]
    assert [included.covers(path) for path in paths] == [True, True, True, False, False, False]


@pytest.fixture
def docs(svc: RunSvc) -> Path:
    docs = Path.cwd()
    write(docs, "a.md", "kept.log", "other.log", "build/x.md", ".env")
    (docs / ".gitignore").write_text("# made by tools\n\nbuild/\n*.log\n")
    (docs / ".svcignore").write_text("!kept.log\ndrafts\n")
    (docs / "link.md").symlink_to("a.md")
    return docs


def check(svc: RunSvc, *words: str) -> dict[str, tuple[Any, ...]]:
    ended = svc("ignore", "check", *words, "--json")
    assert ended.exit == 0
    return {each["path"]: (each["reason"], each["at"], each["pattern"]) for each in ended.json["items"]}


@pytest.mark.parametrize(
    ("pattern", "meant"), [("drafts\\", "drafts/"), (".\\drafts\\old\\", "/drafts/old/"), ("!a\\b.md", "!a/b.md")]
)
def test_backslashes_of_windows_in_a_flag_are_slashes(
    pattern: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sep", "\\")
    assert meant in spellings(pattern, tmp_path)


def test_ignore_check_shows_the_rule_for_each_path_and_the_file_it_is_in(svc: RunSvc, docs: Path) -> None:
    rules: dict[str, tuple[Any, ...]] = {
        "a.md": (None, "a.md", None),
        "build/x.md": ("ignored", "build/", "build/"),
        "kept.log": (None, "kept.log", "!kept.log"),
        "other.log": ("ignored", "other.log", "*.log"),
        ".env": ("dotfile", ".env", None),
        "link.md": ("link", "link.md", None),
        "drafts/": ("ignored", "drafts/", "drafts"),
        "new/deep/b.log": ("ignored", "new/deep/b.log", "*.log"),
        "two\nlines.md": ("name holds an invisible character", "two\nlines.md", None),
    }
    assert check(svc, *rules) == rules
    assert f"{docs / '.gitignore'}: *.log" in svc("ignore", "check", "other.log").stdout
    (docs / "svc.toml").write_text('bucket = "b"\n[[map]]\ndir = "."\nexclude = ["a.*"]\n')
    assert check(svc, "a.md") == {"a.md": ("ignored", "a.md", "a.*")}, "`exclude` in svc.toml applies"
    ended = svc("ignore", "check", "../elsewhere.md")
    assert ended.exit == 2, "a path outside of the folder is refused"
    assert "--root" in ended.stderr, "a path outside of the folder is refused"


def test_ignore_check_reports_an_ignore_file_that_leads_out_of_the_folder(svc: RunSvc, docs: Path) -> None:
    (docs / ".svcignore").unlink(missing_ok=True)
    (docs / ".svcignore").symlink_to("/dev/null")
    assert svc("ignore", "check", "--root", str(docs), str(docs / "a.md"), "--json").failure == (
        3,
        "svc_file_unreadable",
    )


def test_ignore_list_shows_all_excluded_paths(svc: RunSvc, docs: Path) -> None:
    ended = svc("ignore", "list", "--json")
    reasons = dict.fromkeys((".env", ".gitignore", ".svcignore"), "dotfile")
    reasons |= {"build/": "ignored", "other.log": "ignored", "link.md": "link"}
    assert {each["path"]: each["reason"] for each in ended.json["items"]} == reasons
    assert ended.json["taken"] == 2
    assert svc("ignore", "list", "nothere").exit == 5


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (b"\xef\xbb\xbfsecret.md\r\nother.md   \r\n", ["plain.md"]),
        (b"secret.md\rother.md\r", ["plain.md"]),
        (b"# d\xe9j\xe0 vu\nsecret.md\n", ["other.md", "plain.md"]),
    ],
)
def test_ignore_files_of_other_systems_are_understood(tmp_path: Path, rules: bytes, kept: list[str]) -> None:
    write(tmp_path, "secret.md", "other.md", "plain.md")
    (tmp_path / ".gitignore").write_bytes(rules)
    assert [Path(file.title).name for file in select([str(tmp_path)], POLICY).files] == kept


def test_settings_may_begin_with_a_byte_order_mark(svc: RunSvc) -> None:
    Path("svc.toml").write_bytes(b'\xef\xbb\xbfbucket = "b"\n[sync]\nexclude = ["a.md"]\n')
    assert check(svc, "a.md") == {"a.md": ("ignored", "a.md", "a.md")}
