"""How text and JSON are printed: no character of a document, a name or an address controls the terminal."""

import json
import re
from typing import Any

#: DEL and the control characters above it, which JSON would print as they are, and the characters that change the
#: direction of the text, so that it can look like another.
_HIDDEN = "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN_IN_JSON = re.compile(f"[{_HIDDEN}]")
#: All control characters but tabs and line breaks.
_HIDDEN_IN_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")


def escape_text(text: str) -> str:
    r"""Escape control and bidirectional characters, as in `\x1b` or `\u202e`; tabs and line breaks stay."""
    return _HIDDEN_IN_TEXT.sub(lambda found: ascii(found[0])[1:-1], text)


def dump_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON in which control and bidirectional characters are escaped."""
    # They occur only in strings.
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _HIDDEN_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
