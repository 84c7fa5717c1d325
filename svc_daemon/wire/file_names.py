"""Decides which file names are refused, both by the service and by its clients. Pure.

File names are stored, shown and searched, but never used to build a path.
"""

import re
import unicodedata
from enum import StrEnum

#: Maximum length of a file name on most file systems, in bytes.
MAX_NAME_BYTES = 255

#: The path separators of all systems, because the client may run on another system than the service.
_SEPARATORS = re.compile(r"[/\\]")

#: A pattern that matches most file names, so that they don't need the slower checks.
_PLAIN = re.compile(r"\w[\w. -]{0,250}\w", re.ASCII)

#: Control characters (Cc), format characters such as zero-width and bidi marks (Cf), and line and paragraph separators
#: (Zl, Zp). Such characters can make a name look like another one, or break a line in a log.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})

#: The zero-width joiner and non-joiner are allowed inside a name, because emoji and many scripts need them.
JOINERS = frozenset("\u200c\u200d")


class NameFlaw(StrEnum):
    """The reasons for which a file name is refused."""

    NOT_UTF8 = "name is not UTF-8"
    INVISIBLE = "name holds an invisible character"
    NO_NAME = "name is blank or a path"
    TOO_LONG = "name is too long"


def clean_name(text: str) -> str:
    """Return the last component of a name, normalized to NFC, without surrounding spaces."""
    return unicodedata.normalize("NFC", _SEPARATORS.split(text)[-1].strip())


def find_flaw(text: str) -> NameFlaw | None:
    """Return why a name is refused, or None if it is valid. Of a path, only the last component is checked."""
    if _PLAIN.fullmatch(text):
        return None
    if (flaw := find_odd_character(text)) is not None:
        return flaw
    components = [component.strip() for component in _SEPARATORS.split(text)]
    if components[-1] in {"", "."} or ".." in components:
        return NameFlaw.NO_NAME
    name = clean_name(text)
    return NameFlaw.TOO_LONG if len(name.encode()) > MAX_NAME_BYTES else None


def find_odd_character(text: str) -> NameFlaw | None:
    """Like `find_flaw`, but check only the characters, which is enough for folder names."""
    if text.isprintable():
        return None
    # Python decodes bytes of a file name that aren't UTF-8 to surrogates.
    if any("\ud800" <= character <= "\udfff" for character in text):
        return NameFlaw.NOT_UTF8
    components = (component.strip() for component in _SEPARATORS.split(text))
    ends = {end for component in components if component for end in (component[0], component[-1])}
    is_odd = any(unicodedata.category(character) in _INVISIBLE for character in (set(text) - JOINERS) | ends)
    return NameFlaw.INVISIBLE if is_odd else None
