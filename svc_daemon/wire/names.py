"""Checks names and texts that people read. The service and its clients refuse the same ones.

A name is one line: of a bucket, an agent, a key, a team, a mapping, a source (its title) or a tag. A text, such as a
description, may have several lines.
"""

import re

from svc_daemon.wire.file_names import find_odd_character

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
