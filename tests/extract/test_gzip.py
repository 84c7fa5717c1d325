"""A gzip-compressed text file is read like the text itself; other gzip files are refused."""

import random
from gzip import compress

import pytest

from svc_daemon.wire.error_codes import SourceErrorCode
from tests import samples
from tests.extract.readings import lines, read, refused

UNREADABLE, UNSUPPORTED = SourceErrorCode.DOCUMENT_UNREADABLE, SourceErrorCode.UNSUPPORTED_FORMAT
OVER_LIMIT = SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED


def test_gzip_expansion_is_limited() -> None:
    data = compress(random.Random(1).randbytes(3 * 1024**2).hex().encode())
    assert read(data, "a.txt.gz").text
    assert "more than 1 MB" in refused(data, "a.txt.gz", OVER_LIMIT, archive_bytes=1024**2)


@pytest.mark.parametrize(
    ("text", "filename"),
    (
        (b"One.\nStill one.\n\nTwo.\n", "notes.txt"),
        (b"# Lamp\n\nIt is painted turquoise.\n", "NOTES.MD"),
        (b"name,colour\nlamp,turquoise\n", "lamps.csv"),
        (b'{"lamp": "turquoise"}\n{"lamp": "umber"}\n', "lamps.jsonl"),
    ),
)
def test_compressed_text_is_read_like_the_text_itself(text: bytes, filename: str) -> None:
    plain = read(text, filename)
    for packed in (compress(text), compress(text[:9]) + compress(text[9:])):
        document = read(packed, f"{filename}.gz")
        assert (document, lines(document)) == (plain, lines(plain))


def test_gzip_of_other_content_or_damaged_gzip_is_refused_with_a_reason() -> None:
    words = compress(b"words")
    for data, filename, code, reason in (
        *((words, "a.gz", UNSUPPORTED, "notes.txt.gz"), (words, "a.tar.gz", UNSUPPORTED, "notes.txt.gz")),
        (compress(samples.make_pdf(["x"])), "a.txt.gz", UNSUPPORTED, "no text but application/pdf"),
        (compress(words), "a.txt.gz", UNSUPPORTED, "no text but application/gzip"),
        *((words[:-6], "a.md.gz", UNREADABLE, "expanded"), (words + b"more", "a.md.gz", UNREADABLE, "expanded")),
        (compress(bytes(30 * 1024**2)), "a.txt.gz", OVER_LIMIT, "200 times"),
    ):
        assert reason in refused(data, filename, code), (filename, reason)
