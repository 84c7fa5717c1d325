"""Detects the kind of document that a file made of other files is: an OLE file or a zip archive.

OLE files are those of old Office programs and Outlook. The streams of the file itself decide, not those of what is
embedded in it; any name counts if its tables can't be read. They also show whether the file has a password.
A zip archive has its own list of types, or the names of its members decide.
"""

import re
import struct
import zlib
from collections.abc import Collection, Iterator
from io import BytesIO
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from svc_daemon.core.text.document_formats import EXCEL, POWERPOINT

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED = "application/x-ole-encrypted"
_ANY = "application/x-ole-storage"
#: Streams that show the kind. Encryption is first, since encrypted files may have the other streams too.
_STREAMS = {
    "EncryptedPackage": ENCRYPTED,
    "EncryptedSummary": ENCRYPTED,
    "WordDocument": "application/msword",
    "PowerPoint Document": POWERPOINT,
    "__properties_version1.0": "application/vnd.ms-outlook",
    "__substg1.0_": "application/vnd.ms-outlook",
    "Workbook": EXCEL,
    "Book": EXCEL,
}
#: Smaller streams are in a stream of small streams, in pieces of 64 bytes.
_SMALL_STREAM = 4096
_ENTRY_BYTES = 128
_NO_SECTOR, _NO_ENTRY = 0xFFFFFFFA, 0xFFFFFFFF
#: A bit of a Word file's first bytes, and a record at the beginning of a workbook, that say that it is encrypted.
_WORD_ENCRYPTED, _FILE_PASS = 0x0100, 0x2F


class _Entry(NamedTuple):
    name: str
    left: int
    right: int
    child: int
    start: int
    size: int


def ole_type(data: bytes) -> str:
    """Return the media type of an OLE file."""
    try:
        return _typed_by_streams(data)
    except (struct.error, IndexError, UnicodeDecodeError):
        found = (kind for name, kind in _STREAMS.items() if name.encode("utf-16-le") in data)
        return next(found, _ANY)


def _typed_by_streams(data: bytes) -> str:
    """Raises struct.error, IndexError or UnicodeDecodeError if the tables of the file are damaged or cut off."""
    shift = struct.unpack_from("<H", data, 30)[0] & 15
    sector_bytes = 1 << shift
    tables = [each for each in struct.unpack_from("<109I", data, 76) if each < _NO_SECTOR]
    following = [
        number
        for table in tables
        for number in struct.unpack_from(f"<{sector_bytes // 4}I", data, (table + 1) << shift)
    ]

    def sectors(number: int) -> Iterator[bytes]:
        for _ in following:
            if number >= _NO_SECTOR:
                return
            yield data[(number + 1) << shift : (number + 2) << shift]
            number = following[number]

    directory = b"".join(sectors(struct.unpack_from("<I", data, 48)[0]))
    entries = [_read_entry(directory[at : at + _ENTRY_BYTES]) for at in range(0, len(directory), _ENTRY_BYTES)]
    streams, waiting, seen = {}, [entries[0].child], set()
    while waiting:
        number = waiting.pop()
        if number != _NO_ENTRY and number not in seen:
            seen.add(number)
            streams[entries[number].name] = entries[number]
            waiting += [entries[number].left, entries[number].right]
    for name, kind in _STREAMS.items():
        # Names are the same whatever their capitals, which some programs change.
        stream = next((entry for found, entry in streams.items() if found.lower().startswith(name.lower())), None)
        if stream is not None:
            if stream.size >= _SMALL_STREAM:
                head = next(sectors(stream.start), b"")
            else:
                head = b"".join(sectors(entries[0].start))[stream.start * 64 :][:64]
            return ENCRYPTED if _is_locked(kind, head) else kind
    return _ANY


def _read_entry(raw: bytes) -> _Entry:
    name_bytes = struct.unpack_from("<H", raw, 64)[0]
    left, right, child = struct.unpack_from("<3I", raw, 68)
    start, size = struct.unpack_from("<2I", raw, 116)
    return _Entry(raw[: max(0, min(name_bytes, 64) - 2)].decode("utf-16-le"), left, right, child, start, size)


