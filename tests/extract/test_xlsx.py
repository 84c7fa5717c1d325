"""Sheets are read as they are shown: values in their formats, in their columns, with what stands beside them."""

import io
import struct
from collections.abc import Callable
from typing import Any

import pytest
import xlsxwriter  # type: ignore[import-untyped]

from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests.extract.compounds import make_xls, xls_record
from tests.extract.office_files import CHART, RELATIONS, office_parts, part, relation, relations, zipped
from tests.extract.readings import read, refused

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def written(build: Callable[[Any], None], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, options) as book:
        build(book)
    return buffer.getvalue()


def book_parts(
    *sheets: str,
    strings: str = "",
    own: str = "",
    parts: dict[str, str] | None = None,
) -> dict[str, bytes]:
    """The parts of a workbook from the XML of its sheets; `own` are the relations of the first."""
    listed = "".join(f'<sheet name="Sheet {number}" r:id="r{number}"/>' for number in range(len(sheets)))
    main = f'<workbook xmlns="{_MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>'
    whole = {
        f"worksheets/sheet{number}.xml": f'<worksheet xmlns="{_MAIN}">{xml}</worksheet>'
        for number, xml in enumerate(sheets)
    }
    related = "".join(relation(f"r{number}", "worksheet", name) for number, name in enumerate(whole))
    if strings:
        whole["sharedStrings.xml"] = f'<sst xmlns="{_MAIN}">{strings}</sst>'
        related += relation("sharedStrings", "sharedStrings", "sharedStrings.xml")
    whole["worksheets/_rels/sheet0.xml.rels"] = relations(own)
    return office_parts("xl", main, whole | (parts or {}), related)


def rows_of(data: bytes, filename: str = "a.xlsx") -> list[str]:
    return [block.text for block in read(data, filename).blocks if block.kind == "row"]


def test_values_are_shown_in_their_formats() -> None:
    def build(book: Any) -> None:
        sheet = book.add_worksheet()
        for column, (value, code) in enumerate(
            (
                (0.075, "0.0%"),
                (42, "00000"),
                (1234.5, '#,##0.00 "€"'),
                (46096, "dd.mm.yyyy"),
                (0.5, "h:mm"),
                (1 / 3, "General"),
            )
        ):
            sheet.write(0, column, value, book.add_format({"num_format": code}))
        sheet.write(1, 0, True)
        sheet.write(1, 1, "a\nb  c")
        sheet.write_formula(1, 2, "=1/0", None, "#DIV/0!")
        sheet.write_rich_string(1, 3, "half ", book.add_format({"bold": True}), "bold")

    assert rows_of(written(build)) == [
        "7.5% | 00042 | 1,234.50 € | 2026-03-15 | 12:00 | 0.333333333333333",
        "TRUE | a b c | #DIV/0! | half bold",
    ]


def test_cells_of_every_producer_are_read() -> None:
    strings = (
        "<si><t>one</t></si><si><r><t>t</t></r><r>"
        "<t xml:space='preserve'>wo </t></r><rPh><t>reading</t></rPh></si><si/>"
    )
    cells = (
        "<c r='A1' t='s'><v>0</v></c><c t='s'><v>1</v></c>",
        (
            '<x:c xmlns:x="u" t="inlineStr" r="B2"><x:is><x:t>in &amp; line</x:t></x:is></x:c>'
            '<c t="inlineStr"><v>odd</v></c>'
        ),
        '<c r="C3" t="d"><v>2026-03-15T09:30:00</v></c><c r="A3" t="str"><v>early_x000D_</v></c>',
        (
            "<c r='A4'><f>SUM(B1:B3)</f></c><c r='B4' t='str'><f>A9</f>"
            "<v></v></c><c r='C4'><v><![CDATA[7]]></v><!-- no --></c>"
        ),
        '<c r="A5"><f t="shared" ref="A5:A6" si="0">B5*$C$1</f></c>',
        '<c r="A6"><f t="shared" si="0"/></c><c r="B6" t="s"><v>99</v></c>',
    )
    xml = "".join(f"<row>{each}</row>" for each in cells)
    data = zipped(book_parts(f"<sheetData>{xml}</sheetData>", strings=strings))
    document = read(data, "a.xlsx")
    assert [block.text for block in document.blocks][1:] == [
        *("one, two", "| in & line | odd", "early |  | 2026-03-15 09:30", "=SUM(B1:B3) |  | 7", "=B5*$C$1", "=B6*$C$1"),
    ]
    assert document.warnings == ("1 cells of the sheet Sheet 0 refer to a text that the file doesn't have.",)


