"""Names: words that a text writes with a capital letter where no sentence begins."""

import re
from collections.abc import Collection

from svc_daemon.core.queries import STOP_WORDS

_WORD = re.compile(r"[^\W\d_]\w*")
_BEGINNING = re.compile(r"(?:^|[.!?:\n“\"(«|])\s*$")
#: What stands before a name, and ends no sentence.
_TITLE = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St)\.\s$")
_LONGEST_TITLE = 6
#: More of a text than this is written so in German, or in a title: there a capital letter says nothing.
MOST_CAPITALS = 0.25
#: Two forms of a name have so many letters in common: `Norway`, `Norwegian`.
_COMMON = 4
_SHORTEST = 3


def names_of(text: str) -> set[str]:
    """The names in small letters; a sentence's first word counts before another name, or all in capitals."""
    matches = list(_WORD.finditer(text))
    names = set()
    for place, match in enumerate(matches):
        if not match[0][0].isupper() or match[0].lower() in STOP_WORDS:
            continue
        following = matches[place + 1] if place + 1 < len(matches) else None
        before = text[max(0, match.start() - _LONGEST_TITLE) : match.start()]
        is_first = bool(_BEGINNING.search(before)) and not _TITLE.search(before)
        if not is_first or _is_acronym(match[0]) or (following and _begins_name(text, match, following)):
            names.add(match[0].lower())
    return names


def share_of_capitals(text: str) -> float:
    """The part of the words that begin with a capital letter."""
    words = _WORD.findall(text)
    return len([word for word in words if word[0].isupper()]) / max(1, len(words))


def is_known(name: str, words: Collection[str]) -> bool:
    """Whether the name, or another form of it, is among the words, which are in small letters."""
    return name in words or any(_is_form(name, word) for word in words)


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def _begins_name(text: str, match: re.Match[str], following: re.Match[str]) -> bool:
    return following[0][0].isupper() and text[match.end() : following.start()] == " "


def _is_form(name: str, word: str) -> bool:
    shorter, longer = sorted((name, word), key=len)
    if len(shorter) < _SHORTEST:
        return False
    return longer.startswith(shorter) or (len(shorter) > _COMMON and shorter[:_COMMON] == longer[:_COMMON])
