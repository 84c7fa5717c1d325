"""Make real files of every format: valid, empty, damaged and malicious ones.

Each function returns the bytes of one file.
"""

import csv
import io
import json
import struct
import zipfile
from collections.abc import Iterable, Sequence
from email.message import EmailMessage

import docx
import pptx
import xlsxwriter  # type: ignore[import-untyped]
from fpdf import FPDF

#: A page of prose, long enough to count as an article and to be split into chunks.
PROSE = " ".join(f"Sentence number {number} is about the harbour and its keeper." for number in range(1, 41))


def make_pdf(pages: Sequence[str], *, title: str = "", password: str = "") -> bytes:
    """Return a PDF with one page for each text; a page with an empty text has only a drawing."""
    pdf = FPDF()
    if title:
        pdf.set_title(title)
    if password:
        pdf.set_encryption(owner_password=f"{password}-owner", user_password=password)
    pdf.set_font("helvetica", size=11)
    for text in pages:
        pdf.add_page()
        if text:
            pdf.multi_cell(0, 6, text)
        else:
            pdf.rect(40, 40, 90, 120, style="F")
    return bytes(pdf.output())


def make_pdf_without_text() -> bytes:
    """Return a PDF with two pages that have no text, like a scan."""
    return make_pdf(["", ""])


def make_encrypted_pdf() -> bytes:
    return make_pdf(["Secret words."], password="open sesame")


def make_corrupt_pdf() -> bytes:
    """Return the header of a PDF followed by invalid content."""
    return b"%PDF-1.7\n" + bytes(range(256)) * 40


def make_endless_pdf() -> bytes:
    """Return a PDF of 2 KB that takes very long to read, because each drawing shows the next one ten times."""
    form, last = "/Type /XObject /Subtype /Form /BBox [0 0 9 9]", 15
    drawings = [
        _pdf_stream(f"{form} /Resources << /XObject << /X {number + 1} 0 R >> >>", "/X Do\n" * 10)
        for number in range(4, last)
    ]
    page = f"/MediaBox [0 0 99 99] /Resources << /XObject << /X 4 0 R >> >> /Contents {last + 1} 0 R"
    return _pdf_file(page, *drawings, _pdf_stream(form, "BT (x) Tj ET"), _pdf_stream("", "/X Do"))


def _pdf_stream(entries: str, content: str) -> str:
    return f"<< {entries} /Length {len(content)} >>\nstream\n{content}\nendstream"


def _pdf_file(page: str, *objects: str) -> bytes:
    """Return a PDF with one page with these entries, objects numbered from 4, and the cross-reference table."""
    catalogue, pages = "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    body, table, size = b"%PDF-1.4\n", "", len(objects) + 4
    for number, content in enumerate((catalogue, pages, f"<< /Type /Page /Parent 2 0 R {page} >>", *objects), 1):
        table += f"{len(body):010} 00000 n \n"
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def make_docx(sections: dict[str, str], *, table: Sequence[Sequence[str]] = (), title: str = "") -> bytes:
    """Return a Word file with a heading and a paragraph for each section, and the table."""
    document = docx.Document()
    document.core_properties.title = title
    for heading, text in sections.items():
        document.add_heading(heading, level=1)
        document.add_paragraph(text)
    if table:
        grid = document.add_table(rows=0, cols=len(table[0]))
        for row in table:
            for cell, text in zip(grid.add_row().cells, row, strict=True):
                cell.text = text
    return _saved(document)


def make_docx_bomb(expanded_bytes: int = 201 * 1024**2) -> bytes:
    """Return a Word file whose body expands from a few hundred kilobytes to more than the limit of 200 MB."""
    return replaced(make_docx({"A": "b"}), "word/document.xml", b" " * expanded_bytes)


def make_encrypted_docx() -> bytes:
    """Return the container of a Word file with a password; only its directory is real."""
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(512, b"\0")
    return header + "EncryptionInfo".encode("utf-16-le").ljust(128, b"\0") + "EncryptedPackage".encode("utf-16-le")


def make_corrupt_docx() -> bytes:
    """Return the first half of a Word file."""
    whole = make_docx({"A": PROSE})
    return whole[: len(whole) // 2]


def make_pptx(slides: Sequence[tuple[str, str]]) -> bytes:
    """Return a presentation with a title and a text on each slide; if both are empty, the slide is empty."""
    deck = pptx.Presentation()
    for title, text in slides:
        if not title and not text:
            deck.slides.add_slide(deck.slide_layouts[6])
            continue
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    return _saved(deck)


def make_xlsx(sheets: dict[str, Sequence[Sequence[str | float]]]) -> bytes:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as workbook:
        for name, rows in sheets.items():
            sheet = workbook.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return buffer.getvalue()


def make_csv(rows: Iterable[Sequence[object]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode()


def make_html(body: str, *, title: str = "", language: str = "en") -> bytes:
    """Return an HTML page with a menu and a footer around the body."""
    return f"""<!DOCTYPE html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title><style>p {{ color: red }}</style></head>
<body><nav><a href="/">Home</a> <a href="/shop">Shop</a></nav><main><article>{body}</article></main>
<footer>All rights reserved</footer><script>let unseen = 1</script></body></html>""".encode()


def make_notebook(cells: Sequence[tuple[str, str, str]]) -> bytes:
    """Return a notebook of cells (type, source, printed text)."""
    made = []
    for kind, source, printed in cells:
        output = {"outputs": [{"output_type": "stream", "text": [printed]}]} if kind == "code" else {}
        made.append({"cell_type": kind, "source": source.splitlines(keepends=True), **output})
    return json.dumps({"nbformat": 4, "cells": made}).encode()


def make_mail(subject: str, text: str, attachment: str = "") -> bytes:
    message = EmailMessage()
    for name, value in (("Subject", subject), ("From", "keeper@harbour.example"), ("To", "pilot@harbour.example")):
        message[name] = value
    message.set_content(text)
    if attachment:
        message.add_attachment(b"bytes", maintype="application", subtype="octet-stream", filename=attachment)
    return message.as_bytes()


def make_epub(chapters: dict[str, str], *, title: str = "A book", language: str = "en") -> bytes:
    """Return an EPUB with a chapter for each heading and text."""
    names = [f"c{number}" for number in range(len(chapters))]
    items = "".join(f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book/package.opf"/></rootfiles></container>',
        "book/package.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>{title}</dc:title><dc:language>{language}</dc:language></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for name, (heading, text) in zip(names, chapters.items(), strict=True):
        page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>{heading}</h1><p>{text}</p></body></html>'
        members[f"book/{name}.xhtml"] = page
    return make_zip({name: text.encode() for name, text in members.items()})


def make_zip(members: dict[str, bytes]) -> bytes:
    """Return a ZIP archive whose first member is stored uncompressed, as EPUB requires."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(members.items()):
            archive.writestr(name, content, zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED)
    return buffer.getvalue()


def make_executable() -> bytes:
    """Return the beginning of a Windows program."""
    return b"MZ\x90\x00\x03\x00\x00\x00" + struct.pack("<64H", *range(64)) + b"This program cannot be run in DOS mode."


def _saved(document: "docx.document.Document | pptx.presentation.Presentation") -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def replaced(archive: bytes, name: str, content: bytes) -> bytes:
    """Return the archive with the content of one member replaced."""
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        return make_zip({member: source.read(member) for member in source.namelist()} | {name: content})


def member(archive: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        return source.read(name)