def test_far_cells_cost_nothing_and_cells_keep_their_columns() -> None:
    def build(book: Any) -> None:
        sheet = book.add_worksheet()
        sheet.write_row(1, 2, ["old", "new", "part"])
        sheet.write_row(2, 3, ["14", "washer"])
        sheet.write(1048575, 16383, "far")

    document = read(written(build), "a.xlsx")
    assert [block.text for block in document.blocks] == ["Sheet1", "old, new, part", "| 14 | washer", "|  | far"[3:]]
    assert len(document.text) < 100


def test_merged_cells_count_in_each_row_and_are_written_once_in_it() -> None:
    def build(book: Any) -> None:
        sheet = book.add_worksheet()
        sheet.merge_range(0, 0, 0, 2, "Fleet")
        sheet.merge_range(1, 0, 3, 0, "North")
        for row, name in ((1, "Anna"), (3, "Bob"), (4, "Cleo")):
            sheet.write(row, 1, name)

    assert rows_of(written(build)) == ["Fleet", "North | Anna", "North | Bob", "| Cleo"]


def test_comments_boxes_charts_and_headers_are_read_beside_the_cells() -> None:
    def build(book: Any) -> None:
        sheet = book.add_worksheet("Plan")
        sheet.write_row(0, 0, ["task", "owner"])
        sheet.write_row(1, 0, ["paint", "Bo"])
        sheet.write_row(2, 0, ["sand", "Cy"])
        sheet.write_comment(1, 1, "Replaced in April.", {"author": "Ann"})
        sheet.insert_textbox(5, 1, "A note in a box")
        chart = book.add_chart({"type": "line"})
        chart.add_series({"values": "=Plan!$A$1:$A$2", "name": "Planned"})
        chart.set_title({"name": "Hours by week"})
        sheet.insert_chart(8, 1, chart, {"description": "A falling line"})
        sheet.set_header('&L&"Arial,Bold"&14Budget && plan&RPage &P of &N')
        book.add_worksheet("Copy").set_header("&LBudget && plan&RPage &P of &N")

    document = read(written(build), "a.xlsx")
    assert [block.text for block in document.blocks] == [
        *("Plan", "task, owner", "paint | Bo", "Comment by Ann on B2: Replaced in April.", "sand | Cy"),
        *("A falling line", "Hours by week", "Planned", "A note in a box", "Budget & plan | Page of"),
    ]
    assert document.parts == {"comments": 1, "alt_texts": 1, "charts": 1, "headers": 1}


def test_threads_of_comments_replace_their_old_copies() -> None:
    threads = (
        '<ThreadedComments xmlns="u"><threadedComment ref="A1" personId="{1}"><text>Why?</text></threadedComment>'
        '<threadedComment ref="A1" personId="{2}"><text>Because.</text></threadedComment></ThreadedComments>'
    )
    old = (
        f'<comments xmlns="{_MAIN}"><authors><author>tc={{9}}</author>'
        f'</authors><commentList><comment ref="A1" authorId="0">'
    )
    people = (
        '<personList xmlns="u"><person displayName="Ann" id="{1}"/><person displayName="Bo" id="{2}"/></personList>'
    )
    parts = {
        "threads.xml": threads,
        "comments.xml": f"{old}<text><t>[Threaded comment]</t></text></comment></commentList></comments>",
        "people.xml": people,
    }
    own = relation("t", "threadedComment", "../threads.xml") + relation("c", "comments", "../comments.xml")
    data = book_parts("<sheetData><row r='1'><c r='A1'><v>1</v></c></row></sheetData>", own=own, parts=parts)
    name = "xl/_rels/workbook.xml.rels"
    data[name] = data[name].replace(b"</Rel", relation("p", "person", "people.xml").encode() + b"</Rel")
    assert [block.text for block in read(zipped(data), "a.xlsx").blocks] == [
        *("Sheet 0", "1", "Comment by Ann on A1: Why?", "Comment by Bo on A1: Because."),
    ]


