"""The kind of an OLE file is that of its own streams, and a password is noticed in each kind."""

import struct

import pytest

from svc_daemon.core.text.media_types import ENCRYPTED_OFFICE, detect

WORD, EXCEL, POWERPOINT = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
_END, _NONE = 0xFFFFFFFE, 0xFFFFFFFF


def _entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    raw = (name + "\0").encode("utf-16-le")
    ids = struct.pack("<HBB3I", len(raw), kind, 1, _NONE, right, child)
    return raw.ljust(64, b"\0") + ids + bytes(36) + struct.pack("<2IQ", start, size, 0)[:12]


def ole(streams: dict[str, bytes], embedded: str = "") -> bytes:
    """An OLE file with streams of 4096 bytes, and a folder with a stream of another file."""
    names = [*streams]
    first_embedded = len(names) + 2
    entries = [_entry("Root Entry", 5, _NONE, 1, _END, 0)]
    for number, name in enumerate(names):
        entries.append(_entry(name, 2, number + 2, _NONE, 2 + number * 8, 4096))
    entries.append(_entry("MBD0001", 1, _NONE, first_embedded, 0, 0))
    entries.append(_entry(embedded, 2, _NONE, _NONE, _END, 0))
    entries += [_entry("", 0, _NONE, _NONE, 0, 0)] * (-len(entries) % 4)
    directory = b"".join(entries)
    # The directory follows the streams.
    first = 2 + 8 * len(names)
    count = len(directory) // 512
    table = [0xFFFFFFFD, _END]
    for number in range(len(names)):
        table += [*(3 + number * 8 + step for step in range(7)), _END]
    table += [*range(first + 1, first + count), _END]
    table += [_NONE] * (128 - len(table))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(24, b"\0") + struct.pack("<5H", 62, 3, 0xFFFE, 9, 6)
    header = header.ljust(44, b"\0") + struct.pack("<2I", 1, first) + struct.pack("<I", 0) + struct.pack("<I", 4096)
    header = header.ljust(76, b"\0") + struct.pack("<I", 0) + struct.pack("<108I", *[_NONE] * 108)
    body = b"".join(content.ljust(4096, b"\0") for content in streams.values())
    return header + struct.pack("<128I", *table) + bytes(512) + body + directory


BOOK = struct.pack("<2H", 0x809, 16) + bytes(16)
LOCKED_BOOK = BOOK + struct.pack("<2H", 0x2F, 54)


@pytest.mark.parametrize(
    ("data", "kind"),
    (
        (ole({"Workbook": BOOK}, embedded="WordDocument"), EXCEL),
        (ole({"WordDocument": bytes(512)}, embedded="EncryptedPackage"), WORD),
        (ole({"PowerPoint Document": b""}, embedded="Workbook"), POWERPOINT),
        (ole({"__properties_version1.0": b""}, embedded="WordDocument"), "application/vnd.ms-outlook"),
        (ole({"Contents": b""}, embedded="Book"), "application/x-ole-storage"),
        (ole({"Workbook": LOCKED_BOOK}), ENCRYPTED_OFFICE),
        (ole({"WordDocument": bytes(10) + b"\x00\x01"}), ENCRYPTED_OFFICE),
        (ole({"PowerPoint Document": b"", "EncryptedSummary": b""}), ENCRYPTED_OFFICE),
        (ole({"EncryptedPackage": b""}), ENCRYPTED_OFFICE),
    ),
)
def test_own_streams_decide_and_a_password_is_noticed(data: bytes, kind: str) -> None:
    assert detect(data, "a.doc") == kind


def test_file_whose_tables_are_cut_off_is_known_by_any_name() -> None:
    data = ole({"Workbook": BOOK})
    damaged = data[:76] + struct.pack("<I", 10**6) + data[80:]
    assert [detect(each) for each in (damaged, data[:600])] == [EXCEL, "application/x-ole-storage"]
