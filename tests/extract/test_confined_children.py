"""Documents extracted in child processes give text with warnings, or fail with a reason."""

from typing import Any

import pytest

from svc_daemon.extract.builders import TITLE_CHARACTERS
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html import html
from svc_daemon.extract.formats.pdf import pdf
from svc_daemon.wire.error_codes import SourceErrorCode
from tests import samples
from tests.extract.conftest import Extract

pytestmark = pytest.mark.anyio


async def test_pdf_with_pages_without_text_is_read_with_a_warning_about_them(extract: Extract) -> None:
    for pages, numbers, named in (
        (["First.", "", "Third."], (2,), "Page 2 has"),
        (["One.", "", ""], (2, 3), "Pages 2-3 have"),
    ):
        extraction = await extract(samples.make_pdf(pages), "log.pdf")
        chunks = [(chunk.text, chunk.page) for chunk in extraction.chunks]
        assert chunks == [(text, number) for number, text in enumerate(pages, 1) if text]
        assert (extraction.pages, extraction.pages_without_text) == (3, numbers)
        warning = f"{named} no text and can't be found; scanned images need text recognition first."
        assert extraction.warnings == (warning,)


async def test_document_without_readable_text_fails_permanently_with_its_reason(extract: Extract) -> None:
    for data, filename, code, words in (
        (samples.make_pdf_without_text(2), "scan.pdf", SourceErrorCode.NO_EXTRACTABLE_TEXT, "None of the 2 pages"),
        (b" \n\t\n", "blank.txt", SourceErrorCode.NO_EXTRACTABLE_TEXT, "no text"),
        (b"--- *** ---", "marks.md", SourceErrorCode.NO_EXTRACTABLE_TEXT, "no text"),
        (samples.make_corrupt_pdf(), "a.pdf", SourceErrorCode.DOCUMENT_UNREADABLE, "damaged"),
        (b"[" * 100_000, "a.ipynb", SourceErrorCode.DOCUMENT_UNREADABLE, "nested too deeply"),
    ):
        with pytest.raises(ExtractionFailed, match=words) as failed:
            await extract(data, filename)
        assert (failed.value.code, failed.value.retryable) == (code, False), filename


async def test_overlong_title_is_shortened(extract: Extract) -> None:
    for data, filename in (
        (b"words without end\n" * 60_000 + b"===\n", "a.md"),
        (b"<title>" + b"words " * 200_000 + b"</title><p>A page.</p>", "a.html"),
    ):
        title = (await extract(data, filename)).title or ""
        assert "words" in title, filename
        assert len(title) <= TITLE_CHARACTERS, filename


async def test_content_determines_the_type_despite_the_name_and_the_declared_type(extract: Extract) -> None:
    extraction = await extract(samples.make_pdf(["Really a PDF."]), "notes.txt", "text/plain")
    assert (extraction.content_type, extraction.chunks[0].page) == ("application/pdf", 1)


async def test_deeply_nested_html_is_read(extract: Extract) -> None:
    page = b"<div>" * 3000 + b"<p>Deep words in the page.</p>"
    assert "Deep words" in (await extract(page, "deep.html")).text


@pytest.mark.parametrize(("module", "word"), ((html, "c d e."), (pdf, "a")))
async def test_samples_that_warm_up_the_parsers_can_be_read(module: Any, word: str) -> None:
    given = Given(data=module.SAMPLE, filename="", content_type="", limits=CageLimits())
    assert word in module.read(given).text
