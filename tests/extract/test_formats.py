"""Each format is read in document order with title, headings, pages and lines; others are refused with a reason."""

import io
import re

import docx
import pytest

from svc_daemon.core.text.document_formats import FORMATS
from svc_daemon.extract.formats import READERS, find_reader
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.compounds import make_compound, make_doc, make_ppt
from tests.extract.opendocuments import TYPE, cell, make_open_document, table, text_box
from tests.extract.readings import lines, read, refused, shape

UNREADABLE, ENCRYPTED = SourceErrorCode.DOCUMENT_UNREADABLE, SourceErrorCode.DOCUMENT_ENCRYPTED
UNSUPPORTED, OVER_LIMIT = SourceErrorCode.UNSUPPORTED_FORMAT, SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED


def test_every_format_has_a_reader() -> None:
    assert set(READERS) == {format_.key for format_ in FORMATS}
    for format_ in FORMATS:
        for media_type in format_.types.values():
            assert callable(find_reader(media_type))


@pytest.mark.parametrize(
    ("data", "name", "blocks", "places"),
    (
        (b"One.\r\nStill one.\r\n\r\nTwo.\r\n", "a.txt", ["One.\nStill one.", "Two."], [(1, 2), (4, 4)]),
        (b"import os\n\n\ndef f():\n    return 1\n", "a.py", ["import os", "def f():\n    return 1"], [(1, 1), (4, 5)]),
        (b'{"a": 1}\n{"a": 2}\n', "a.jsonl", ['{"a": 1}\n{"a": 2}'], [(1, 2)]),
    ),
)
def test_text_file_is_read_as_blocks_with_their_lines(
    data: bytes, name: str, blocks: list[str], places: list[tuple[int, int]]
) -> None:
    document = read(data, name)
    kind = {"a.txt": "paragraph", "a.py": "code", "a.jsonl": "row"}[name]
    assert shape(document) == [(kind, text, ()) for text in blocks]
    assert lines(document) == places


MARKDOWN = """---
title: "The guide"
tags: [a]
---
Intro *text*
goes on.

# First `part` #

- item one
  continued
- item two

| a | b |
|---|---|
| 1 | 2 |

```python
# not a heading

code()
```

Second [part](https://a.example)
---
1. numbered
###### Deep
text
#hashtag
"""


def test_markdown_is_read_with_headings_items_tables_code_and_lines() -> None:
    document = read(MARKDOWN.encode(), "a.md")
    first, second, deep = ("First part",), ("First part", "Second part"), ("First part", "Second part", "Deep")
    assert [(block.kind, block.headings, block.line_start, block.line_end) for block in document.blocks] == [
        *(("code", (), 1, 4), ("paragraph", (), 5, 6), ("heading", first, 8, 8), ("item", first, 10, 11)),
        *(("item", first, 12, 12), ("row", first, 14, 15), ("row", first, 16, 16), ("code", first, 18, 22)),
        *(
            ("heading", second, 24, 25),
            ("item", second, 26, 26),
            ("heading", deep, 27, 27),
            ("paragraph", deep, 28, 29),
        ),
    ]
    assert document.title == "The guide"
    assert document.text == MARKDOWN


def _tables_of(name: str) -> bytes:
    """Return a file with two tables, one right after the other or a blank line."""
    tables = [["Room", "Fee"], ["Blue", "80"], ["Red", "90"]], [["Dog", "Tax"], ["Pug", "5"], ["Boxer", "12"]]
    if name.endswith(".html"):
        rows = ("".join(f"<tr><td>{one}<td>{two}" for one, two in table) for table in tables)
        return "".join(f"<table>{each}</table>" for each in rows).encode()
    if name.endswith(".rtf"):
        rows = ("".join(rf"\trowd\intbl {one}\cell {two}\cell\row" for one, two in each) for each in tables)
        return b"{\\rtf1 " + r"\pard\par ".join(rows).encode() + b"}"
    if name.endswith(".odt"):
        return make_open_document("text", "".join(table(*("".join(map(cell, row)) for row in each)) for each in tables))
    if name.endswith(".md"):
        return "\n\n".join("\n".join(["|".join(each[0]), "-|-", *map("|".join, each[1:])]) for each in tables).encode()
    document = docx.Document()
    for each in tables:
        grid = document.add_table(rows=0, cols=2)
        for row in each:
            for place, text in zip(grid.add_row().cells, row, strict=True):
                place.text = text
        document.add_paragraph()
    saved = io.BytesIO()
    document.save(saved)
    return saved.getvalue()


