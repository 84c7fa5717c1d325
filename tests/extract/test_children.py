"""What a document comes to in the end: text with its warnings, or a failure with its reason."""

import pytest

from svc_daemon.extract.builders import TITLE_CHARACTERS
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.wire.codes import SourceErrorCode
from tests import samples
from tests.extract.conftest import Extract

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("pages", "numbers", "named"),
    [(["First.", "", "Third."], (2,), "Page 2 has"), (["One.", "", ""], (2, 3), "Pages 2-3 have")],
)
async def test_a_pdf_with_empty_pages_is_read_and_they_are_named(
    extract: Extract, pages: list[str], numbers: tuple[int, ...], named: str
) -> None:
    extraction = await extract(samples.make_pdf(pages), "log.pdf")
    assert [(chunk.text, chunk.page) for chunk in extraction.chunks] == [
        (text, number) for number, text in enumerate(pages, 1) if text
    ]
    assert (extraction.pages, extraction.pages_without_text) == (3, numbers)
    assert extraction.warnings == (f"{named} no text and can't be found; scanned images need text recognition first.",)


@pytest.mark.parametrize(
    ("data", "filename", "code", "words"),
    [
        (samples.make_pdf_without_text(2), "scan.pdf", SourceErrorCode.NO_EXTRACTABLE_TEXT, "None of the 2 pages"),
        (b" \n\t\n", "blank.txt", SourceErrorCode.NO_EXTRACTABLE_TEXT, "no text"),
        (b"--- *** ---", "marks.md", SourceErrorCode.NO_EXTRACTABLE_TEXT, "no text"),
        (samples.make_corrupt_pdf(), "a.pdf", SourceErrorCode.DOCUMENT_UNREADABLE, "damaged"),
    ],
)
async def test_what_gives_no_text_fails_for_good_with_its_reason(
    extract: Extract, data: bytes, filename: str, code: SourceErrorCode, words: str
) -> None:
    with pytest.raises(ExtractionFailed, match=words) as failed:
        await extract(data, filename)
    assert (failed.value.code, failed.value.retryable) == (code, False)


@pytest.mark.parametrize(
    ("data", "filename"),
    [
        (b"words without end\n" * 400_000 + b"===\n", "a.md"),
        (b"<title>" + b"words " * 1_000_000 + b"</title><p>A page.</p>", "a.html"),
    ],
)
async def test_a_title_without_end_fails_no_document(extract: Extract, data: bytes, filename: str) -> None:
    extraction = await extract(data, filename)
    assert "words" in (extraction.title or "")
    assert len(extraction.title or "") <= TITLE_CHARACTERS


async def test_the_content_decides_over_the_name_and_the_declared_type(extract: Extract) -> None:
    extraction = await extract(samples.make_pdf(["Really a PDF."]), "notes.txt", "text/plain")
    assert extraction.content_type == "application/pdf"
    assert extraction.chunks[0].page == 1


async def test_a_notebook_nested_without_end_is_unreadable(extract: Extract) -> None:
    with pytest.raises(ExtractionFailed, match="nested too deeply") as failed:
        await extract(b"[" * 100_000, "a.ipynb")
    assert failed.value.code == SourceErrorCode.DOCUMENT_UNREADABLE


async def test_html_nested_too_deeply_for_its_parser_harms_nothing(extract: Extract) -> None:
    page = b"<div>" * 3000 + b"<p>Deep words in the page.</p>"
    extraction = await extract(page, "deep.html")
    assert "Deep words" in extraction.text
