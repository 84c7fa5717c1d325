"""Expands archives within limits, and checks XML for entities before it is parsed.

Only members that are read are expanded, so only they count: their sizes, and the ratio of compression over all of them.
Archives within archives are never opened.
"""

import codecs
import posixpath
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import chain
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from svc_daemon.core.text.container_types import plain_name
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
#: The compression ratio is checked only if more than this was expanded.
_RATIO_FROM_BYTES = 1024**2
#: What damaged members raise.
DAMAGE = (BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError)
#: Members that hold no text, and that no reader of text expands.
_MEDIA = re.compile(
    r"\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|emz|wmz|svgz?|webp|ico|wdp|mp[34]|m4[av]|mov|avi|wmv|wav|wma|mpe?g|[ot]tf|woff2?|"
    r"odttf|fntdata)$",
    re.IGNORECASE,
)


class ZipMembers:
    """A zip archive. Members are found by the names that they should have: `a/b` finds `A\\b` and `/a/b` too."""

    def __init__(self, archive: ZipFile, limits: CageLimits) -> None:
        self._archive, self._limits = archive, limits
        self._size, self._packed = 0, 0
        self._members = {plain_name(member.filename): member for member in archive.infolist()}
        # A name in the spelling that is asked for comes before the others.
        self._members |= {member.filename: member for member in archive.infolist()}

    def namelist(self) -> list[str]:
        """Return the names of all members as they are spelled in the archive."""
        return self._archive.namelist()

    def __contains__(self, name: str) -> bool:
        return name in self._members or plain_name(name) in self._members

    def read(self, name: str) -> bytes:
        """Expand a member. Raises KeyError, one of `DAMAGE`, or ExtractionFailed: encrypted or over a limit."""
        member = self._members.get(name) or self._members[plain_name(name)]
        if member.flag_bits & _ENCRYPTED_FLAG:
            raise documents.encrypted()
        if self._size + member.file_size > self._limits.archive_bytes:
            raise too_large(self._limits)
        # Declared sizes may be false, so count what is produced.
        pieces = []
        self._packed += member.compress_size
        with self._archive.open(member) as content:
            while piece := content.read(READ_BYTES):
                pieces.append(piece)
                self._size += len(piece)
                if self._size > self._limits.archive_bytes:
                    raise too_large(self._limits)
        check_ratio(self._packed, self._size, self._limits)
        return b"".join(pieces)

    def read_xml(self, name: str) -> bytes:
        """Expand a member as `read` does. Raises ExtractionFailed, too, if it is XML that declares entities."""
        data = self.read(name)
        check_entities(data[start : start + READ_BYTES] for start in range(0, len(data), READ_BYTES))
        return data


def load_archive(data: bytes, limits: CageLimits) -> ZipMembers:
    """Return a zip archive. Raises ExtractionFailed if its list of members is damaged or too long."""
    return ZipMembers(_open_zip(data, limits), limits)


def _open_zip(data: bytes, limits: CageLimits) -> ZipFile:
    try:
        archive = ZipFile(BytesIO(data))
    except DAMAGE as error:
        raise _damaged() from error
    if len(archive.infolist()) > limits.archive_entries:
        raise documents.over_limit(f"The file is an archive of more than {limits.archive_entries} members.")
    return archive


@contextmanager
def open_archive(data: bytes, limits: CageLimits) -> Iterator[ZipMembers]:
    """Open a zip archive of which everything that is read must be whole.

    Raises ExtractionFailed if it is damaged, encrypted or over the limits.
    """
    try:
        yield load_archive(data, limits)
    except (KeyError, *DAMAGE) as error:
        raise _damaged() from error


def _damaged() -> documents.ExtractionFailed:
    return documents.unreadable("The file is damaged: its archive can't be expanded.")


class Members:
    """The members of an archive, each expanded and checked when it is read, so that a broken one costs only itself."""

    def __init__(self, archive: ZipFile, limits: CageLimits) -> None:
        self._archive, self._limits = archive, limits
        self._size = self._packed = 0
        self._infos = {_stepless(info.filename): info for info in archive.infolist()}
        self._folded = {name.lower(): info for name, info in self._infos.items()}

    @property
    def names(self) -> list[str]:
        return [*self._infos]

    def read(self, name: str) -> bytes | None:
        """Expand a member, whose name may differ in its case; None if there is none, or if it is broken.

        Raises ExtractionFailed if it needs a password, or if all that was read is over the limits.
        """
        name = _stepless(name)
        info = self._infos.get(name) or self._folded.get(name.lower())
        if info is None:
            return None
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise documents.encrypted()
        pieces = []
        self._packed += info.compress_size
        with suppress(*DAMAGE):
            with self._archive.open(info) as content:
                while piece := content.read(READ_BYTES):
                    self._size += len(piece)
                    if self._size > self._limits.archive_bytes:
                        raise too_large(self._limits)
                    check_ratio(self._packed, self._size, self._limits)
                    pieces.append(piece)
            return b"".join(pieces)
        return None


@contextmanager
def open_members(data: bytes, limits: CageLimits) -> Iterator[Members]:
    """Open a zip archive without reading its members. Raises ExtractionFailed if it is damaged or has too many."""
    with _open_zip(data, limits) as archive:
        yield Members(archive, limits)


def _stepless(name: str) -> str:
    """Return a member's name with slashes and without steps, as it would be within a folder."""
    return posixpath.normpath(name.replace("\\", "/")).lstrip("/").removeprefix("./")


def check_archive(data: bytes, limits: CageLimits) -> None:
    """Expand all members that hold text, for libraries that expand them without limits.

    Raises ExtractionFailed if the archive is damaged, encrypted or over the limits, or if its XML declares entities.
    """
    with open_archive(data, limits) as archive:
        for name in archive.namelist():
            if not _MEDIA.search(name):
                archive.read_xml(name)


def check_ratio(packed_bytes: int, size: int, limits: CageLimits) -> None:
    """Raise ExtractionFailed if the compression ratio is over the limit."""
    if size > _RATIO_FROM_BYTES and size > limits.archive_ratio * max(packed_bytes, 1):
        raise documents.over_limit(f"The file expands to more than {limits.archive_ratio} times its size.")


def too_large(limits: CageLimits) -> documents.ExtractionFailed:
    """Return the error for a file that expands beyond the limit."""
    return documents.over_limit(f"The file expands to more than {limits.archive_bytes // 1024**2} MB.")
