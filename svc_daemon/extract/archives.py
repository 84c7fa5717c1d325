"""Checks archives for zip bombs and XML for entities before they are parsed.

First the declared sizes are checked, then every member is expanded and counted. Archives within archives are never
opened.
"""

import codecs
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from itertools import chain
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from svc_daemon.extract import documents
from svc_daemon.extract.child_limits import CageLimits

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
    raise documents.unreadable(
        "The file's XML declares entities of its own, whose text is not read; save the file without them."
    )


_ENCRYPTED_FLAG = 1
#: Maximum number of bytes expanded in one step.
READ_BYTES = 256 * 1024
#: The compression ratio is checked only for members that are larger than this.
_RATIO_FROM_BYTES = 1024**2


@contextmanager
def open_archive(data: bytes, limits: CageLimits) -> Iterator[ZipFile]:
    """Open a zip archive. Raises ExtractionFailed if it is damaged, encrypted or over the limits."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            _check_members(archive, limits)
            yield archive
    except (BadZipFile, zlib.error, EOFError, KeyError, ValueError, NotImplementedError, OSError) as error:
        raise documents.unreadable("The file is damaged: its archive can't be expanded.") from error


def check_archive(data: bytes, limits: CageLimits) -> None:
    """Raise ExtractionFailed if `open_archive` would, or if XML in the archive declares entities."""
    with open_archive(data, limits) as archive:
        for member in archive.infolist():
            with archive.open(member) as content:
                check_entities(iter(partial(content.read, READ_BYTES), b""))


def _check_members(archive: ZipFile, limits: CageLimits) -> None:
    members = archive.infolist()
    if len(members) > limits.archive_entries:
        raise documents.over_limit(f"The file is an archive of more than {limits.archive_entries} members.")
    if any(member.flag_bits & _ENCRYPTED_FLAG for member in members):
        raise documents.encrypted()
    if sum(member.file_size for member in members) > limits.archive_bytes:
        raise too_large(limits)
    for member in members:
        check_ratio(member.compress_size, member.file_size, limits)
    # Declared sizes may be false, so count what is produced.
    total = 0
    for member in members:
        size = 0
        with archive.open(member) as content:
            while piece := content.read(READ_BYTES):
                size += len(piece)
                if total + size > limits.archive_bytes:
                    raise too_large(limits)
        check_ratio(member.compress_size, size, limits)
        total += size


def check_ratio(packed_bytes: int, size: int, limits: CageLimits) -> None:
    """Raise ExtractionFailed if the compression ratio is over the limit."""
    if size > _RATIO_FROM_BYTES and size > limits.archive_ratio * max(packed_bytes, 1):
        raise documents.over_limit(f"The file expands to more than {limits.archive_ratio} times its size.")


def too_large(limits: CageLimits) -> documents.ExtractionFailed:
    """Return the error for a file that expands beyond the limit."""
    return documents.over_limit(f"The file expands to more than {limits.archive_bytes // 1024**2} MB.")
