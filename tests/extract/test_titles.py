"""A document without a title of its own has the title of its first heading, in every format that has headings."""

import pytest

from tests import samples
from tests.extract.compounds import make_ppt
from tests.extract.opendocuments import cell, make_open_document, table, text_box
from tests.extract.readings import read

CHAPTER = b"<html><body><h2>Harbours</h2><p>Text.</p></body></html>"
TITLE = 'presentation:class="title"'
SLIDE = f"<draw:page>{text_box('Harbours', TITLE)}</draw:page>"


@pytest.mark.parametrize(
    ("data", "filename"),
    [
        (samples.make_docx({"Harbours": "Text."}), "a.docx"),
        (samples.make_pptx([("Harbours", "Text.")]), "a.pptx"),
        (rb"{\rtf1{\stylesheet{\s1 heading 1;}}\pard\s1 Harbours\par\pard Text.\par}", "a.rtf"),
        (make_ppt([("Harbours", ["Text."], "")]), "a.ppt"),
        (make_open_document("text", "<text:h>Harbours</text:h><text:p>Text.</text:p>"), "a.odt"),
        (make_open_document("presentation", SLIDE), "a.odp"),
        (CHAPTER, "a.html"),
        (CHAPTER.replace(b"<body>", b"<head><title> </title></head><body>"), "a.html"),
        (samples.make_epub({"Harbours": "Text."}, title=""), "a.epub"),
        (b"Text.\n\n## Harbours\n\nText.\n", "a.md"),
        (b"Text.\n\nHarbours\n========\n\nText.\n", "a.rst"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_title_is_the_first_heading_if_there_is_no_other(data: bytes, filename: str) -> None:
    assert read(data, filename).title == "Harbours"


@pytest.mark.parametrize(("filename", "heading"), [("a.rst", ""), ("a.rst", "\nHere\n====\n\nText.\n"), ("a.txt", "")])
@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("PEP: 9\nTitle: Harbours and\n  Quays\nAuthor: A", "Harbours and Quays"),
        (":Title: Harbours\n:Author: A", "Harbours"),
        ("Title: of one line alone", None),
        ("Text.\nTitle: Harbours", None),
    ],
)
def test_title_may_be_in_a_header_of_fields(filename: str, heading: str, header: str, title: str | None) -> None:
    assert read(f"{header}\n\nText.\n{heading}".encode(), filename).title == (title or ("Here" if heading else None))


def test_names_of_sheets_and_columns_are_no_title() -> None:
    sheet = make_open_document("spreadsheet", table(f"<table:table-row>{cell('One')}</table:table-row>"))
    files = ((samples.make_xlsx({"Sheet1": [["One"]]}), "a.xlsx"), (sheet, "a.ods"), (b"name,place\na,b\n", "a.csv"))
    assert [read(data, filename).title for data, filename in files] == [None, None, None]
