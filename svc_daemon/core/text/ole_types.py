"""Detects the kind of document that an OLE file is, as old Office programs and Outlook write, and its password.

The streams of the file itself decide, not those of what is embedded in it. Any name counts if its tables can't be read.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

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
        stream = next((entry for found, entry in streams.items() if found.startswith(name)), None)
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
