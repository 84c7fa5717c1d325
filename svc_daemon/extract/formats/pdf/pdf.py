"""PDF: the text of each page, in PDFium's reading order."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from unicodedata import normalize

import pypdfium2
from pypdfium2 import raw

from svc_daemon.core.text.chunking import Document, RecognizedPage
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument, one_line, pages_named
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.pdf.annotations import Annotations, attached_files, descriptions, read_annotations
from svc_daemon.extract.formats.pdf.characters import mend
from svc_daemon.extract.formats.pdf.layout import (
    BROKEN,
    Segment,
    beside_labels,
    goes_up,
    in_columns,
    in_rows,
    is_interleaved,
    join,
    segments_of,
    values_of,
)
from svc_daemon.extract.formats.pdf.visibility import hidden_objects, may_have_layers, text_of

#: A word with PDFium's mark of a hyphen at a line break.
_BROKEN_WORD = re.compile(r"([\w-]{0,60})[\ufffe\x02]\s*(\w{0,60})")
_WORD = re.compile(r"(?<![\ufffe\x02\w-])\w+(?:-\w+)*(?![\ufffe\x02\w])")
#: Letters as fonts draw them: ligatures, and Arabic and Hebrew letters by their place in a word.
_FORMS = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]+")
_CASED = re.compile(r"[^\W\d_]")
#: First parts of words that keep their hyphen.
_FIRST_PARTS = frozenset(
    (
        *("self", "well", "cross", "high", "half", "two", "three", "four", "five"),
        *("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"),
    )
)
#: After these, what follows a hyphen is no part of its word.
_CONJUNCTIONS = frozenset(("and", "or", "und", "oder", "bzw", "sowie", "y", "o", "e"))
#: Text of so many objects of a page that nobody sees is kept.
_HIDDEN_OBJECTS = 2000
#: Titles that a program has filled in.
_JUNK_TITLE = re.compile(
    r"(?i)^(?:untitled\d*|untitled[ -]document|document\d*|microsoft (?:word|powerpoint|excel) - .*"
    r"|.*\.(?:docx?|pptx?|xlsx?|odt|rtf|tex|dvi|indd|qxd|pdf|ps|html?|txt|cdr|ai)"
    r"|(?:slide|folie|diapositiva|dia) \d+|powerpoint[ -]pr[eäé]sentation|(?:no )?title|\(anonymous\)|print|-)$"
)
#: The number of a clause whose text begins so close behind it that PDFium puts no space there.
_CLOSE_NUMBER = re.compile(r"^((?:\d{1,3}\.)+)(?=[^\W\d_]{2})", re.MULTILINE)
#: Pictures are looked for in groups of objects so deep.
_PICTURE_DEPTH = 5
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
        # Without this, fields of forms have no values. It must come before any page is opened.
        pdf.init_forms()
        has_layers = may_have_layers(given.data)
        flow = FlowDocument()
        pages: list[tuple[str, Annotations]] = []
        damaged: list[int] = []
        for number in range(1, len(pdf) + 1):
            flow.page = number
            try:
                pages.append(_read_page(flow, pdf, has_layers=has_layers))
            except pypdfium2.PdfiumError:
                damaged.append(number)
                pages.append(("", Annotations()))
        if damaged:
            flow.warn(f"{pages_named(damaged)} can't be read: damaged.")
        names = chain(attached_files(pdf), *(noted.attachments for _, noted in pages))
        for name in dict.fromkeys(names):
            flow.note_part("attachments")
            flow.warn(f"The attached file {one_line(name) or '(no name)'} was not read; upload it by itself.")
        title = pdf.get_metadata_value("Title")
        language = (raw.FPDF_WCHAR * 64)()
        size = raw.FPDFCatalog_GetLanguage(pdf, language, 64) if hasattr(raw, "FPDFCatalog_GetLanguage") else 0
        empty = _add_pages(flow, pages, given.recognized)
        return flow.finish(
            title=None if _JUNK_TITLE.search(title.strip()) else title,
            pages=len(pdf),
            pages_without_text=empty,
            pictured_pages=_with_pictures(pdf, empty) if given.limits.recognizer else (),
            language=bytes(language)[: max(0, size - 2)].decode("utf-16-le", "replace") or None,
        )


def _read_page(flow: FlowDocument, pdf: pypdfium2.PdfDocument, *, has_layers: bool) -> tuple[str, Annotations]:
    """Return the text that a page shows, in the order in which it is read, and what its annotations say."""
    noted = Annotations()
    number = (flow.page or 1) - 1
    # Pages need much memory, so only one is open.
    with closing(pdf[number]) as page:
        if hidden := hidden_objects(page, has_layers=has_layers):
            with closing(page.get_textpage()) as textpage:
                for each, reason in hidden[:_HIDDEN_OBJECTS]:
                    flow.hide(text_of(each, textpage), reason, page=flow.page)
            for each, _ in hidden:
                raw.FPDFPageObj_SetIsActive(each, False)
        if raw.FPDFPage_GetAnnotCount(page) > 0:
            noted = read_annotations(page, pdf.formenv)
        noted.descriptions = descriptions(page)
        with closing(page.get_textpage()) as textpage:
            text: str = textpage.get_text_range()
            has_columns = bool(noted.drawn) or is_interleaved(textpage)
            if not has_columns and (page.get_rotation() or not goes_up(textpage)):
                return mend(textpage, text).replace("\r\n", "\n"), noted
            printed = segments_of(textpage, text)
            text = mend(textpage, text)
        if noted.drawn:
            raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
    values: list[Segment] = []
    if noted.drawn:
        # The page has the text that annotations draw only after it is opened again.
        with closing(pdf[number]) as page, closing(page.get_textpage()) as textpage:
            values = values_of(noted.drawn, segments_of(textpage, textpage.get_text_range()), printed)
    ordered = in_columns(printed) if has_columns else in_rows(printed)
    if not values and ordered == printed:
        return text.replace("\r\n", "\n"), noted
    return join(beside_labels(ordered, values)), noted


def _with_pictures(pdf: pypdfium2.PdfDocument, numbers: Sequence[int]) -> Iterator[int]:
    """Yield those of the pages that have pictures."""
    for number in numbers:
        with suppress(pypdfium2.PdfiumError), closing(pdf[number - 1]) as page:
            if any(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=_PICTURE_DEPTH)):
                yield number


def _add_pages(
    flow: FlowDocument, pages: list[tuple[str, Annotations]], recognized: Mapping[int, RecognizedPage]
) -> list[int]:
    """Add the pages with their notes, and return the numbers of those without any text."""
    words = set[str]()
    if any(BROKEN in text or "\x02" in text for text, _ in pages):
        words.update(word for text, _ in pages for word in _WORD.findall(text))
    empty: list[int] = []
    for number, (text, noted) in enumerate(pages, 1):
        flow.page, before = number, flow.count
        if BROKEN in text or "\x02" in text:
            text = _BROKEN_WORD.sub(lambda broken: _mend(broken[1], broken[2], words), text)  # noqa: PLW2901
        if _FORMS.search(text):
            text = _FORMS.sub(lambda form: normalize("NFKC", form[0]), text)  # noqa: PLW2901
        if not flow.add_all("paragraph", _BLANK_LINE.split(_CLOSE_NUMBER.sub(r"\1 ", text))):
            flow.add_recognized(recognized.get(number))
        _add_notes(flow, noted, one_line(text))
        if flow.count == before:
            empty.append(number)
    return empty


def _add_notes(flow: FlowDocument, noted: Annotations, shown: str) -> None:
    """Add what a page says beside its text, which is shown."""
    for words in noted.descriptions:
        if words not in shown:
            flow.note_part("alt_texts")
            flow.add("paragraph", words)
    for author, note in noted.notes:
        flow.note_part("annotations")
        flow.add("paragraph", f"Note{f' by {author}' if author else ''}: {note}")
    if noted.fields:
        flow.note_part("form_fields", noted.fields)
    for each in noted.hidden:
        flow.hide(each, "hidden annotation", page=flow.page)


def _mend(first: str, second: str, words: set[str]) -> str:
    """Join a word that was broken at the end of a line, as the document has it elsewhere."""
    if not _CASED.search(first) or not second or f"{first}{second}" in words or f"{first}{second}".lower() in words:
        return f"{first}{second}"
    if second in _CONJUNCTIONS:
        # In `pre- and postwar`, the rest of the first word comes later.
        return f"{first}- {second}"
    is_compound = (
        len(first) == 1
        or "-" in first
        or not second[0].islower()
        or first.lower() in _FIRST_PARTS
        or f"{first}-{second}" in words
        # Both are words, and what they would be together is none.
        or (len(first) > 2 and len(second) > 3 and first in words and second in words)
    )
    return f"{first}-{second}" if is_compound else f"{first}{second}"
