"""PDF: the text of each page, in the order in which PDFium reads it."""

import re
from collections.abc import Iterator

import pypdfium2
from pypdfium2 import raw

from svc_daemon.core.documents import Document
from svc_daemon.extract import failures
from svc_daemon.extract.builders import FlowDocument, pages_named
from svc_daemon.extract.formats import Given

#: PDFium's mark for a hyphen that only a line's end brought; the word goes on in the next line.
_BROKEN_WORD = re.compile("[\ufffe\x02]\\s*")
_BLANK_LINE = re.compile(r"\n\s*\n")


def read(given: Given) -> Document:
    """Pages from 1; raises ExtractionFailed for a file that can't be opened."""
    with _open(given.data) as pdf:
        flow = FlowDocument()
        empty: list[int] = []
        damaged: list[int] = []
        for number, text in enumerate(_page_texts(pdf), 1):
            flow.page = number
            if text is None:
                damaged.append(number)
            if not _add_page(flow, text or ""):
                empty.append(number)
        title = pdf.get_metadata_value("Title")
        warnings = [f"{pages_named(damaged)} can't be read: damaged."] if damaged else []
        return flow.finish(
            title=title, pages=len(pdf), pages_without_text=empty, language=_language(pdf), warnings=warnings
        )


def _open(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
            raise failures.encrypted() from error
        raise failures.unreadable("The PDF is damaged: it can't be opened.") from error


def _page_texts(pdf: pypdfium2.PdfDocument) -> Iterator[str | None]:
    """Text of each page; None for a page that can't be read."""
    for number in range(len(pdf)):
        try:
            page = pdf[number]
            text = page.get_textpage()
        except pypdfium2.PdfiumError:
            yield None
            continue
        yield text.get_text_range()
        # Pages are large; a document of a thousand must not keep them all.
        text.close()
        page.close()


def _add_page(flow: FlowDocument, text: str) -> bool:
    text = _BROKEN_WORD.sub("", text.replace("\r\n", "\n"))
    return flow.add_all("paragraph", _BLANK_LINE.split(text))


def _language(pdf: pypdfium2.PdfDocument) -> str | None:
    buffer = (raw.FPDF_WCHAR * 64)()
    size = raw.FPDFCatalog_GetLanguage(pdf, buffer, 64) if hasattr(raw, "FPDFCatalog_GetLanguage") else 0
    return bytes(buffer)[: max(0, size - 2)].decode("utf-16-le", "replace") or None
