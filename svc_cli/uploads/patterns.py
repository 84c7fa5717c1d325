"""Patterns of ignore files, read as git reads them.

A pattern speaks of the very path that it matches. What lies below that path is no concern of it: whoever walks does not
enter a folder that is ignored, and a folder that is kept decides nothing about its files. What git can't make sense of
matches nothing, here as there.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

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
#: One piece of a pattern: a run of stars, an escape, brackets with their escapes and kinds, or any other character.
_PIECE = re.compile(r"\*+|\\.?|\[[!^]?\]?(?:\\.|\[:[^\]/]*:\]|[^\]\\])*\]|.", re.DOTALL)
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
    #: It speaks of a path below its file's folder, not of a name.
    is_path: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the pattern speaks of this path, `/` between its parts and none at its end."""
        if self.only_folders and not is_folder:
            return False
        return self.regex.fullmatch(path if self.is_path else path.rpartition("/")[2]) is not None


class Patterns:
    """The patterns of one ignore file, or of the command line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.all = tuple(pattern for line in lines if (pattern := _read(line)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The patterns of a file's text."""
        return cls(line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))

    def find(self, path: str, *, is_folder: bool) -> Pattern | None:
        """The last pattern that speaks of the path."""
        return next((each for each in reversed(self.all) if each.matches(path, is_folder=is_folder)), None)

    def covers(self, path: str) -> bool:
        """Whether the last pattern that speaks of a file, or of a folder around it, takes it in."""
        for pattern in reversed(self.all):
            if any(pattern.matches(each, is_folder=each != path) for each in _and_above(path)):
                return not pattern.keeps
        return False


def _and_above(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _read(line: str) -> Pattern | None:
    text = _trimmed(line)
    if not text or text.startswith("#"):
        return None
    body = text.removeprefix("!")
    only_folders = body.endswith("/")
    body = body.removesuffix("/")
    is_path = "/" in body
    body = body.removeprefix("/")
    regex = _compiled(body)
    return Pattern(text, regex, text.startswith("!"), only_folders, is_path)


def _trimmed(line: str) -> str:
    """The line without spaces at its end; one behind a backslash stays."""
    end = len(line.rstrip(" "))
    slashes = end - len(line[:end].rstrip("\\"))
    return line[: end + 1] if slashes % 2 and end < len(line) else line[:end]


def _compiled(body: str) -> re.Pattern[str]:
    return re.compile("".join(_translated(body)) if body else _NOTHING, re.DOTALL)


def _translated(body: str) -> Iterator[str]:
    at = 0
    while at < len(body):
        piece = _PIECE.match(body, at)
        if piece is None:
            raise AssertionError("a piece is any character at least")
        word, start, at = piece[0], at, piece.end()
        if len(word) > 1 and word[0] == "*" and _stands_alone(body, start, at):
            is_last = at == len(body)
            yield ".*" if is_last else "(?:.*/)?"
            at += not is_last
        else:
            yield _piece(word)


def _stands_alone(body: str, start: int, end: int) -> bool:
    """Whether nothing but slashes is around."""
    return (start == 0 or body[start - 1] == "/") and (end == len(body) or body[end] == "/")


def _piece(word: str) -> str:
    if word[0] == "*":
        return "[^/]*"
    if word == "?":
        return "[^/]"
    if word[0] == "\\":
        return re.escape(word[1]) if len(word) > 1 else _NOTHING
    if word[0] == "[":
        return _brackets(word[1:-1]) if len(word) > 1 else _NOTHING
    return re.escape(word)


def _brackets(inside: str) -> str:
    """What stands between brackets, as a regular expression; a slash is never meant."""
    is_other = inside[0] in "!^"
    members = [_member(found) for found in _INSIDE.finditer(inside[is_other:])]
    if None in members:
        return _NOTHING
    listed = "".join(each for each in members if each)
    if is_other:
        return f"[^/{listed}]"
    return f"(?!/)[{listed}]" if listed else _NOTHING


def _member(found: re.Match[str]) -> str | None:
    """One member; empty for a range that holds nothing, None for a kind that nobody knows."""
    if found["kind"] is not None:
        return _KINDS.get(found["kind"])
    low = found["low"][-1]
    high = low if found["high"] is None else found["high"][-1]
    return f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