@pytest.mark.parametrize("name", ["a.docx", "a.html", "a.rtf", "a.odt", "a.md"])
def test_tables_that_follow_each_other_stay_apart_with_names_of_their_own(name: str) -> None:
    document = read(_tables_of(name), name)
    first, second = document.text.replace(" | ", "|").split("\n\n")
    assert (first[-6:], second[:7]) == ("Red|90", "Dog|Tax")
    rows = [(block.text.replace(" | ", "|"), block.columns) for block in document.blocks if block.columns]
    assert "\n".join(text for text, _ in rows) == "Blue|80\nRed|90\nPug|5\nBoxer|12"
    assert list(dict.fromkeys(columns for _, columns in rows)) == ["Room, Fee", "Dog, Tax"]


def test_docx_is_read_in_order_with_headings_and_tables() -> None:
    data = samples.make_docx({"One": "Text one.", "Two": "Text two."}, table=[["a", "b"], ["c", "d"]], title="Doc")
    document = read(data, "a.docx")
    one = [("heading", "One"), ("paragraph", "Text one.")]
    two = [("heading", "Two"), ("paragraph", "Text two."), ("row", "a | b"), ("row", "c | d")]
    assert shape(document) == [(*each, ("One",)) for each in one] + [(*each, ("Two",)) for each in two]
    assert document.title == "Doc"


def test_xlsx_sheets_are_pages_and_columns_are_headings() -> None:
    ships: list[list[str | float]] = [["name", "draught"], ["Anna", 2.5], ["Bob", 3.0]]
    document = read(samples.make_xlsx({"Ships": ships, "Empty": [], "More": [[1, 2]]}), "a.xlsx")
    columns = ("Ships", "name, draught")
    assert [(block.text, block.page, block.headings) for block in document.blocks] == [
        *(("Ships", 1, ("Ships",)), ("name, draught", 1, columns), ("Anna | 2.5", 1, columns), ("Bob | 3", 1, columns)),
        *(("More", 3, ("More",)), ("1 | 2", 3, ("More",))),
    ]


@pytest.mark.parametrize("table", (b"1,2\n3,4\n", b"only\none\n", b'"a,b\nc",d\n', b"a,,c\n1,2,3\n"))
def test_csv_first_row_without_column_names_is_a_row(table: bytes) -> None:
    blocks = read(table, "a.csv").blocks
    assert [(block.kind, block.headings) for block in blocks] == [("row", ())]


@pytest.mark.parametrize(
    ("data", "text"),
    (
        ('{\n "caf\\u00e9": "na\\u00efve \\ud83d\\ude00",\n "a": "\\n"\n}', '{\n "café": "naïve 😀",\n "a": " "\n}'),
        ('{"path": "C:\\\\temp\\nnext"}', '{"path": "C:\\temp next"}'),
        ("// kept\n{a: 'it\\'s'}", "// kept\n{a: 'it's'}"),
        ('{"a": "\\\\u00e9 \\u00e9 \\b\\f"}', '{"a": "\\u00e9 é   "}'),
        ('{"a": "\\ud83d\\ude00 \\ud83d"}', '{"a": "😀  "}'),
    ),
)
def test_escapes_of_json_and_json5_are_decoded_and_lines_are_kept(data: str, text: str) -> None:
    document = read(data.encode(), "a.json")
    assert document.text == text
    assert lines(document) == [(1, 1 + data.count("\n"))]


