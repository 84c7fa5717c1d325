"""A compressed text is read as the text; whatever else is in a gzip file is not."""

import gzip
import random
from collections.abc import Callable

import pytest

from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.wire.codes import SourceErrorCode
from tests import samples
from tests.extract.readings import lines, read

UNREADABLE, UNSUPPORTED = SourceErrorCode.DOCUMENT_UNREADABLE, SourceErrorCode.UNSUPPORTED_FORMAT
OVER_LIMIT = SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED


def test_a_gzip_file_is_counted_while_it_is_expanded() -> None:
    data = gzip.compress(random.Random(1).randbytes(3 * 1024**2).hex().encode())
    assert read(data, "a.txt.gz").text
    with pytest.raises(ExtractionFailed, match="more than 1 MB") as failed:
        read(data, "a.txt.gz", archive_bytes=1024**2)
    assert failed.value.code == OVER_LIMIT


@pytest.mark.parametrize(
    ("text", "filename"),
    [
        (b"One.\nStill one.\n\nTwo.\n", "notes.txt"),
        (b"# Lamp\n\nIt is painted turquoise.\n", "NOTES.MD"),
        (b"name,colour\nlamp,turquoise\n", "lamps.csv"),
        (b'{"lamp": "turquoise"}\n{"lamp": "umber"}\n', "lamps.jsonl"),
    ],
)
def test_a_compressed_text_is_read_as_the_text_with_its_lines(text: bytes, filename: str) -> None:
    plain = read(text, filename)
    for packed in (gzip.compress(text), gzip.compress(text[:9]) + gzip.compress(text[9:])):
        document = read(packed, f"{filename}.gz")
        assert document == plain
        assert lines(document) == lines(plain)


@pytest.mark.parametrize(
    ("make", "filename", "code", "words"),
    [
        (lambda: gzip.compress(b"words"), "a.gz", UNSUPPORTED, "notes.txt.gz"),
        (lambda: gzip.compress(b"words"), "a.tar.gz", UNSUPPORTED, "notes.txt.gz"),
        (lambda: gzip.compress(samples.make_pdf(["x"])), "a.txt.gz", UNSUPPORTED, "no text but application/pdf"),
        (lambda: gzip.compress(gzip.compress(b"words")), "a.txt.gz", UNSUPPORTED, "no text but application/gzip"),
        (lambda: gzip.compress(b"words")[:-6], "a.md.gz", UNREADABLE, "expanded"),
        (lambda: gzip.compress(b"words") + b"more", "a.md.gz", UNREADABLE, "expanded"),
        (lambda: gzip.compress(bytes(30 * 1024**2)), "a.txt.gz", OVER_LIMIT, "200 times"),
    ],
)
def test_what_is_no_compressed_text_says_why(
    make: Callable[[], bytes], filename: str, code: SourceErrorCode, words: str
) -> None:
    with pytest.raises(ExtractionFailed, match=words) as failed:
        read(make(), filename)
    assert (failed.value.code, failed.value.retryable) == (code, False)
