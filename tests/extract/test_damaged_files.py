"""Files with random damage end with text or with a reason, and never with another exception."""

import io
import random
import zipfile

import pytest
from lxml import etree

from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats.open_xml.sheets.cells import CellFormats, SheetCells, shared_strings, text_of
from svc_daemon.extract.formats.open_xml.word.styles import StyleLook, WordStyles
from tests import samples
from tests.extract import opendocuments
from tests.extract.compounds import make_doc, make_msg, make_ppt
from tests.extract.office_files import CHART, DIAGRAM, relation, relations, zipped
from tests.extract.pdfs import field, lines, make_page, note
from tests.extract.readings import read
from tests.extract.test_pdf import LEFT, RIGHT, in_rows
from tests.extract.test_rtf import HEAD
from tests.limits import cpu_limit_s

_PIECES = [
    *b'-1 999999999999 & < " 1e999 </w:tbl> <w:p> </v> ;;'.split(),
    b"",
    b"\0",
    b"\xff",
]
_ARCHIVES = {
    "a.docx": samples.make_docx({"One": "Text.", "Two": "Text."}, table=[["a", "b"], ["c", "d"]], title="Doc"),
    "a.pptx": samples.make_pptx([("Start", "Hello"), ("", ""), ("End", "Bye")]),
    "a.xlsx": samples.make_xlsx({"Ships": [["name", "draught"], ["Anna", 2.5], ["Bob", 3.0]]}),
}


def is_read(data: bytes, name: str) -> bool:
    """Whether the file has text; if it has not, the failure must have a reason."""
    try:
        read(data, name)
    except ExtractionFailed as failed:
        assert failed.message
        return False
    return True


def damaged(content: bytes, chance: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(out) + 1)
        other = chance.randrange(len(out) + 1)
        action = chance.randrange(3)
        if action == 0:
            del out[at : at + chance.randint(1, 60)]
        else:
            out[at:at] = chance.choice(_PIECES) if action == 1 else out[other : other + chance.randint(1, 200)]
    return bytes(out)


@pytest.mark.parametrize("name", _ARCHIVES)
def test_damaged_part_or_archive_ends_with_text_or_a_reason(name: str) -> None:
    chance = random.Random(30)
    with zipfile.ZipFile(io.BytesIO(_ARCHIVES[name])) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    if name == "a.xlsx":
        own = relations(relation("d", "drawing", "../drawings/d.xml"), relation("c", "comments", "../c.xml"))
        parts |= {"xl/worksheets/_rels/sheet1.xml.rels": own.encode(), "xl/drawings/d.xml": CHART.encode()}
        parts["xl/c.xml"] = DIAGRAM.encode()
    ends = []
    for number in range(48):
        part = chance.choice([each for each in parts if each.endswith((".xml", ".rels"))])
        whole = zipped({**parts, part: damaged(parts[part], chance)})
        ends.append(is_read(whole if number % 6 else damaged(_ARCHIVES[name], chance), name))
    assert sum(ends) > len(ends) / 2, "most damage costs only a part"
    assert not all(ends)


_FIELDS = [field("Tx", "/V (Quellmalz)"), note("Text", "Ask"), note("FreeText", "Typed", "/DA (/Helv 10 Tf 0 g)")]
_TABLE = opendocuments.table(opendocuments.cell("a", 'table:number-rows-spanned="2"'))
#: Files, and how many of their first bytes are not changed, by which they are known.
_FILES = {
    "a.pdf": (make_page(in_rows(LEFT, RIGHT) + lines("unseen", before="3 Tr"), annotations=_FIELDS), 8),
    "a.rtf": (
        HEAD.encode() + rb"\pard\s1 A\par\trowd\cellx9\intbl \u99?\'82\cell\row{\footnote b}\pard{\v c}d\par}",
        6,
    ),
    "a.fodt": (opendocuments.make_flat(f"{_TABLE}{'<text:p>b<text:s/>c</text:p>' * 9}"), 0),
    "a.doc": (make_doc("Report\rOne\x07Two\x07\x07", "\x02Note\r", looks=[(0, 3, 0x083C)]), 8),
    "a.ppt": (make_ppt([("Sales", ["Up"], "Slowly")]), 8),
    "a.msg": (make_msg({"0037": "A", "1000": "B"}, attachments=["c"]), 8),
}


@pytest.mark.parametrize("name", _FILES)
def test_changed_bytes_end_with_text_or_a_reason(name: str) -> None:
    chance, (data, first) = random.Random(7), _FILES[name]
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 9)):
            changed[chance.randrange(first, len(data))] = chance.randrange(256)
        is_read(bytes(changed), name)


_FRAMES = (
    b"Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n%s\n--b\nContent-Type: text/html\n"
    b"Content-ID: <a>\n\n<p>Tea</p>\n--b--\n"
)