def test_hidden_sheets_rows_and_columns_are_read_and_counted() -> None:
    def build(book: Any) -> None:
        first, second = book.add_worksheet("Open"), book.add_worksheet("Second")
        for sheet, word in ((first, "lynx"), (second, "puma")):
            sheet.write_row(0, 0, ["name", "note"])
            sheet.write_row(1, 0, ["ada", word])
        first.set_row(1, None, None, {"hidden": True})
        first.set_column(1, 9, None, None, {"hidden": True})
        second.hide()

    document = read(written(build), "a.xlsx")
    assert "lynx" in document.text and "puma" in document.text
    assert document.parts == {"hidden_rows": 1, "hidden_columns": 1, "hidden_sheets": 1}


def test_what_a_format_does_not_show_is_kept_apart() -> None:
    def build(book: Any) -> None:
        sheet = book.add_worksheet()
        for column, (text, look) in enumerate(
            (
                ("seen", {}),
                (7, {"num_format": ";;;"}),
                ("pale", {"font_color": "#FFFFFF"}),
                ("old", {"font_strikeout": True}),
                ("head", {"font_color": "#FFFFFF", "bg_color": "#000080"}),
            )
        ):
            sheet.write(0, column, text, book.add_format(look))

    document = read(written(build), "a.xlsx")
    assert [block.text for block in document.blocks] == ["Sheet1", "seen, , , , head"]
    assert [(each.text, each.reason) for each in document.hidden] == [
        *(("7", "number format that shows nothing"), ("pale", "white text"), ("old", "struck out")),
    ]


def test_struck_words_of_a_cell_are_kept_apart_and_exponents_stay_apart_from_their_numbers() -> None:
    def build(book: Any) -> None:
        sheet = book.add_worksheet()
        out, up = book.add_format({"font_strikeout": True}), book.add_format({"font_script": 1})
        sheet.write_rich_string(0, 0, "Fee ", out, "30 ", "45, 2", up, "10", ", m", up, "2", " of land")

    for options in ({}, {"constant_memory": True}):
        document = read(written(build, **options), "a.xlsx")
        assert "Fee 45, 2^10, m2 of land" in document.text
        assert [(each.text, each.reason) for each in document.hidden] == [("30", "struck out")]
    document = read(written(lambda book: build_struck(book, "Fee 30")), "a.xlsx")
    assert (document.text, [each.text for each in document.hidden]) == ("", ["Fee 30"])


def build_struck(book: Any, text: str) -> None:
    book.add_worksheet().write(0, 0, text, book.add_format({"font_strikeout": True}))


def test_variants_layouts_and_lost_relations_are_read_alike() -> None:
    usual = b"vnd.openxmlformats-officedocument.spreadsheetml.sheet.main"
    sheet = '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>'
    parts = book_parts(sheet, strings="<si><t>pintail</t></si>")
    kinds = {f"ms-excel.{name}.macroEnabled" for name in ("sheet", "template", "addin")}
    kinds.add("openxmlformats-officedocument.spreadsheetml.template")
    files = {
        kind: {name: content.replace(usual, f"vnd.{kind}.main".encode()) for name, content in parts.items()}
        for kind in kinds
    }
    files["backslashes"] = {name.replace("/", "\\"): content for name, content in parts.items()}
    files["capitals"] = {name.title(): content for name, content in parts.items()}
    files["lost"] = {name: content for name, content in parts.items() if "workbook.xml.rels" not in name}
    strict = {b"schemas.openxmlformats.org/spreadsheetml/2006": b"purl.oclc.org/ooxml/spreadsheetml"}
    strict[b"schemas.openxmlformats.org/officeDocument/2006"] = b"purl.oclc.org/ooxml/officeDocument"
    files["strict"] = dict(parts)
    for old, new in strict.items():
        files["strict"] = {name: content.replace(old, new) for name, content in files["strict"].items()}
    for kind, each in files.items():
        assert rows_of(zipped(each), "without-extension") == ["pintail"], kind


