"""How text and JSON are printed: no character of a document, a name or an address controls the terminal or hides."""

import json
import re
from typing import Any

#: The format characters (Cf) and the line and paragraph separators (Zl, Zp) of Unicode, with the whole block of tags.
#: They are invisible, break lines, or change the direction of the text, so that it can look like another.
_FORMATS = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f"
)
#: With DEL and the control characters above it. JSON escapes the others itself.
_HIDDEN_IN_JSON = re.compile(f"[\x7f-\x9f{_FORMATS}]")
#: All control characters but tabs and line breaks.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_HIDDEN_IN_ASCII = re.compile(f"[{_CONTROLS}]")
#: The zero-width joiner and non-joiner stay between two other characters: emoji and many scripts need them there.
_HIDDEN_IN_TEXT = re.compile(
    f"(?![\u200c\u200d])[{_CONTROLS}{_FORMATS}]"
    "|(?<![^\\s\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\\s\u200c\u200d])"
)


def escape_text(text: str) -> str:
    r"""Escape control and format characters, as in `\x1b` or `\u202e`; tabs, line breaks and used joiners stay."""
    hidden = _HIDDEN_IN_ASCII if text.isascii() else _HIDDEN_IN_TEXT
    return hidden.sub(lambda found: ascii(found[0])[1:-1], text)


def dump_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON in which control and format characters are escaped."""
    # They occur only in strings.
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isascii() and "\x7f" not in text:
        return text
    return _HIDDEN_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)
