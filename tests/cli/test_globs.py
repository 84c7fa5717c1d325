"""Patterns of ignore files: the paths that they match, compared with git itself, and how much work they take."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

from svc_cli.transfer import globs, ignores
from svc_cli.transfer.ignores import Patterns
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import COMMAND_TIMEOUT_S
from tests.cli.terminals import RunSvc, needs_git, write

#: Pieces of patterns, valid and invalid; a few of them in a row are a name.
_PIECES = r"""
a b ab abc * * ** *** ? *a a* *.b a*b *a*b *? ?? a** **a a**b **.b a?*b *[b] [b]*
[ab] [!a] [^a]* [a-c] []a] [!]a] []-a] [a-] [-a] [a [ [] [!] [z-a] [a-c-z] [\]a] [\-a] [a\-c] [a-\c] [[a] [[:a] [[:] [[]
[!!] [^^] [a!] [.-0] [--b] [a/b] [!/] [a-b]-* [\ [a\ *[!b]a* [[:alpha:]] [[:digit:]b] [[:no:]] [[:alpha:]-b]
[a-[:alpha:]] [[:space:]] [[:punct:]] [[:upper:][:lower:]] [[:alpha:]* \a \* \[ \\ \/ \ #a !a *\* *] ] - a.b
"""
PIECES = _PIECES.split()
#: ASCII, since `?` matches one byte in git and one character here.
NAMES = ("a", "b", "ab", "ba", "abc", "a.b", "b.b", "aab", "abab", "aaaa", "c", "*", "[", "[a", "]", "\\", "-", "A")
ODD_NAMES = ("a b", "#a", "!a", " ", "a ", "**", "a]", "[]", "0", "^", "!", ":", "z", "a*", "\x0b")


def random_pattern(random: Random) -> str:
    """Return a line of an ignore file that may mean anything."""
    depth = random.choice([1, 1, 2, 3, 4])
    names = ["".join(random.choices(PIECES, k=random.choice([1, 1, 1, 2, 3]))) for _ in range(depth)]
    marks = [(0.15, "/", ""), (0.15, "", "/"), (0.15, "**/", ""), (0.15, "", "/**"), (0.05, "!", "")]
    marks += [(0.02, "", end) for end in (" ", "  ", "\\ ", "\r", "/ ", "\t", "//")]
    line = "/".join(names)
    for share, before, behind in marks:
        line = before + line + behind if random.random() < share else line
    return line


@needs_git
def test_random_patterns_match_the_same_paths_as_in_git(tmp_path: Path) -> None:
    random = Random(27)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    # With its end of line: a file without any is taken to have the line ends of an old Mac.
    lines = [f"{random_pattern(random)}\n" for _ in range(2000)]
    for number, line in enumerate(lines):
        write(tmp_path, f"{number}/.gitignore", data=line.encode())
    asked = [
        (number, "/".join(random.choices(NAMES + ODD_NAMES, k=random.choice([1, 1, 2, 2, 3, 4, 5]))))
        for number in range(len(lines))
        for _ in range(30)
    ]
    command = ["git", "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"]
    given = "".join(f"{number}/{path}\0" for number, path in asked).encode()
    listed = subprocess.run(command, cwd=tmp_path, input=given, stdout=subprocess.PIPE, check=False)
    # Four fields for each path; the first is empty if no pattern matches it or one of its folders.
    by_git = [bool(origin) for origin in listed.stdout.decode().split("\0")[:-1:4]]
    known = [Patterns.parse(line.encode()) for line in lines]
    differ = [
        (lines[number], path)
        for (number, path), is_matched in zip(asked, by_git, strict=True)
        if _is_matched(known[number], path) != is_matched
    ]
    assert differ == []
    assert any(by_git)


def _is_matched(patterns: Patterns, path: str) -> bool:
    """Whether a pattern decides about the path, as `git check-ignore` answers it."""
    parts, found = path.split("/"), None
    for end in range(1, len(parts) + 1):
        found = patterns.find("/".join(parts[:end]), is_folder=end < len(parts))
        if found and not found.keeps:
            break
    return found is not None


def _count_lines(work: Callable[[], Any]) -> int:
    """Return how many lines of the matching are executed."""
    files, count = {globs.__file__, ignores.__file__}, 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


#: Patterns and paths of a size that is given, which take other matchers years.
HOSTILE: dict[str, Callable[[int], tuple[list[str], str]]] = {
    "stars in a name": lambda size: ([f"{'*a' * size}*b"], "a" * size * 2),
    "stars that match at the end": lambda size: ([f"{'*a' * size}*?"], "a" * size * 2),
    "folders of any depth": lambda size: ([f"{'**/a/' * size}b"], "/".join("a" * size * 2)),
    "folders of any depth with stars": lambda size: ([f"{'**/*a*/' * size}*[b]*"], "/".join("a" * size * 2)),
    "stars in a path": lambda size: (["/".join(["*a*a*"] * size) + "/b"], "/".join(["aaaa"] * size + ["a"])),
    "question marks": lambda size: ([f"{'?*' * size}b*[c]"], "b" * size * 2),
    "brackets": lambda size: ([f"*{'[a-c]*' * size}[d]"], "b" * size * 2),
    "brackets that don't close": lambda size: ([f"*{'[[:' * size}", f"*{'[[:' * size}]*"], "b" * size),
    "long patterns": lambda size: ([f"{'*a' * size * 100}*b"], "a" * size),
    "many patterns": lambda size: ([f"*{number}*a*b*" for number in range(size * 10)], "0123456789/" * 20 + "x"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_work_grows_in_proportion_to_patterns_and_path(kind: str) -> None:
    def work(size: int) -> int:
        lines, path = HOSTILE[kind](size)
        return _count_lines(lambda: Patterns(lines).find(path, is_folder=False))

    assert work(80) < 2.5 * work(40) + 1000


def test_hostile_patterns_of_a_repository_do_not_stop_a_command(svc: RunSvc) -> None:
    """In a process of its own: a matcher that tries every split could not be interrupted here."""
    folder = "/".join(["a" * 50] * 8)
    write(Path(), f"{folder}/{'a' * 100}", "x")
    lines = [line for size in (20, 50) for hostile in HOSTILE.values() for line in hostile(size)[0]]
    text = "\n".join(line for line in lines if "d" not in line) * 20
    for name in (".gitignore", ".svcignore", "a" * 50 + "/.gitignore"):
        Path(name).write_text(text)
    Path("svc.toml").write_text(f'bucket = "b"\n[[map]]\ndir = "."\nexclude = {lines}\n')
    ended = subprocess.run(
        [sys.executable, "-m", "svc_cli", "ignore", "list"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=COMMAND_TIMEOUT_S,
        check=False,
        capture_output=True,
    )
    assert ended.returncode == 0, ended.stderr
