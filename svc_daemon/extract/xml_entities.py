"""Refuses XML that declares entities. Our parsers don't expand entities, so their text would be missing."""

import codecs
import re
from collections.abc import Iterable
from itertools import chain
from xml.parsers import expat

from svc_daemon.extract import failures

#: UTF-32 encodings by a file's first bytes.
_WIDE = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"<\0\0\0": "utf-32-le", b"\0\0\0<": "utf-32-be"}
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
    declared = _DECLARED.match(head)
    encoding = _WIDE.get(head[:4]) or (declared and declared[1].decode())
    try:
        # Expat supports fewer encodings than our parsers, so text in other encodings is decoded for it.
        is_foreign = encoding is not None and codecs.lookup(encoding).name not in ("utf-8", "utf-16")
    except LookupError:
        is_foreign = False
    if encoding and is_foreign:
        texts = codecs.iterdecode(pieces, encoding, errors="replace")
        pieces = (text.encode(errors="replace") for text in texts)
    parser = expat.ParserCreate("utf-8" if is_foreign else None)
    parser.StartElementHandler = _pass
    parser.StartDoctypeDeclHandler = lambda name, *_: _look_further(parser, name)
    parser.EntityDeclHandler = parser.SkippedEntityHandler = _refuse
    try:
        for piece in pieces:
            parser.Parse(piece)
        # Since version 2.6, Expat may wait for more bytes before it calls the handlers.
        parser.Parse(b"", True)
    except (_Passed, expat.ExpatError, LookupError):
        return


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
