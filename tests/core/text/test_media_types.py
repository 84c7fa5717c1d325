"""A file's signature decides its media type, then a specific declared type, then its name; OLE files by streams."""

import struct
from itertools import product

import pytest

from svc_daemon.core.text.document_formats import FORMATS
from svc_daemon.core.text.media_types import ENCRYPTED_OFFICE, detect, find_format, from_filename, text_encoding
from tests import samples
from tests.extract.compounds import make_compound

DOCX, PPTX, XLSX = (
    f"application/vnd.openxmlformats-officedocument.{kind}"
    for kind in ("wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet")
)

#: An archive with a file name that is marked as UTF-8 but isn't.
_BROKEN_NAME = samples.make_zip({"quay-é.txt": b"x"}).replace("é".encode(), b"\xff\xfe")


TYPE_DETECTED_CASES = [
    # The content decides, whatever the name is.
    (samples.make_pdf(["x"]), "report.pdf", "", "application/pdf"),
    (samples.make_pdf(["x"]), "notes.txt", "text/plain", "application/pdf"),
    (b"\n" + samples.make_pdf(["x"]), "", "", "application/pdf"),
    (b"\x00\x01printer\r\n" + samples.make_pdf(["x"]), "", "", "application/pdf"),
    *((samples.make_docx({"a": "b"}), "", "", DOCX), (samples.make_docx({"a": "b"}), "a.pdf", "application/pdf", DOCX)),
    *((samples.make_corrupt_docx(), "", "", DOCX), (samples.make_pptx([("a", "b")]), "", "", PPTX)),
    (samples.make_xlsx({"a": [["b"]]}), "", "", XLSX),
    (samples.make_epub({"a": "b"}), "", "", "application/epub+zip"),
    (samples.make_zip({"a.txt": b"x"}), "a.docx", DOCX, "application/zip"),
    (_BROKEN_NAME, "a.docx", DOCX, "application/zip"),
    (samples.make_encrypted_docx(), "a.docx", DOCX, "application/x-ole-encrypted"),
    (b"{\\rtf1 x}", "a.txt", "", "application/rtf"),
    (samples.make_executable(), "readme.md", "text/markdown", "application/vnd.microsoft.portable-executable"),
    (b"\x89PNG\r\n\x1a\n\x00\x00", "a.txt", "", "image/png"),
    (bytes(range(256)), "data.csv", "text/csv", "application/octet-stream"),
    # HTML is recognized by its content, except inside other formats.
    (b"<!DOCTYPE html><p>x", "notes.txt", "", "text/html"),
    (b"<!-- made by hand -->\n<html><p>x", "", "text/plain", "text/html"),
    (b'<?xml version="1.0"?>\n<html xmlns="x">', "a.xhtml", "", "application/xhtml+xml"),
    (b"<!DOCTYPE html><?php echo 1 ?>", "page.php", "", "text/x-php"),
    # A specific declared type that the bytes don't contradict has priority over the name.
    *((b"# Title", "a.txt", "text/markdown", "text/markdown"), (b"a,b", "a.md", "text/csv", "text/csv")),
    *((b"x = 1", "a.py", "text/x-ruby", "text/x-ruby"), (b"words", "a.md", "application/x-own", "application/x-own")),
    (b"words", "a.md", "text/x-own; charset=utf-8", "text/x-own"),
    (b"\x00\x01\x02\x03", "data.bin", "application/x-own", "application/x-own"),
    (b"\x00\x01\x02\x03", "a.md", "application/x-own", "application/x-own"),
    (b"\x00\x01\x02\x03", "fake.pdf", "", "application/pdf"),
    # A generic type, one that the bytes contradict, and an invalid one are ignored.
    (b"# Title", "a.md", "application/octet-stream", "text/markdown"),
    *((b"# Title", "a.md", "text/plain", "text/markdown"), (b"words", "a.txt", "image/png", "text/plain")),
    *((b"words", "a.docx", "text/plain", "text/plain"), (b"words", "notes", "application/octet-stream", "text/plain")),
    (b"\x00\x01\x02\x03", "a.csv", "text/csv", "application/octet-stream"),
    *((b"words", "a.md", "text/x\r\nX-Evil: 1", "text/markdown"), (b"words", "a.md", "nonsense", "text/markdown")),
    # The name decides the type of text.
    *((b"# Title", "a.md", "", "text/markdown"), (b"# Title", "a.MD", "application/pdf", "text/markdown")),
    *((b"a,b", "a.csv", "application/octet-stream", "text/csv"), (b"x = 1", "a.py", "text/plain", "text/x-python")),
    *((b"all: build", "src/Makefile", "", "text/x-makefile"), (b'{"a": 1}', "a.json", "", "application/json")),
    *((b'{"a": 1}', "a.txt", "", "text/plain"), (b"plain words", "fake.pdf", "application/pdf", "text/plain")),
    # Without a known extension, the declared type decides, then the content.
    (b"# Title", "upload", "text/markdown; charset=utf-8", "text/markdown"),
    *((b"# Title", "upload", "text/x-markdown", "text/markdown"), (b'{"a": 1}', "upload", "", "application/json")),
    (b'[{"a": 1}]', "upload", "text/plain", "text/plain"),
    (b'[{"a": 1}]', "upload", "application/octet-stream", "application/json"),
    (b"[a link](https://a.example)", "upload", "", "text/plain"),
    (b"From: a@b.example\r\nSubject: x\r\n\r\ny", "upload", "", "message/rfc822"),
    *((b'<?xml version="1.0"?><a/>', "upload", "", "text/xml"), (b"words", "upload", "", "text/plain")),
    (b"words", "upload.unknown", "x/y", "x/y"),
]