def test_chart_sheet_is_read_and_a_lost_sheet_costs_itself() -> None:
    drawing = part("xdr", '<c:chart r:id="rC"/>')
    parts = {
        "drawings/d.xml": drawing,
        "drawings/_rels/d.xml.rels": relations(relation("rC", "chart", "../charts/c.xml")),
        "charts/c.xml": CHART,
    }
    data = book_parts("", "<sheetData/>", own=relation("d", "drawing", "../drawings/d.xml"), parts=parts)
    del data["xl/worksheets/sheet1.xml"]
    document = read(zipped(data), "a.xlsx")
    assert [block.text for block in document.blocks] == ["Sheet 0", "Turnover by branch"]
    assert document.warnings == ("The part xl/worksheets/sheet1.xml of the file is missing.",)


def test_one_long_text_in_many_cells_is_over_the_limit() -> None:
    row = '<row><c t="s"><v>0</v></c></row>'
    data = zipped(book_parts(f"<sheetData>{row * 200}</sheetData>", strings=f"<si><t>{'x' * 10_000}</t></si>"))
    assert "1 million characters" in refused(
        data, "a.xlsx", SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED, output_bytes=1024**2
    )


ROOMS, DOGS = [["Room", "Fee"], ["Blue", 80], ["Red", 90]], [["Dog", "Tax", "From"], ["Pug", 5, "May"], ["Boxer", 12]]


@pytest.mark.parametrize(
    ("rows", "headings"),
    [
        ([*ROOMS, [], *DOGS], ["Room, Fee", "Room, Fee", "Dog, Tax, From", "Dog, Tax, From"]),
        # Groups of rows that empty ones part, and a legend, are no tables of their own.
        ([*ROOMS, [], ["Gold", 95], [], ["x", "closed"]], ["Room, Fee"] * 4),
        ([*ROOMS, [], ["Dogs"], *DOGS], ["Room, Fee"] * 3 + ["Dog, Tax, From"] * 2),
        ([["Price list 2026"], ["of May"], *ROOMS], ["", "", "Room, Fee", "Room, Fee"]),
        ([["Sent to", "Huber", ""], ["No.", "2026-44"], [], *DOGS], ["", "", "Dog, Tax, From", "Dog, Tax, From"]),
        ([["", "May", "June"], ["Gas", 1, 2]], [", May, June"]),
        ([["Room", "Fee", "", "Dog", "Tax"], ["Blue", 80, "", "Pug", 5]], ["Room, Fee, , Dog, Tax"]),
        ([["", 2024, 2025, 2026], ["Gas", 1, 2, 3]], [", 2024, 2025, 2026"]),
        (
            [["Plan"], ["", "East", "", "West"], ["Item", "Q1", "Q2", "Q1"], ["Gas", 1, 2, 3]],
            ["", "Item, East Q1, East Q2, West Q1", "Item, East Q1, East Q2, West Q1"],
        ),
        (
            [["Item", 2025, "", 2026], ["", "Q1", "Q2", "Q1", "Q2"], ["Gas", 1, 2, 3, 4]],
            ["Item, 2025 Q1, 2025 Q2, 2026 Q1, 2026 Q2"] * 2,
        ),
        ([["Costs", 2025, 2024], ["Gas", 1, 2]], ["Costs, 2025, 2024"]),
        ([["House", 1998, 2004], ["Shed", 1, 2]], ["", ""]),
    ],
)
def test_each_row_has_the_names_of_the_columns_of_its_table(rows: list[list[Any]], headings: list[str]) -> None:
    def build(book: Any) -> None:
        sheet = book.add_worksheet("List")
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)

    found = [block.headings[1:] for block in read(written(build), "a.xlsx").blocks if block.kind == "row"]
    assert found == [(heading,) if heading else () for heading in headings]


