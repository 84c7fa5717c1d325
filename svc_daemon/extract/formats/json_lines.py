"""JSON and NDJSON: the original lines, with the escapes inside strings turned into the characters they stand for.

It is not parsed: a place must stay a place in the file, and settings files with comments are read as well. But
`\\u00e9` would hide a word from search, and `\\n` would glue a letter to one.
"""

import re

from svc_daemon.core.documents import Document
from svc_daemon.extract.builders import LineDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.texts import decode

_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))")
_PLAIN = {'"': '"', "\\": "\\", "/": "/"}


def read(given: Given) -> Document:
    text, warnings = decode(given.data)
    document = LineDocument(_ESCAPE.sub(_character, text))
    kind = "row" if given.content_type == "application/x-ndjson" else "code"
    document.add(kind, 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def _character(escape: re.Match[str]) -> str:
    high, low, single, plain = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if single:
        # Controls would break lines; the rest is as good as written.
        return chr(int(single, 16)) if int(single, 16) >= ord(" ") else " "
    return _PLAIN.get(plain, " ")