@pytest.mark.rule("source.content-type")
@pytest.mark.parametrize(("data", "filename", "declared", "expected"), TYPE_DETECTED_CASES)
def test_a_media_type_is_detected(data: bytes, filename: str, declared: str, expected: str) -> None:
    assert detect(data, filename, declared) == expected


def test_a_detected_type_is_detected_again_if_declared() -> None:
    """The detected type is stored, and later declared to the extractor."""
    contents = [b"words", b"<!DOCTYPE html><p>x", b"\x00\x01\x02\x03", samples.make_pdf(["x"])]
    names = ["a", "a.md", "a.pdf", "a.html", "a.csv"]
    types = ["", "text/plain", "text/csv", "application/pdf", "x/y", "application/octet-stream"]
    for data, filename, declared in product(contents, names, types):
        found = detect(data, filename, declared)
        assert detect(data, filename, found) == found, (data[:40], filename, declared)


def test_an_office_file_is_detected_by_its_beginning() -> None:
    long = samples.make_docx({f"Heading {number}": samples.PROSE for number in range(50)})
    assert detect(long[:8192], "upload", "") == DOCX
    assert detect(samples.make_epub({"a": samples.PROSE})[:200], "", "") == "application/epub+zip"


@pytest.mark.parametrize(
    "data", (b"<!---->" * 500 + b"x", b"<!-- --> " * 400 + b"<htm", b"From: a\r\n" + b" x\r\n" * 500 + b"x")
)
def test_detection_takes_no_exponential_time(data: bytes) -> None:
    assert detect(data, "note") == "text/plain"


def test_an_encoding_is_detected_unless_the_bytes_are_binary() -> None:
    for text, encodings in {
        "ünïcode": ["utf-8", "utf-8-sig"],
        "plain text": ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-8"],
        "café": ["cp1252"],
        # The examined beginning of the file ends within a character.
        "x" * (64 * 1024 - 1) + "éx": ["utf-8"],
    }.items():
        for encoding in encodings:
            assert text_encoding(text.encode(encoding)) == encoding, (text[:40], encoding)
    assert text_encoding("æøå ünï ".encode() + b"\xff rest") == text_encoding(b"") == "utf-8"
    assert text_encoding(b"a\x00b") is text_encoding(bytes(range(1, 256))) is None


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        *(("a.pdf", "application/pdf"), ("notes.txt.gz", "application/gzip"), ("Notes.MD.GZ", "application/gzip")),
        *((".md", "text/markdown"), ("Dockerfile", "text/x-dockerfile")),
        *((name, None) for name in ("archive.tar.gz", "notes.gz", ".gz", "gz", "folder.md/file", "md")),
    ],
)
def test_a_file_name_implies_a_media_type(filename: str, expected: str | None) -> None:
    assert from_filename(filename) == expected


def test_each_extension_and_type_belongs_to_one_format() -> None:
    extensions = [extension for format_ in FORMATS for extension in format_.types]
    assert len(extensions) == len(set(extensions))
    for format_ in FORMATS:
        assert all(find_format(media_type) is format_ for media_type in format_.types.values())
    assert find_format("image/gif") is None


WORD, EXCEL, POWERPOINT = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"


def ole(streams: dict[str, bytes], embedded: str = "") -> bytes:
    """An OLE file with streams of 4096 bytes, and a folder with a stream of another file."""
    inner = {f"MBD0001/{embedded}": b""} if embedded else {}
    return make_compound({name: content.ljust(4096, b"\0") for name, content in streams.items()} | inner)


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