XML_BOOK = """<?xml version="1.0"?>
<?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet">
<Styles><Style ss:ID="e"><NumberFormat ss:Format="#,##0.00 &quot;EUR&quot;"/></Style>
<Style ss:ID="p" ss:Parent="e"><NumberFormat ss:Format="Percent"/></Style><Style ss:ID="f" ss:Parent="e"/></Styles>
<Worksheet ss:Name="Costs"><Table>
<Row><Cell><Data ss:Type="String">Item</Data></Cell><Cell ss:Index="3"><Data ss:Type="String">Cost</Data></Cell></Row>
<Row><Cell ss:MergeDown="1"><Data ss:Type="String">Rent</Data>
<Comment><ss:Data><B>From</B> May</ss:Data></Comment></Cell>
<Cell ss:Index="3" ss:StyleID="f"><Data ss:Type="Number">1850.5</Data></Cell></Row>
<Row ss:StyleID="p"><Cell ss:Index="3"><Data ss:Type="Number">0.075</Data></Cell></Row>
<Row ss:Index="9"><Cell><Data ss:Type="DateTime">2026-03-01T00:00:00.000</Data></Cell>
<Cell><Data ss:Type="DateTime">1899-12-31T14:30:00.000</Data></Cell><Cell><Data ss:Type="Boolean">1</Data></Cell></Row>
</Table></Worksheet><Worksheet ss:Name="Empty"><Table/></Worksheet></Workbook>"""


@pytest.mark.parametrize("name", ["a.xls", "a.xml", "without"])
def test_book_in_the_xml_of_excel_2003_is_read_as_it_is_shown(name: str) -> None:
    document = read(XML_BOOK.encode(), name)
    assert [block.text for block in document.blocks] == [
        *("Costs", "Item, , Cost", "Rent |  | 1,850.50 EUR", "Comment on A2: From May", "Rent |  | 7.50%"),
        "2026-03-01 | 14:30 | TRUE",
    ]
    assert document.pages == 2


def test_damaged_or_odd_book_in_xml_is_refused() -> None:
    refused(XML_BOOK[:-30].encode(), "a.xls", SourceErrorCode.DOCUMENT_UNREADABLE)
    wide = XML_BOOK.replace('ss:Index="9"', 'ss:Index="1048577"').encode()
    refused(wide, "a.xls", SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED)
    entity = XML_BOOK.replace("<Workbook", '<!DOCTYPE x [<!ENTITY a "b">]><Workbook').encode()
    refused(entity, "a.xls", SourceErrorCode.DOCUMENT_UNREADABLE)


def test_xls_shows_numbers_by_their_formats_and_has_comments_shapes_charts_and_headers() -> None:
    def text(words: str, size: str = "H") -> bytes:
        return struct.pack(f"<{size}B", len(words), 0) + words.encode("latin-1")

    def shape(kind: int, number: int, words: str) -> bytes:
        content = xls_record(0x3C, b"\0" + words.encode()) + xls_record(0x3C, bytes(16))
        return (
            xls_record(0x5D, struct.pack("<HHHH", 0x15, 18, kind, number) + bytes(14))
            + xls_record(0x1B6, struct.pack("<10xHHI", len(words), 16, 0))
            + content
        )

    looks = b"".join(xls_record(0xE0, struct.pack("<HH16x", 0, number)) for number in (0, 10, 164))
    book = xls_record(0x41E, struct.pack("<H", 164) + text('#,##0.00" EUR"')) + looks
    packed = struct.pack("<HHHIHIH", 1, 1, 1, 7 << 2 | 2, 0, 12 << 2 | 2, 2)
    cells = xls_record(0x203, struct.pack("<HHHd", 1, 0, 2, 1234.5)) + xls_record(0xBD, packed)
    chart = xls_record(0x809, struct.pack("<HHHHII", 0x0600, 0x20, 0, 1996, 0, 6))
    chart += xls_record(0x100D, bytes(2) + text("Sales of eiders", "B")) + xls_record(0x0A)
    note = xls_record(0x1C, struct.pack("<4H", 1, 0, 0, 5) + text("Ann"))
    sheet = (
        xls_record(0x14, text("&L&8Harbour &P"))
        + cells
        + shape(6, 4, "A box")
        + chart
        + shape(0x19, 5, "Ann: net of tax")
    )
    document = read(make_xls("Fee", book=book, sheet=sheet + note), "a.xls")
    assert document.text.split("\n\n") == [
        *("Sheet", "Fee\n1,234.50 EUR | 700.00% | 12", "Comment by Ann on A2: net of tax"),
        *("Sales of eiders", "A box", "Harbour"),
    ]
    assert document.parts == {"comments": 1, "headers": 1}
