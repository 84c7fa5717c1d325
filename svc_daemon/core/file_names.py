"""File names as data: what a name sent by a client becomes, and which names are refused.

No path is ever built from a file name; it is stored, shown and searched.
"""

import re
import unicodedata

from svc_daemon.core.refusals import refusal

#: What most file systems take as one name.
MAX_NAME_BYTES = 255

#: Both separators count, whatever system the client runs on.
_SEPARATORS = re.compile(r"[/\\]")

#: Controls (Cc), formats such as zero-width and bidi marks (Cf), lone surrogates (Cs), line and paragraph separators:
#: what lets a name look like another one, or breaks a line of a log.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean_file_name(text: str, path: str = "filename") -> str:
    """The last path component of `text` in NFC, at most 255 bytes of UTF-8.

    Raises ServiceError `invalid_request`, naming `path` as the field, for a name that is empty, holds a `..` component
    or invisible characters, or is too long.
    """
    if any(unicodedata.category(character) in _INVISIBLE for character in text):
        raise refusal(path, "A file name must not contain control, bidi or zero-width characters.")
    components = _SEPARATORS.split(text)
    if ".." in (component.strip() for component in components):
        raise refusal(path, "A file name must not contain '..'.")
    name = unicodedata.normalize("NFC", components[-1].strip())
    if name in {"", "."}:
        raise refusal(path, "A file name must not be empty.")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise refusal(path, f"A file name must not be longer than {MAX_NAME_BYTES} bytes.")
    return name
