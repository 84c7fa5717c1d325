"""Files of old office programs and of Outlook are read as these programs show them."""

import struct

import pytest

from tests.extract.compounds import make_doc, make_msg, make_ppt
from tests.extract.readings import read, shape

#: Properties of paragraphs: in a table, the end of a row, a heading.
CELL, ROW_END = struct.pack("<HHB", 0, 0x2416, 1), struct.pack("<HHBHB", 0, 0x2416, 1, 0x2417, 1)
HEADING = struct.pack("<H", 2)


def test_doc_is_read_with_headings_tables_notes_comments_and_headers() -> None:
    text = "Report\rNames\x0bbelow\x1eit\rRegion\x07City\x07\x07North\x07first\rsecond\x07\x07End.\x02\x05\r"
    kinds = (HEADING, b"", CELL, CELL, ROW_END, CELL, CELL, CELL, ROW_END, b"")
    ends = (at for at, letter in enumerate(text, 1) if letter in "\r\x07")
    styles = {end: kind for end, kind in zip(ends, kinds, strict=True) if kind}
    parts = (text, "\x02 See paca.\r", "Zebra GmbH\r1\r", "", "\x05Make it three.\r", "\x02 At the end.\r", "Boxed\r")
    document = read(make_doc(*parts, styles=styles), "a.doc")
    assert shape(document)[:2] == [("heading", "Report", ("Report",)), ("paragraph", "Names\nbelow-it", ("Report",))]
    assert [text for _, text, _ in shape(document)[2:]] == [
        *("Region | City", "North | first second", "End.", "Note: See paca.", "Zebra GmbH", "Comment: Make it three."),
        *("Note: At the end.", "Boxed"),
    ]
    assert document.parts == {"notes": 2, "headers": 1, "comments": 1}


@pytest.mark.parametrize(
    ("data", "filename", "stream"),
    (
        (make_doc("The text.\r"), "a.doc", "WordDocument"),
        (make_ppt([("The text.", [], "")]), "a.ppt", "PowerPoint Document"),
        (make_ppt([("The text.", [], "")]), "a.ppt", "Current User"),
    ),
)
def test_names_of_streams_may_have_other_capitals(data: bytes, filename: str, stream: str) -> None:
    for name in (stream.upper(), stream.lower()):
        renamed = data.replace(stream.encode("utf-16-le"), name.encode("utf-16-le"))
        assert renamed != data
        assert read(renamed, filename).text == "The text."


def test_doc_keeps_hidden_text_apart_and_has_no_deleted_text_or_instructions_of_fields() -> None:
    text = 'The fee is ninety eighty secret. \x13 HYPERLINK "http://x" \x14the page\x15\r'
    looks = [(11, 18, 0x0800), (25, 31, 0x083C)]
    document = read(make_doc(text, looks=looks), "a.doc")
    assert " ".join(document.text.split()) == "The fee is eighty . the page"
    assert [(each.text, each.reason) for each in document.hidden] == [("secret", "hidden")]


@pytest.mark.parametrize("line", (0x0837, 0x2A53))
def test_doc_keeps_struck_words_apart_and_exponents_stay_apart_from_their_numbers(line: int) -> None:
    looks = [(11, 14, line), (25, 27, 0x2A48), (30, 31, 0x2A48)]
    document = read(make_doc("The fee is 30 45 euros, 210, m2.\r", looks=looks), "a.doc")
    assert document.text == "The fee is 45 euros, 2^10, m2."
    assert [(each.text, each.reason) for each in document.hidden] == [("30", "struck out")]


def test_ppt_slides_are_pages_with_titles_texts_and_notes() -> None:
    slides = [("Sales", ["Up by nine percent", "*"], "Say it slowly"), ("", ["Hidden one"], ""), ("", [], "")]
    document = read(make_ppt(slides, hidden=1), "a.ppt")
    assert [(block.text, block.page, block.headings) for block in document.blocks] == [
        *((text, 1, ("Sales",)) for text in ("Sales", "Up by nine percent", "Say it slowly")),
        ("Hidden one", 2, ()),
    ]
    assert (document.pages, document.pages_without_text) == (3, (3,))
    assert document.parts == {"notes": 1, "hidden_slides": 1}


def test_msg_is_read_with_its_headers_body_and_the_names_of_attachments() -> None:
    known = {
        "0037": "Arrival",
        "0C1A": "Ada",
        "5D01": "ada@harbour.example",
        "0E04": "Bo",
        "1000": "At noon.\r\n\r\nSo.",
    }
    document = read(make_msg(known, attachments=["chart.bin"]), "a.msg")
    head = "From: Ada <ada@harbour.example>\nTo: Bo\nDate: 2024-01-17 21:20 UTC"
    assert [text for _, text, _ in shape(document)] == ["Arrival", head, "At noon.", "So.", "Attachment: chart.bin"]
    assert (document.title, document.parts) == ("Arrival", {"attachments": 1})


def test_msg_without_a_plain_body_is_read_from_its_html_or_rtf() -> None:
    page = make_msg({"0037": "A"}, streams={"10130102": b"<p>From the <b>page</b></p>"})
    assert read(page, "a.msg").text.endswith("From the page")
    rich = b"{\\rtf1\\ansi From rich text\\par}"
    stored = struct.pack("<II4sI", len(rich) + 12, len(rich), b"MELA", 0) + rich
    assert read(make_msg({"0037": "A"}, streams={"10090102": stored}), "a.msg").text.endswith("From rich text")
    # Eleven letters that are known to all programs, then ten as they are.
    packed = struct.pack("<II4sI", 0, 21, b"LZFu", 0) + b"\x01\x00\x09" + b" Rich\\p" + b"\x00ar}"
    assert read(make_msg({"0037": "A"}, streams={"10090102": packed}), "a.msg").text.endswith("Rich")
