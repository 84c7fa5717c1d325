"""Documents extracted in child processes give text with warnings, or fail with a reason; their replies are checked."""

import asyncio
import os
from typing import Any

import pytest

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import TITLE_CHARACTERS
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed, no_text
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html import html
from svc_daemon.extract.formats.pdf import pdf
from svc_daemon.extract.jobs import Job
from svc_daemon.extract.messages import LINE_BYTES, ChildOutcome, failure_line, own_child_line, reply_lines
from svc_daemon.wire.light.error_codes import SourceErrorCode
from svc_daemon.wire.light.errors import MAX_ERROR_CHARACTERS
from tests import samples
from tests.extract.conftest import Extract
from tests.extract.test_epub import book, item, page, spine

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
        (samples.make_pdf_without_text(), "scan.pdf", SourceErrorCode.NO_EXTRACTABLE_TEXT, "None of the 2 pages"),
        (b" \n\t\n", "blank.txt", SourceErrorCode.NO_EXTRACTABLE_TEXT, "no text"),
        (b"--- *** ---", "marks.md", SourceErrorCode.NO_EXTRACTABLE_TEXT, "no text"),
        (b"<frameset><frame src=a>", "a.html", SourceErrorCode.NO_EXTRACTABLE_TEXT, "no text. It shows frames"),
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


async def test_names_in_a_document_add_no_line_to_a_warning(extract: Extract) -> None:
    hrefs = ("a.xhtml", "b%0aWarning: forged%E2%80%A8.xhtml", f"c{'c' * 5000}.xhtml")
    items = "".join(item(f"i{number}", href) for number, href in enumerate(hrefs))
    data = book(items, spine("i0", "i1", "i2"), {"OEBPS/a.xhtml": page("It rose.")})
    forged, long = (await extract(data, "a.epub")).warnings
    assert forged == "The chapter OEBPS/b Warning: forged .xhtml is missing or damaged and was not read."
    assert len(long) <= MAX_ERROR_CHARACTERS


async def test_content_determines_the_type_despite_the_name_and_the_declared_type(extract: Extract) -> None:
    extraction = await extract(samples.make_pdf(["Really a PDF."]), "notes.txt", "text/plain")
    assert (extraction.content_type, extraction.chunks[0].page) == ("application/pdf", 1)


@pytest.mark.parametrize(("module", "word"), ((html, "c d e."), (pdf, "a")))
async def test_samples_that_warm_up_the_parsers_can_be_read(module: Any, word: str) -> None:
    given = Given(data=module.SAMPLE, filename="", content_type="", limits=CageLimits())
    assert word in module.read(given).text


GOOD = b"".join(reply_lines("text/plain", Document(text="a", blocks=()), ()))


async def results_of(written: bytes, outcome: ChildOutcome, count: int) -> list[str]:
    """Return the results of a job whose child wrote these bytes, by name, and assert that the child was killed."""
    readable, writable = os.pipe()
    ended = asyncio.get_running_loop().create_future()
    ended.set_result(outcome)
    kills: list[str] = []
    job = Job(readable, ended, CageLimits(), lambda: kills.append("killed"))

    def write() -> None:
        try:
            with os.fdopen(writable, "wb") as pipe:
                pipe.write(written)
        except BrokenPipeError:
            pass

    _, results = await asyncio.gather(asyncio.to_thread(write), job.results(count))
    assert kills == ["killed"]
    return [str(getattr(result, "code", type(result).__name__)) for result in results]


async def test_damaged_reply_fails_one_document_and_ends_the_wave() -> None:
    done: ChildOutcome = {"exit": 0, "killed": "", "at": 2}
    failed = failure_line(no_text())
    endless = b"x" * (LINE_BYTES + 10**6)
    for damage in (b"words\n", b"[]\n", b"{}\n", b'{"head": 3}\n', b'{"chunks": [[1]]}\n', endless):
        found = await results_of(GOOD + failed + damage + GOOD, done, 4)
        assert found == ["Extraction", "no_extractable_text", "extraction_crashed", "NotRead"], damage[:20]
    assert await results_of(GOOD + own_child_line() + GOOD, done, 3) == ["Extraction", "NeedsOwnChild", "Extraction"]


async def test_outcome_of_a_child_fails_only_the_document_that_it_had_begun() -> None:
    cases: list[tuple[ChildOutcome, list[str]]] = [
        ({"exit": -9, "killed": "", "at": 1}, ["extraction_crashed", "NotRead"]),
        ({"exit": -9, "killed": "", "at": 0}, ["NotRead", "NotRead"]),
        ({"exit": -9, "killed": "wall", "at": 1}, ["extraction_limit_exceeded", "NotRead"]),
        # The child was killed just after it had begun the next document.
        ({"exit": -9, "killed": "wall", "at": -1}, ["NotRead", "NotRead"]),
        ({"exit": -24, "killed": "", "at": 0}, ["NotRead", "NotRead"]),
        ({"exit": 0, "killed": "", "at": 1}, ["extraction_crashed", "NotRead"]),
        ({"exit": None, "killed": "", "at": 0}, ["extraction_crashed", "NotRead"]),
        ({"exit": 128, "killed": "", "at": 1}, ["OSError", "OSError"]),
    ]
    for outcome, expected in cases:
        # The reply for the second document is incomplete.
        assert await results_of(GOOD + GOOD[:20], outcome, 3) == ["Extraction", *expected], outcome
