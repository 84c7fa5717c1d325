"""Which entries of a folder its `.gitignore` and `.svcignore` files leave out, by git's own rules.

A pattern is about the very path that it matches, not about what lies below it: a walk does not enter a folder that is
ignored, and a folder that is kept decides nothing about its files. A pattern that is invalid for git matches nothing.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

#: Read in this order: the rules of `.svcignore` come later and win.
IGNORE_FILES = (".gitignore", ".svcignore")
#: Git's names for kinds of characters, as Python writes them inside brackets.
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
#: One piece of a pattern: two or more stars that fill the space between slashes, another run of stars, an escape,
#: brackets with their escapes and kinds, or any other character.
_PIECE = re.compile(
    r"(?P<deep>(?<![^/])\*{2,}(?:/|\Z))|\*+|\\.?|\[[!^]?\]?(?:\\.|\[:[^\]/]*:\]|[^\]\\])*\]|.", re.DOTALL
)
#: One piece between brackets: a kind, a range, or a character.
_INSIDE = re.compile(r"\[:(?P<kind>[^\]]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\\]))?", re.DOTALL)


class Pattern(NamedTuple):
    """One line of an ignore file."""

    text: str
    regex: re.Pattern[str]
    #: It begins with `!`.
    keeps: bool
    #: It ends in `/`.
    only_folders: bool
    #: It is compared with the path below its file's folder, not with the name alone.
    is_path: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the pattern is about this path, which has `/` between its parts and none at its end."""
        if self.only_folders and not is_folder:
            return False
        return self.regex.fullmatch(path if self.is_path else path.rpartition("/")[2]) is not None


class Patterns:
    """The patterns of one ignore file, or of the command line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.all = tuple(pattern for line in lines if (pattern := _parse(line)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The patterns of a file's text."""
        return cls(line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))

    def find(self, path: str, *, is_folder: bool) -> Pattern | None:
        """The last pattern that matches the path."""
        return next((each for each in reversed(self.all) if each.matches(path, is_folder=is_folder)), None)

    def covers(self, path: str) -> bool:
        """Whether the last pattern that matches a file, or a folder around it, takes the file in."""
        parts = path.split("/")
        above = ["/".join(parts[:end]) for end in range(1, len(parts))]
        for pattern in reversed(self.all):
            if pattern.matches(path, is_folder=False) or any(pattern.matches(each, is_folder=True) for each in above):
                return not pattern.keeps
        return False


def _parse(line: str) -> Pattern | None:
    """The pattern of a line; None for a comment or a blank line."""
    # Spaces at the end don't count, but for one behind a backslash.
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
    """A piece of a pattern as a regular expression."""
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
    """The text between brackets as a regular expression, which never matches a slash."""
    if inside in {"", "!", "^"}:  # also a bracket that is never closed
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
    """The rules of one file, or of the command line."""

    #: Length of the path of the folder that the rules are for: patterns are matched against the rest.
    behind: int
    patterns: Patterns
    #: The file, or what else gave them.
    origin: str


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules in force inside one folder: those of the folders above first, its own last."""

    layers: tuple[Layer, ...] = ()

    def inside(self, folder: Path) -> "IgnoreRules":
        """The rules one folder deeper, with its own ignore files added. `folder` is absolute."""
        rules = self
        for path in (folder / name for name in IGNORE_FILES):
            # A pipe of that name would block for ever.
            with suppress(OSError):
                text = path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""
                rules = rules.under(folder, Patterns.parse(text), str(path)) if text else rules
        return rules

    def under(self, folder: Path, patterns: Patterns, origin: str) -> "IgnoreRules":
        """These rules, and others for what is inside `folder`."""
        behind = len(str(folder).rstrip(os.sep)) + 1
        return IgnoreRules((*self.layers, Layer(behind, patterns, origin)))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the last rule that matches this absolute path ignores it."""
        found = self.find(path, is_folder=is_folder)
        return found is not None and not found[1].keeps

    def find(self, path: str, *, is_folder: bool) -> tuple[str, Pattern] | None:
        """The last rule that matches the absolute path, and where it comes from."""
        for behind, patterns, origin in reversed(self.layers):
            relative = path[behind:] if os.sep == "/" else path[behind:].replace(os.sep, "/")
            if pattern := patterns.find(relative, is_folder=is_folder):
                return origin, pattern
        return None


def rules_above(folder: Path) -> IgnoreRules:
    """The rules that reach `folder` from its repository's root: git's files up to the folder that holds `.git`.

    Where they ignore the folder itself, or one around it, they ignore all that is in it.
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
    """The root of the repository that the folder is in: the nearest that holds `.git`."""
    for parent in (folder, *folder.parents):
        # A folder may not be readable; listing it reports that.
        with suppress(OSError):
            if (parent / ".git").exists():
                return parent
    return None
