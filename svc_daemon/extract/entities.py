"""XML that declares entities: no parser here expands them, so what they stand for would be missing in silence."""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from xml.parsers import expat

from svc_daemon.extract import failures

#: Each kind of UTF-32 by how it begins, with its mark or without.
_WIDE = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"<\0\0\0": "utf-32-le", b"\0\0\0<": "utf-32-be"}
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)""")


class _Passed(Exception):
    """What comes from here on can declare and lose nothing."""


def check_entities(pieces: Iterable[bytes]) -> None:
    """Raise ExtractionFailed where the pieces are XML that declares entities, or uses some of a file outside.

    Whatever is no XML passes: what is wrong with it is its parser's to say.
    """
    pieces = iter(pieces)
    head = next(pieces, b"")
    pieces, encoding = chain([head], pieces), _foreign_encoding(head)
    parser = expat.ParserCreate("utf-8" if encoding else None)
    parser.StartElementHandler = _pass
    parser.StartDoctypeDeclHandler = lambda name, *_: _look_further(parser, name)
    parser.EntityDeclHandler = parser.SkippedEntityHandler = _refuse
    try:
        for piece in _in_utf8(pieces, encoding) if encoding else pieces:
            parser.Parse(piece)
    except (_Passed, expat.ExpatError, LookupError):
        return


def _foreign_encoding(head: bytes) -> str | None:
    """The encoding, where it is one that parsers know and expat does not."""
    declared = _DECLARED.match(head)
    encoding = _WIDE.get(head[:4]) or (declared and declared[1].decode())
    try:
        return None if encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-16") else encoding
    except LookupError:
        return None


def _in_utf8(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    return (piece.encode(errors="replace") for piece in codecs.iterdecode(pieces, encoding, errors="replace"))


def _look_further(parser: expat.XMLParserType, name: str) -> None:
    # HTML has named characters without declaring them, and its parser knows these.
    if name.lower() != "html":
        parser.StartElementHandler = None


def _pass(*_: object) -> None:
    raise _Passed


def _refuse(*_: object) -> None:
    raise failures.unreadable(
        "The file's XML declares entities of its own, whose text is not read; save the file without them."
    )
