"""Refuses XML that declares entities. Our parsers don't expand entities, so their text would be missing."""

import codecs
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from xml.parsers import expat

from svc_daemon.extract import failures

#: Encodings by a file's first bytes. The first that matches is used.
_WIDE = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"<\0\0\0": "utf-32-le",
    b"\0\0\0<": "utf-32-be",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
_START = b"<?xml"
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)""")


class _Passed(Exception):
    """Stops the parser where XML can no longer declare entities."""


def check_entities(pieces: Iterable[bytes]) -> None:
    """Raise ExtractionFailed if the pieces are XML that defines entities, or uses entities of another file.

    Other data passes, even if it is invalid, because the parser of its format reports errors.
    """
    pieces = iter(pieces)
    head = next(pieces, b"")
    pieces = chain([head], pieces)
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = _pass
    parser.StartDoctypeDeclHandler = lambda name, *_: _look_further(parser, name)
    parser.EntityDeclHandler = parser.SkippedEntityHandler = _refuse
    try:
        # Expat supports fewer encodings than our parsers.
        for text in codecs.iterdecode(pieces, _find_encoding(head), errors="replace"):
            parser.Parse(text.encode(errors="replace"))
        # Since version 2.6, Expat may wait for more bytes before it calls the handlers.
        parser.Parse(b"", True)
    except (_Passed, expat.ExpatError):
        return


def _find_encoding(head: bytes) -> str:
    for mark, encoding in _WIDE.items():
        if head.startswith(mark):
            return encoding
    declared = _DECLARED.match(head)
    if declared:
        # The declaration is ASCII text, so an encoding that reads it otherwise is wrong, or isn't one of text.
        with suppress(LookupError, UnicodeError):
            if _START.decode(declared[1].decode(), "replace").encode() == _START:
                return declared[1].decode()
    return "utf-8"


def _look_further(parser: expat.XMLParserType, name: str) -> None:
    # HTML has only predefined entities, so its elements need no check. In other XML, elements may use other entities.
    if name.lower() != "html":
        parser.StartElementHandler = None


def _pass(*_: object) -> None:
    raise _Passed


def _refuse(*_: object) -> None:
    raise failures.unreadable(
        "The file's XML declares entities of its own, whose text is not read; save the file without them."
    )
