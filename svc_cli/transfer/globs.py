"""Matches text with glob patterns as Git does, in time that grows with the lengths of pattern and text only.

A pattern is a row of items, each of which matches one character, with stars between them. Bit `i` of a state says that
the first `i` items match the text so far. So each character advances all partial matches at once, and nothing is tried
again: `*a*a*a*b`, which makes other matchers try every split of the text, costs no more than another pattern.
"""

import re
import string
from typing import NamedTuple, Self

#: POSIX character classes, and the characters that Git finds in them.
_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": " \t\n\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
#: The end of a pattern's literal start.
_SPECIAL = re.compile(r"[*?\[\\]")
#: Stands for a star, `?` or a bracket expression in an outline. No path contains it.
_WILD = "\0"


class Brackets(NamedTuple):
    """A bracket expression, such as `[a-z]`."""

    characters: frozenset[str]
    ranges: tuple[tuple[str, str], ...]
    is_negated: bool
    #: Where the rest of the pattern begins.
    end: int

    @classmethod
    def parse(cls, text: str, start: int) -> Self:
        """Parse the expression that opens at `start`. Raises ValueError if it isn't closed or its class is unknown."""
        is_negated = text[start + 1 : start + 2] in {"!", "^"}
        at = first = start + 1 + is_negated
        characters, ranges = set[str](), list[tuple[str, str]]()
        previous, closing = "", 0
        while at == first or text[at : at + 1] != "]":
            # Search once for each closing bracket: a row of `[:` must not search the rest of the text each time.
            if text.startswith("[:", at) and closing < at + 2:
                closing = text.index("]", at + 2)
            if previous and text[at : at + 1] == "-" and text[at + 1 : at + 2] != "]":
                high, at = _unescape(text, at + 1)
                ranges.append((previous, high))
                previous = ""
            elif text.startswith("[:", at) and closing > at + 2 and text[closing - 1] == ":":
                name, at, previous = text[at + 2 : closing - 1], closing + 1, ""
                if name not in _CLASSES:
                    raise ValueError(f"{name!r} is no class of characters")
                characters.update(_CLASSES[name])
            else:
                previous, at = _unescape(text, at)
                characters.add(previous)
        return cls(frozenset(characters), tuple(ranges), is_negated, at + 1)

    def match(self, character: str) -> bool:
        """Whether the expression matches this character."""
        is_listed = character in self.characters or any(low <= character <= high for low, high in self.ranges)
        return is_listed != self.is_negated


def _unescape(text: str, at: int) -> tuple[str, int]:
    """Return the character here, without its backslash, and the place behind it. Raises ValueError if the text ends."""
    at += text.startswith("\\", at)
    if at >= len(text):
        raise ValueError("the pattern is incomplete")
    return text[at], at + 1


def _match(item: str | Brackets | None, character: str) -> bool:
    if isinstance(item, str):
        return item == character
    return character != "/" and (item is None or item.match(character))


