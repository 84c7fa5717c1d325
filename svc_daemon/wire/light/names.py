"""Names that users give, and names of files in headers and downloads.

A name is one line: of a bucket, an agent, a key, a team, a mapping, a source (its title) or a tag. A text, such as a
description, may have several lines.
"""

import re
import unicodedata
from enum import StrEnum

#: Maximum length of a file name, as in most file systems.
MAX_NAME_BYTES = 255

#: Path separators of all systems, since the client's system may differ from the service's.
_SEPARATORS = re.compile(r"[/\\]")

#: A simple pattern that most valid names match. The other names need slower checks.
_PLAIN = re.compile(r"\w[\w. -]{0,250}\w", re.ASCII)

#: Control (Cc) and format characters (Cf), and line and paragraph separators (Zl, Zp). They can make a name look like
#: another, or break a line in a log.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})

#: Zero-width joiner and non-joiner, which emoji and many scripts need.
JOINERS = frozenset("\u200c\u200d")


class NameFlaw(StrEnum):
    """Why a file name is refused."""

    NOT_UTF8 = "name is not UTF-8"
    INVISIBLE = "name holds an invisible character"
    NO_NAME = "name is blank or a path"
    TOO_LONG = "name is too long"


def clean_name(text: str) -> str:
    """Return the last component of a path, in NFC and without surrounding spaces."""
    return unicodedata.normalize("NFC", _SEPARATORS.split(text)[-1].strip())


def find_flaw(text: str) -> NameFlaw | None:
    """Return why a file name or path is refused, or None if it is accepted."""
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
    """Return why a character of the name is refused, or None if all characters are accepted."""
    if text.isprintable():
        return None
    # Python decodes bytes that aren't UTF-8 to surrogates.
    if any("\ud800" <= character <= "\udfff" for character in text):
        return NameFlaw.NOT_UTF8
    components = (component.strip() for component in _SEPARATORS.split(text))
    ends = {end for component in components if component for end in (component[0], component[-1])}
    is_odd = any(unicodedata.category(character) in _INVISIBLE for character in (set(text) - JOINERS) | ends)
    return NameFlaw.INVISIBLE if is_odd else None


#: Control characters but tabs and line breaks, and characters that make a text look like another.
_ODD_IN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\r(?!\n)")

_ODD = "must not contain control, bidi or other invisible characters."


def find_fault_of_name(name: str) -> str | None:
    """Return why a name is refused, or None if it is accepted. File names have the same rule for characters."""
    if not name.strip():
        return "must not be blank."
    return None if find_odd_character(name) is None else _ODD


def find_fault_of_text(text: str) -> str | None:
    """Return why a text is refused, or None if it is accepted."""
    return "must not contain control or bidi characters." if _ODD_IN_TEXT.search(text) else None