_FORMS = (
    b"Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n%s\n--b\n"
    b"Content-Type: text/html\n\n<p>%s</p>\n--b--\n"
)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.enex", b"<en-export><note><content><![CDATA[%s]]></content></note></en-export>" % (b"<en-crypt " * 60_000)),
        ("a.vcf", b"BEGIN:VCARD\nFN:Tea\n%s\nEND:VCARD\n" % (b";QUOTED-PRINTABLE" * 30_000)),
        ("a.mbox", b"From a@b.example Mon Jan  1 00:00:00 2024\nSubject: Tea\n\nFrom %s\n\1" % (b"11:11 " * 60_000)),
        ("a.mhtml", _FRAMES % (b"<iframe " * 60_000)),
        ("a.eml", _FORMS % (b"a" * 120_000, b"a" * 120_000)),
        ("a.eml", b"Content-Type: message/delivery-status\n\n" + b"".join(b"A%d: Tea\n" % n for n in range(15_000))),
        ("a.eml", b"Content-Type: text/plain; format=flowed\n\n" + b"Tea \n" * 300_000),
        ("a.ics", b"BEGIN:VEVENT\n" * 3000 + b"SUMMARY:Tea\nX:a\n" * 3000 + b"END:VEVENT\n" * 3000),
        ("a.ics", b"BEGIN:VEVENT\nSUMMARY:Tea\nRRULE:FREQ=DAILY;BYDAY=" + b"1" * 60_000 + b"\nEND:VEVENT\n"),
        ("a.xhtml", b'<?xml version="1.0"?><html><p>Tea</p>' + b"<![CDATA[" * 30_000),
        ("a.html", b"<style>" + b"/*" * 100_000 + b"</style><p>Tea"),
        ("a.html", b"<style>" + b".a{color:red}" * 30_000 + b"</style><p class=a>Tea"),
        ("a.html", b"<style>p" + b"[" * 150_000 + b"{color:red}</style><p>Tea"),
        ("a.html", b"<p style='transform:" + b"translate(" * 60_000 + b"'>Tea"),
        ("a.adoc", b"= a" + b" " * 60_000 + b"b\n\nTea\n"),
        ("a.adoc", b"= " + b"[" * 120_000 + b"\n\nTea\n"),
        ("a.org", b"* a" + b" " * 120_000 + b"b\n\nTea\n"),
        ("a.org", b":a:\n" * 30_000 + b"Tea\n"),
        ("a.org", b"".join(b"#+begin_q%d\n" % number for number in range(20_000)) + b"Tea\n"),
        ("a.rst", b"a" + b".:" * 60_000 + b"\n====\n\nTea\n"),
        ("a.1", b".TH a 1\n" + b".de x\n" * 20_000 + b"Tea\n"),
        ("a.1", b".TH a 1\n" + b".TS\n" * 20_000 + b"Tea\n"),
        ("a.1", b".TH a 1\nTea\n" + b".if n " * 80_000),
        ("a.1", b".Dd a\nTea\n.Op " + b"Op " * 80_000),
        ("a.1", b".Dd a\nTea\n.Op " + b". " * 80_000),
    ],
)
def test_what_never_ends_costs_linear_time(name: str, data: bytes) -> None:
    with cpu_limit_s(3):
        is_read(data, name)


@pytest.mark.parametrize("cell", [b"<c>", b'<c t="str" ', b"<c><v>", b"<c><f>", b"<!--", b"<![CDATA["])
def test_cells_that_never_end_cost_linear_time(cell: bytes) -> None:
    given = b'<sheetData><row><c t="str"><v>Tea</v></c>%s</row></sheetData>' % (cell * 60_000)
    with cpu_limit_s(3):
        assert next(iter(SheetCells(given, [], CellFormats()).rows())).cells[0] == (0, "Tea")


@pytest.mark.parametrize("string", [b"<si>", b"<si ", b"<si><rPh ", b"<si><rPh>"])
def test_strings_that_never_end_cost_linear_time(string: bytes) -> None:
    with cpu_limit_s(3):
        assert shared_strings(b"<si><t>Tea</t></si>" + string * 60_000 + b"</si>", [])[0] == "Tea"


def test_styles_that_are_based_on_many_others_cost_linear_time() -> None:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    styles = (f'<w:style w:styleId="{n}"><w:basedOn w:val="{n + 1}"/></w:style>' for n in range(3000))
    known = WordStyles(etree.fromstring(f"<w:styles {space}>{''.join(styles)}</w:styles>"))
    with cpu_limit_s(3):
        assert not any(known.look(str(number)) != StyleLook() for number in range(3000))


def test_runs_of_a_string_that_never_end_cost_linear_time() -> None:
    with cpu_limit_s(3):
        assert text_of(b"<r>" * 60_000 + b"<strike/><t>Tea</t>", []) == "Tea"