class Glob:
    """A glob pattern. `*`, `?` and brackets never match a slash; `**` does, where it stands for whole folders."""

    __slots__ = (
        "_deep",
        "_items",
        "_least",
        "_masks",
        "_needle",
        "_optional",
        "_place",
        "_stars",
        "head",
        "is_one_star",
        "literal",
        "tail",
    )

    def __init__(self, text: str) -> None:
        """Parse a pattern. Raises ValueError if it is incomplete, and so matches nothing."""
        if _WILD in text:
            raise ValueError("no path contains a NUL")
        #: For each item its character, its brackets, or None for any character but a slash.
        self._items: list[str | Brackets | None] = []
        #: The items before which a `*` takes any characters but slashes, and those before which a `**` takes any.
        self._stars, self._deep = set[int](), set[int]()
        #: The items that can be left out: the slashes of `**/`.
        self._optional = set[int]()
        self._masks: _Masks | None = None
        found = _SPECIAL.search(text)
        at = begin = found.start() if found else len(text)
        self._items += text[:begin]
        while at < len(text):
            at = self._parse_stars(text, at, begin) if text[at] == "*" else self._parse_item(text, at)
        parts = self._outline().split(_WILD)
        #: Literal characters at the start and at the end of each match.
        self.head, self.tail, self._needle = parts[0], parts[-1], max(parts, key=len)
        #: The only text that matches, if there is just one.
        self.literal = self.head if len(parts) == 1 else None
        #: Whether the pattern is one star between literal characters.
        self.is_one_star = len(parts) == 2 and len(self._items) == len(self.head) + len(self.tail)
        self._least = len(self._items) - len(self._optional)
        #: The item before which the only star is; the number of items if there is no star, None if there are several.
        self._place: int | None = next(iter((*self._stars, *self._deep)), self._least)
        if self._optional or len(self._stars) + len(self._deep) > 1:
            self._place = None

    def match(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        if self.literal is not None:
            return text == self.literal
        if len(text) < self._least or not (text.startswith(self.head) and text.endswith(self.tail)):
            return False
        if self._place is None:
            self._masks = self._masks or _Masks(self._items, self._stars, self._deep, self._optional)
            return self._needle in text and self._masks.run(text)
        # With one star at most, each item has its place.
        behind = self._place + len(text) - self._least
        if behind > self._place and not self._deep and (not self._stars or "/" in text[self._place : behind]):
            return False
        return self.is_one_star or all(map(_match, self._items, text[: self._place] + text[behind:]))

    def _parse_stars(self, text: str, at: int, begin: int) -> int:
        """Parse a row of stars and return the place behind it. The literal start of the pattern ends at `begin`."""
        end = at
        while text[end : end + 1] == "*":
            end += 1
        # Git compares the literal start separately, and takes what follows for a pattern of its own.
        is_folder = at == begin or text[at - 1] == "/"
        number = len(self._items)
        if not is_folder or end - at == 1 or not (end == len(text) or text.startswith(("/", "\\/"), end)):
            self._stars.add(number)
        elif not text.startswith("/", end):
            self._deep.add(number)
        else:
            end += 1
            if number - 1 not in self._optional:  # `**/**/` is `**/`
                self._deep.add(number)
                self._optional.add(number)
                self._items.append("/")
        return end

    def _parse_item(self, text: str, at: int) -> int:
        """Parse one item, and return the place behind it."""
        if text[at] == "?":
            self._items.append(None)
            return at + 1
        if text[at] == "[":
            brackets = Brackets.parse(text, at)
            self._items.append(brackets)
            return brackets.end
        character, end = _unescape(text, at)
        self._items.append(character)
        return end

    def _outline(self) -> str:
        """Return the pattern's literal characters, with other characters and stars replaced."""
        shown: list[str] = []
        for number, item in enumerate((*self._items, "")):
            if number in self._deep or number in self._stars:
                shown.append(_WILD)
            if number not in self._optional:
                shown.append(item if isinstance(item, str) else _WILD)
        return "".join(shown)


class _Masks:
    """The items and stars of a pattern as bits, one for each state."""

    __slots__ = ("_brackets", "_deep", "_end", "_literals", "_loops", "_optional", "_wild")

    def __init__(self, items: list[str | Brackets | None], stars: set[int], deep: set[int], optional: set[int]) -> None:
        self._literals: dict[str, int] = {}
        self._brackets: list[tuple[int, Brackets]] = []
        self._wild = 0
        for number, item in enumerate(items):
            if isinstance(item, str):
                self._literals[item] = self._literals.get(item, 0) | 1 << number
            elif item is None:
                self._wild |= 1 << number
            else:
                self._brackets.append((1 << number, item))
        #: The states that a slash doesn't end, and those that another character doesn't end.
        self._deep = sum(1 << number for number in deep)
        self._loops = self._deep | sum(1 << number for number in stars)
        self._optional = sum(1 << number for number in optional)
        self._end = 1 << len(items)

    def run(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        masks: dict[str, int] = {}
        state = 1 | (1 & self._optional) << 1
        for character in text:
            mask = masks.get(character)
            if mask is None:
                mask = masks[character] = self._of(character)
            moved = (state & mask) << 1
            moved |= (moved & self._optional) << 1
            state = moved | state & (self._deep if character == "/" else self._loops)
            if not state:
                return False
        return bool(state & self._end)

    def _of(self, character: str) -> int:
        """Return the states in which this character advances the match."""
        found = self._literals.get(character, 0)
        if character == "/":
            return found
        for bit, brackets in self._brackets:
            if brackets.match(character):
                found |= bit
        return found | self._wild