def _is_locked(kind: str, head: bytes) -> bool:
    """Whether the first bytes of a document say that the rest needs a password."""
    if kind == "application/msword" and len(head) > 12:
        return bool(struct.unpack_from("<H", head, 10)[0] & _WORD_ENCRYPTED)
    at = 0
    while kind == EXCEL and at + 4 <= len(head):
        record, size = struct.unpack_from("<2H", head, at)
        if record == _FILE_PASS:
            return True
        at += 4 + size
    return False


_ZIP = "application/zip"
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
#: Names in a zip archive, or their beginnings, in small letters, that show the kind of document.
_ZIP_MEMBERS = {
    "word/": f"{_OPEN_XML}.wordprocessingml.document",
    "ppt/": f"{_OPEN_XML}.presentationml.presentation",
    "xl/": f"{_OPEN_XML}.spreadsheetml.sheet",
    "meta-inf/container.xml": "application/epub+zip",
}
#: The type of the main part of an Office file, as its list of types has it.
_MAIN_PART = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.\w+\.\w+|ms-\w+\.\w+(\.binary)?\.macroEnabled(?:Template)?)\.main",
    re.IGNORECASE,
)
#: Lists of types are read up to here.
_TYPES_BYTES = 1024 * 1024
#: What an OpenDocument says that it is.
_ODF_TYPE = re.compile(rb"application/vnd\.oasis\.opendocument\.[a-z]+(?:-[a-z-]+)?")
#: The names are looked for in so many leading bytes if the archive has lost its list of members.
_HEAD_BYTES = 64 * 1024
_LOCAL_NAME = re.compile(rb"PK\x03\x04.{22}(..)..", re.DOTALL)


def zip_type(data: bytes, known: Collection[str]) -> str:
    """Return the media type of a zip archive: one of the known types of documents, or that of any archive."""
    declared = re.match(rb"PK\x03\x04.{26}mimetype([\w./+-]+?)(?=PK|\x00)", data[:200], re.DOTALL)
    if declared:
        media_type = declared[1].decode("ascii")
        return media_type if media_type in known else _ZIP
    try:
        with ZipFile(BytesIO(data)) as archive:
            names = archive.namelist()
            for name in names:
                plain = plain_name(name)
                if plain in {"mimetype", "meta-inf/manifest.xml", "[content_types].xml"}:
                    with archive.open(name) as content:
                        listed = content.read(_TYPES_BYTES)
                    # The type of an OpenDocument may also be compressed, or only in the list of parts.
                    named = _ODF_TYPE.search(listed[:4096]) if plain.startswith("m") else None
                    if named and named[0].decode() in known:
                        return named[0].decode()
                    if main := main_part_type(listed, known):
                        return main
    except (BadZipFile, NotImplementedError, ValueError, RuntimeError, OSError, EOFError, zlib.error):
        # The archive is truncated or broken: use the names in its local headers.
        head = data[:_HEAD_BYTES]
        found = ((header.end(), int.from_bytes(header[1], "little")) for header in _LOCAL_NAME.finditer(head))
        names = [head[start : start + size].decode("utf-8", "replace") for start, size in found]
    plain_names = [*map(plain_name, names)]
    kinds = (
        media_type for name in plain_names for member, media_type in _ZIP_MEMBERS.items() if name.startswith(member)
    )
    return next(kinds, _ZIP)


def main_part_type(xml: bytes, known: Collection[str]) -> str | None:
    """Return the media type of an Office file whose parts have the types in this XML."""
    # In UTF-16, every second byte is NUL.
    for main in _MAIN_PART.finditer(xml.replace(b"\0", b"")):
        media_type = main[0].decode().lower().removesuffix(".main").replace("macroenabledtemplate", "macroenabled")
        media_type += ".12" if media_type.endswith("macroenabled") else ""
        if media_type in known:
            return media_type
    return None


def plain_name(name: str) -> str:
    """Return the name of an archive's member as it is compared: some programs write other slashes and capitals."""
    return name.replace("\\", "/").removeprefix("./").lstrip("/").lower()