@pytest.mark.parametrize(
    ("name", "text"),
    (
        ("a.md", "```\nnever closed\n# code"),
        ("a.md", "~~~\ncode\n```\nstill"),
        ("a.md", "---\nno end\n# A"),
        ("a.md", "#\n\n##"),
        ("a.md", "===\n"),
        ("a.md", "-\n-\n"),
        ("a.csv", 'name,note\nAda,"never closed\nBo,x\n' + "Cy,y\n" * 3000),
        ("a.csv", 'a,b\n5" pipe,x\n'),
        ("a.csv", 'a,b\n"x" y,z\n'),
        ("a.csv", "a,b\n" + '"' * 999),
    ),
)
def test_odd_markup_and_quotes_lose_no_text(name: str, text: str) -> None:
    covered = "".join(block.text for block in read(text.encode(), name).blocks)
    assert [*filter(str.isalnum, covered)] == [*filter(str.isalnum, text)]


def locked(content: bytes) -> bytes:
    """The archive with the flag of a password on each member in its list."""
    return re.sub(rb"(?s)(PK\x01\x02.{4}).", lambda found: found[1] + b"\1", content)


_WORD = samples.make_docx({"One": "Text."})
_DOC, _SLIDES = make_doc("x\r"), [("x", list[str](), "")]
_TEXT = {"mimetype": f"{TYPE}.text".encode()}
_LOCKED_TEXT = {**_TEXT, "content.xml": b"\x8f\x00", "META-INF/manifest.xml": b"<m:encryption-data/>"}


@pytest.mark.parametrize(
    ("data", "filename", "code", "reason"),
    (
        (samples.make_corrupt_pdf(), "a.pdf", UNREADABLE, "PDF is damaged"),
        (samples.make_encrypted_pdf(), "a.pdf", ENCRYPTED, "password"),
        (samples.make_corrupt_docx(), "a.docx", UNREADABLE, "damaged"),
        (samples.make_encrypted_docx(), "a.docx", ENCRYPTED, "password"),
        (locked(_WORD), "a.docx", ENCRYPTED, "password"),
        (samples.make_executable(), "a.md", UNSUPPORTED, "portable-executable"),
        (samples.make_zip({"a": b"x"}), "a.zip", UNSUPPORTED, "application/zip"),
        (samples.make_zip({"word/document.xml": b"<x"}), "a.docx", UNREADABLE, "damaged"),
        (samples.make_zip({"ppt/presentation.xml": b"<x"}), "a.pptx", UNREADABLE, "damaged"),
        (samples.make_zip({"xl/workbook.xml": b"<x"}), "a.xlsx", UNREADABLE, "damaged"),
        (samples.make_zip({"META-INF/container.xml": b"<x"}), "a.epub", UNREADABLE, "damaged"),
        (samples.make_zip(_TEXT), "a.odt", UNREADABLE, "damaged"),
        (samples.make_zip(_LOCKED_TEXT), "a.odt", ENCRYPTED, "password"),
        (make_doc("x\r", flags=0x100), "a.doc", ENCRYPTED, "password"),
        (make_ppt(_SLIDES, token=0xF3D1C4DF), "a.ppt", ENCRYPTED, "password"),
        (make_compound({"WordDocument": b"\xdb\xa5"}), "a.doc", UNREADABLE, ""),
        (make_compound({"PowerPoint Document": b""}), "a.ppt", UNREADABLE, ""),
        (_DOC.replace(b"\xfe\xff\x09\x00", b"\xfe\xff\x00\x00", 1), "a.doc", UNREADABLE, ""),
        (b'{"cells": 1}', "a.ipynb", UNREADABLE, "notebook"),
    ),
)
def test_unreadable_file_is_refused_with_a_reason(
    data: bytes, filename: str, code: SourceErrorCode, reason: str
) -> None:
    assert reason in refused(data, filename, code)


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    (
        ("archive_entries", 5, "more than 5 members"),
        ("archive_bytes", 1024, "more than 0 MB"),
        ("archive_ratio", 3, "more than 3 times"),
    ),
)
def test_archive_over_a_limit_is_refused(limit: str, most: int, reason: str) -> None:
    data = samples.make_docx_bomb(expanded_bytes=2 * 1024**2)
    assert reason in refused(data, "a.docx", OVER_LIMIT, **{limit: most})


def test_archive_that_expands_to_more_than_200_mb_is_refused() -> None:
    assert "200 MB" in refused(samples.make_docx_bomb(), "a.docx", OVER_LIMIT)


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
