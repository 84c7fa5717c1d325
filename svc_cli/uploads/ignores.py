"""Decides which entries of a folder are ignored by `.gitignore` and `.svcignore` files.

Git's rules apply: files in an ignored folder are left out, because the folder is not entered.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

#: Read in this order. The last pattern that matches decides, so `.svcignore` takes precedence.
IGNORE_FILES = (".gitignore", ".svcignore")
#: POSIX character classes, and the characters they contain, in the syntax of a Python regex.
_KINDS = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "\\x21-\\x7e",
    "lower": "a-z",
    "print": "\\x20-\\x7e",
    "punct": "\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}
_NOTHING = "(?!)"
#: One token of a pattern: `**/`, `*`, an escape, a bracket expression, or any other character.
_PIECE = re.compile(
    r"(?P<deep>(?<![^/])\*{2,}(?:/|\Z))|\*+|\\.?|\[[!^]?\]?(?:\\.|\[:[^\]/]*:\]|[^\]\\])*\]|.", re.DOTALL
)
#: One token of a bracket expression: a character class, a range, or a character.
_INSIDE = re.compile(r"\[:(?P<kind>[^\]]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\\]))?", re.DOTALL)


class Pattern(NamedTuple):
    """One line of an ignore file."""

    text: str
    regex: re.Pattern[str]
    #: Whether the line begins with `!`, so that the pattern is an exception.
    keeps: bool
    #: Whether the pattern ends in `/`, and so matches folders only.
    only_folders: bool
    #: Whether the pattern is matched against the whole path, and not only the name.
    is_path: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the pattern matches this `/`-separated path."""
        if self.only_folders and not is_folder:
            return False
        return self.regex.fullmatch(path if self.is_path else path.rpartition("/")[2]) is not None


class Patterns:
    """The patterns of one ignore file, or of the command line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.all = tuple(pattern for line in lines if (pattern := _parse(line)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of an ignore file."""
        return cls(line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))

    def find(self, path: str, *, is_folder: bool) -> Pattern | None:
        """Return the last pattern that matches the path, or None."""
        return next((each for each in reversed(self.all) if each.matches(path, is_folder=is_folder)), None)

    def covers(self, path: str) -> bool:
        """Whether a pattern matches the file or one of its parent folders, and the last such pattern has no `!`."""
        parts = path.split("/")
        above = ["/".join(parts[:end]) for end in range(1, len(parts))]
        for pattern in reversed(self.all):
            if pattern.matches(path, is_folder=False) or any(pattern.matches(each, is_folder=True) for each in above):
                return not pattern.keeps
        return False


def _parse(line: str) -> Pattern | None:
    """Parse a line; None for a comment or a blank line."""
    # Ignore trailing spaces, except after a backslash.
    end = len(line.rstrip(" "))
    slashes = end - len(line[:end].rstrip("\\"))
    text = line[: end + slashes % 2]
    if not text or text.startswith("#"):
        return None
    body = text.removeprefix("!")
    only_folders = body.endswith("/")
    body = body.removesuffix("/")
    is_path = "/" in body
    body = body.removeprefix("/")
    regex = "".join(map(_translate, _PIECE.finditer(body))) if body else _NOTHING
    return Pattern(text, re.compile(regex, re.DOTALL), text.startswith("!"), only_folders, is_path)


def _translate(piece: re.Match[str]) -> str:
    """Convert a token of a pattern to a regular expression."""
    word = piece[0]
    if piece["deep"]:
        return "(?:.*/)?" if word.endswith("/") else ".*"
    if word[0] == "*":
        return "[^/]*"
    if word == "?":
        return "[^/]"
    if word[0] == "\\":
        return re.escape(word[1]) if len(word) > 1 else _NOTHING
    if word[0] == "[":
        return _translate_brackets(word[1:-1])
    return re.escape(word)


def _translate_brackets(inside: str) -> str:
    """Convert a bracket expression to a regular expression, which never matches a slash."""
    if inside in {"", "!", "^"}:  # empty or not closed
        return _NOTHING
    is_other = inside[0] in "!^"
    listed = ""
    for found in _INSIDE.finditer(inside[is_other:]):
        if found["kind"] is not None:
            if found["kind"] not in _KINDS:
                return _NOTHING
            listed += _KINDS[found["kind"]]
            continue
        low, high = found["low"][-1], (found["high"] or found["low"])[-1]
        listed += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
    if is_other:
        return f"[^/{listed}]"
    return f"(?!/)[{listed}]" if listed else _NOTHING


class Layer(NamedTuple):
    """The rules of one ignore file, or of the command line."""

    #: Length of the absolute path of the folder with the rules. This prefix is cut off before a path is matched.
    behind: int
    patterns: Patterns
    #: The path of the ignore file, or `exclude`.
    origin: str


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ignore rules that apply inside a folder: those of its parent folders, then its own."""

    layers: tuple[Layer, ...] = ()

    def inside(self, folder: Path) -> "IgnoreRules":
        """Return these rules plus those of the ignore files in `folder`, an absolute path."""
        rules = self
        for path in (folder / name for name in IGNORE_FILES):
            # Reading a named pipe could block forever.
            with suppress(OSError):
                text = path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""
                rules = rules.under(folder, Patterns.parse(text), str(path)) if text else rules
        return rules

    def under(self, folder: Path, patterns: Patterns, origin: str) -> "IgnoreRules":
        """Return these rules plus `patterns`, which apply inside `folder`."""
        behind = len(str(folder).rstrip(os.sep)) + 1
        return IgnoreRules((*self.layers, Layer(behind, patterns, origin)))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the last rule that matches this absolute path ignores it."""
        found = self.find(path, is_folder=is_folder)
        return found is not None and not found[1].keeps

    def find(self, path: str, *, is_folder: bool) -> tuple[str, Pattern] | None:
        """Return the origin and pattern of the last rule that matches the absolute path, or None."""
        for behind, patterns, origin in reversed(self.layers):
            relative = path[behind:] if os.sep == "/" else path[behind:].replace(os.sep, "/")
            if pattern := patterns.find(relative, is_folder=is_folder):
                return origin, pattern
        return None


def rules_above(folder: Path) -> IgnoreRules:
    """Return the rules that `folder` inherits from its parent folders, up to the root of its Git repository.

    If they ignore the folder itself, the result ignores everything inside.
    """
    root = find_repository(folder)
    rules = IgnoreRules()
    if root is None or root == folder:
        return rules
    within = [parent for parent in reversed(folder.parents) if parent == root or root in parent.parents]
    for parent, child in zip(within, [*within[1:], folder], strict=True):
        rules = rules.inside(parent)
        found = rules.find(str(child), is_folder=True)
        if found is not None and not found[1].keeps:
            return rules.under(folder, Patterns(["*"]), found[0])
    return rules


def find_repository(folder: Path) -> Path | None:
    """Return the root of the folder's Git repository: the nearest folder upwards with a `.git`, or None."""
    for parent in (folder, *folder.parents):
        # Denied access is reported later, when the folder is listed.
        with suppress(OSError):
            if (parent / ".git").exists():
                return parent
    return None
