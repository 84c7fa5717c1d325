"""PDF: the text of each page, in PDFium's reading order."""

import re
from contextlib import closing

import pypdfium2
from pypdfium2 import raw

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument, pages_named
from svc_daemon.extract.formats import Given

#: What PDFium returns for a hyphen within a word at a line break.
_BROKEN_WORD = re.compile("[\ufffe\x02]\\s*")
_BLANK_LINE = re.compile(r"\n\s*\n")
#: The fork server reads this PDF to set up PDFium for all children.
SAMPLE = b"""%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources <</Font <</F 5 0 R>>>>>> endobj
4 0 obj <</Length 27>> stream
BT /F 9 Tf 9 9 Td (a) Tj ET
endstream endobj
5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj
trailer <</Root 1 0 R>>
%%EOF
"""


def read(given: Given) -> Document:
    """Read a PDF, with pages from 1. Raises ExtractionFailed if it can't be opened."""
    try:
        pdf = pypdfium2.PdfDocument(given.data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
            raise documents.encrypted() from error
        raise documents.unreadable("The PDF is damaged: it can't be opened.") from error
    with pdf:
        flow = FlowDocument()
        empty: list[int] = []
        damaged: list[int] = []
        for number in range(1, len(pdf) + 1):
            flow.page = number
            try:
                # Pages need much memory, so only one is open.
                with closing(pdf[number - 1]) as page, closing(page.get_textpage()) as text:
                    joined = _BROKEN_WORD.sub("", text.get_text_range().replace("\r\n", "\n"))
            except pypdfium2.PdfiumError:
                damaged.append(number)
                empty.append(number)
                continue
            if not flow.add_all("paragraph", _BLANK_LINE.split(joined)):
                empty.append(number)
        language = (raw.FPDF_WCHAR * 64)()
        size = raw.FPDFCatalog_GetLanguage(pdf, language, 64) if hasattr(raw, "FPDFCatalog_GetLanguage") else 0
        return flow.finish(
            title=pdf.get_metadata_value("Title"),
            pages=len(pdf),
            pages_without_text=empty,
            language=bytes(language)[: max(0, size - 2)].decode("utf-16-le", "replace") or None,
            warnings=[f"{pages_named(damaged)} can't be read: damaged."] if damaged else [],
        )
