"""Refuses XML that declares entities: our parsers don't expand these, so their text would be missing without notice."""

import codecs
import re
from collections.abc import Iterable
from itertools import chain
from xml.parsers import expat

from svc_daemon.extract import failures

#: UTF-32 encodings by the first bytes of a file, with or without a byte order mark.
_WIDE = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"<\0\0\0": "utf-32-le", b"\0\0\0<": "utf-32-be"}
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)""")


class _Passed(Exception):
    """Raised to stop the parser at a point after which XML can't declare entities: the file has passed the check."""


def check_entities(pieces: Iterable[bytes]) -> None:
    """Raise ExtractionFailed if the pieces are XML that declares entities, or uses entities of an external file.

    Anything that is not XML passes: errors in it are reported by the parser of its format.
    """
    pieces = iter(pieces)
    head = next(pieces, b"")
    pieces = chain([head], pieces)
    declared = _DECLARED.match(head)
    encoding = _WIDE.get(head[:4]) or (declared and declared[1].decode())
    try:
        # Convert encodings that our parsers support but expat, which is used here, does not.
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
    except (_Passed, expat.ExpatError, LookupError):
        return


def _look_further(parser: expat.XMLParserType, name: str) -> None:
    # HTML needs no further check: its entities are predefined, and its parser knows them.
    if name.lower() != "html":
        parser.StartElementHandler = None


def _pass(*_: object) -> None:
    raise _Passed


def _refuse(*_: object) -> None:
    raise failures.unreadable(
        "The file's XML declares entities of its own, whose text is not read; save the file without them."
    )
