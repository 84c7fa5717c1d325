"""OpenDocument files are read as their readers see them, in every variant, and damaged or locked ones say so."""

import pytest

from svc_daemon.core.text.media_types import detect
from tests.extract.opendocuments import TYPE, cell, make_flat, make_open_document, part, style, table, text_box
from tests.extract.readings import read, shape
from tests.samples import make_zip, replaced

NUMBERS = "".join(
    f'<text:list-level-style-number text:level="{level}" style:num-format="{kind}" style:num-suffix="{end}"'
    f' text:display-levels="{shown}"/>'
    for level, kind, end, shown in ((1, "1", ".", 1), (2, "1", "", 2), (3, "a", ")", 1))
)
LIST_STYLE = f'<text:list-style style:name="L">{NUMBERS}</text:list-style>'


def text_of(kind: str, body: str, styles: str = "") -> str:
    return read(make_open_document(kind, body, styles=styles), "a.od").text


@pytest.mark.parametrize(
    ("body", "expected"),
    (
        ("<text:p>The agouti<text:s/>grows<text:s text:c='2'/>fast.</text:p>", "The agouti grows  fast."),
        ("<text:p> Nine\n   <text:span>eu</text:span>ros<text:tab/>due</text:p>", "Nine euros\tdue"),
        ("<text:p>Nine<text:line-break/>euros</text:p>", "Nine\neuros"),
        ("<text:p>a<!-- no -->b<text:bookmark text:name='x'/>c</text:p>", "abc"),
        (
            (
                "<text:p>It grows.<text:note><text:note-citation>1</text:note-citation><text:note-body>"
                "<text:p>See paca."
                "</text:p></text:note-body></text:note> Fast.</text:p>"
            ),
            "It grows. Fast.\n\nNote 1: See paca.",
        ),
        (
            (
                "<text:p>Two years<office:annotation><dc:creator>Ada</dc:creator><dc:date>2026-01-01</dc:date>"
                "<text:p>Three!</text:p></office:annotation> long</text:p>"
            ),
            "Two years long\n\nComment by Ada: Three!",
        ),
        (
            (
                "<text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p></text:deletion>"
                "</text:changed-region></text:tracked-changes><text:p>Kept<text:change text:change-id='c'/></text:p>"
            ),
            "Kept",
        ),
        ("<text:list-item><text:p>No list</text:p></text:list-item>", "No list"),
        (f"<text:p>Before{text_box('Boxed')} after</text:p>", "Before after\n\nBoxed"),
        (
            (
                "<text:p>See <draw:frame><draw:image/><svg:title>A heron</svg:title><svg:desc>It stands.</svg:desc>"
                "</draw:frame></text:p>"
            ),
            "See\n\nA heron\n\nIt stands.",
        ),
        (
            (
                "<text:p><text:ruby><text:ruby-base>東</text:ruby-base><text:ruby-text>とう</text:ruby-text></text:ruby>"
                "<text:ruby><text:ruby-base>京</text:ruby-base><text:ruby-text>きょう</text:ruby-text></text:ruby>へ</text:p>"
            ),
            "東京へ (とう きょう)",
        ),
        (
            (
                "<text:p>The yield is <draw:frame><draw:object><math:math><math:semantics><math:mi>kTorque</math:mi>"
                "<math:mo>=</math:mo><math:mn>4</math:mn><math:annotation>k over 4</math:annotation></math:semantics>"
                "</math:math></draw:object></draw:frame> here.</text:p>"
            ),
            "The yield is kTorque = 4 here.",
        ),
        (
            (
                "<office:forms><form:form><form:text form:id='c1' form:current-value='Quellmalz'/><form:listbox"
                " form:id='c2'><form:option form:label='Ulm'/><form:option form:label='Trier' "
                "form:current-selected='true'/>"
                "</form:listbox></form:form></office:forms><text:p>Name: <draw:control draw:control='c1'/></text:p>"
                "<text:p>City: <draw:control draw:control='c2'/></text:p>"
            ),
            "Name: Quellmalz\n\nCity: Trier",
        ),
    ),
)
def test_text_is_read_with_what_stands_beside_it(body: str, expected: str) -> None:
    assert text_of("text", body) == expected
    assert read(make_flat(body), "a.fodt").text == expected


def test_headings_lists_and_their_numbers_are_read_with_their_places() -> None:
    items = "<text:list-item><text:p>Parties</text:p></text:list-item>"
    inner = f"<text:list-item><text:list>{items}{items}</text:list></text:list-item>"
    body = (
        '<text:h text:outline-level="1">Report</text:h><text:h text:outline-level="2">Costs</text:h>'
        f'<text:list text:style-name="L"><text:list-item><text:p>General</text:p></text:list-item>{inner}'
        f"<text:list-item><text:p>Delivery</text:p><text:p>goes on</text:p></text:list-item></text:list>"
        "<text:p>So.</text:p>"
        f'<text:list text:style-name="L" text:continue-numbering="true">{items}</text:list>'
        f'<text:list text:style-name="L"><text:list-item text:start-value="7"><text:p>x</text:p></text:list-item>'
        "</text:list>"
        "<text:list><text:list-item><text:p>bullet</text:p></text:list-item></text:list>"
    )
    document = read(make_open_document("text", body, styles=LIST_STYLE), "a.odt")
    both = ("Report", "Costs")
    listed = ["1. General", "1.1 Parties", "1.2 Parties", "2. Delivery", "goes on", "3. Parties", "7. x", "bullet"]
    assert shape(document) == [
        *(("heading", "Report", both[:1]), ("heading", "Costs", both)),
        *(("item", text, both) for text in listed[:5]),
        ("paragraph", "So.", both),
        *(("item", text, both) for text in listed[5:]),
    ]


def test_headings_are_numbered_by_the_outline() -> None:
    outline = NUMBERS.replace("list-level-style-number", "outline-level-style")
    heads = "".join(
        f'<text:h text:outline-level="{level}">{text}</text:h>'
        for level, text in ((1, "A"), (2, "B"), (2, "C"), (1, "D"))
    )
    styles = f"<text:outline-style>{outline}</text:outline-style>"
    assert text_of("text", heads, styles=styles).split("\n\n") == ["1. A", "1.1 B", "1.2 C", "2. D"]


def test_tables_keep_columns_and_repeat_what_spans_rows() -> None:
    covered = "<table:covered-table-cell/>"
    body = table(
        cell("Region") + cell("City") + cell("Quota"),
        cell("Northmark", 'table:number-rows-spanned="2"') + cell("Ulm") + cell("41"),
        covered + cell("Trier") + cell("77"),
        cell("Wide", 'table:number-columns-spanned="2"') + covered + cell("93"),
        cell("") + cell("14") + cell("washer"),
        cell("", more=table(cell("in") + cell("side"))) + cell("x"),
    )
    assert text_of("text", body).split("\n") == [
        *("Region | City | Quota", "Northmark | Ulm | 41", "Northmark | Trier | 77", "Wide |  | 93", "| 14 | washer"),
        "in side | x",
    ]


def test_headers_and_footers_are_read_once_without_bare_page_numbers() -> None:
    masters = "".join(
        f'<style:master-page style:name="{name}"><style:header><text:p>Zebrafold GmbH</text:p></style:header>'
        '<style:header-left style:display="false"><text:p>Unused</text:p></style:header-left>'
        "<style:footer><text:p>Contract KX-7719</text:p><text:p><text:page-number>1</text:page-number></text:p>"
        "</style:footer></style:master-page>"
        for name in ("Standard", "First")
    )
    document = read(make_open_document("text", "<text:p>Due in May.</text:p>", masters=masters), "a.odt")
    assert document.text == "Zebrafold GmbH\n\nDue in May.\n\nContract KX-7719"
    assert document.parts == {"headers": 1, "footers": 1}


@pytest.mark.parametrize(
    ("body", "properties", "reason"),
    (
        ('<text:p>Seen<text:span text:style-name="T"> secret</text:span></text:p>', 'text:display="none"', "hidden"),
        ('<text:p>Seen<text:span text:style-name="T"> secret</text:span></text:p>', 'fo:color="#ffffff"', "white text"),
        (
            '<text:p>Seen<text:span text:style-name="T"> secret</text:span></text:p>',
            'fo:font-size="0.1pt"',
            "text of size 0",
        ),
        (
            '<text:p>Seen</text:p><text:section text:display="none"><text:p>secret</text:p></text:section>',
            "",
            "hidden",
        ),
        (
            '<text:p>Seen</text:p><text:p>sec<text:hidden-paragraph text:is-hidden="true"/>ret</text:p>',
            "",
            "hidden",
        ),
        (
            (
                '<text:p>Seen<text:hidden-text text:is-hidden="true" text:string-value="secret">secret'
                "</text:hidden-text>"
                "</text:p>"
            ),
            "",
            "hidden",
        ),
    ),
)
def test_text_that_is_not_shown_is_kept_apart(body: str, properties: str, reason: str) -> None:
    styles = style("T", "text", f"<style:text-properties {properties}/>")
    document = read(make_open_document("text", body, styles=styles), "a.odt")
    assert document.text == "Seen"
    assert [(hidden.text, hidden.reason) for hidden in document.hidden] == [("secret", reason)]


@pytest.mark.parametrize("line", ("style:text-line-through-style", "style:text-line-through-type"))
@pytest.mark.parametrize("kind", ("text", "presentation"))
def test_struck_words_are_kept_apart_and_exponents_stay_apart_from_their_numbers(kind: str, line: str) -> None:
    def span(name: str, text: str) -> str:
        return f'<text:span text:style-name="{name}">{text}</text:span>'

    looks = {"Out": f'{line}="solid"', "In": f'{line}="none"', "Up": 'style:text-position="super 58%"'}
    looks |= {"High": 'style:text-position="33% 58%"', "Low": 'style:text-position="sub 58%"'}
    styles = "".join(style(name, "text", f"<style:text-properties {look}/>") for name, look in looks.items())
    words = f"The fee is {span('Out', '30 ' + span('In', '45'))} euros, 10{span('Up', '-6')}, 2{span('High', '10')}"
    words = f"<text:p>{words}, m{span('Up', '2')}, H{span('Low', '2')}O</text:p>"
    body = words if kind == "text" else f"<draw:page><draw:frame>{words}</draw:frame></draw:page>"
    document = read(make_open_document(kind, body, styles=styles), "a.odt" if kind == "text" else "a.odp")
    assert document.text == "The fee is 45 euros, 10^-6, 2^10, m2, H2O"
    assert [(each.text, each.reason) for each in document.hidden] == [("30", "struck out")]


def test_struck_cells_are_kept_apart_with_their_values() -> None:
    line = '<style:text-properties style:text-line-through-style="solid"/>'
    styles = style("C", "table-cell", line) + style("P", "paragraph", line)
    body = table(
        cell("30", 'table:style-name="C" office:value-type="float" office:value="30"')
        + cell("", "", '<text:p text:style-name="P">40</text:p>')
        + cell("45", "")
    )
    document = read(make_open_document("spreadsheet", body, styles=styles), "a.ods")
    assert ("30" in document.text, "40" in document.text, "45" in document.text) == (False, False, True)
    assert [(each.text, each.reason) for each in document.hidden] == [("30", "struck out"), ("40", "struck out")]


def test_white_text_on_a_dark_cell_or_shape_is_seen() -> None:
    white = style("W", "paragraph", '<style:text-properties fo:color="#FFFFFF"/>')
    dark = style("D", "table-cell", '<style:table-cell-properties fo:background-color="#000080"/>')
    words = '<text:p text:style-name="W">Seen</text:p>'
    in_cell = table(cell("", 'table:style-name="D"', words))
    in_shape = f"<text:p><draw:custom-shape>{words}</draw:custom-shape></text:p>"
    for body in (in_cell, in_shape):
        assert text_of("text", body, styles=white + dark) == "Seen"
    page = '<style:page-layout><style:page-layout-properties fo:background-color="#111111"/></style:page-layout>'
    assert text_of("text", words, styles=white + page) == "Seen"
    assert not text_of("text", words, styles=white + page.replace("#111111", "#ffffff"))


def test_sheets_are_pages_with_values_as_shown_comments_and_hidden_parts() -> None:
    rates = table(
        cell("kind") + cell("value"),
        cell("discount") + cell("7.5 %", 'office:value-type="percentage" office:value="0.075"'),
        cell("rebate") + cell("", 'office:value-type="percentage" office:value="0.075"'),
        cell("audit") + cell("", 'office:value-type="date" office:date-value="2026-03-15T09:30:00"'),
        cell("call") + cell("", 'office:value-type="time" office:time-value="PT09H05M00S"'),
        cell("open") + cell("", 'office:value-type="boolean" office:boolean-value="true"'),
        cell("price") + cell("", 'office:value-type="currency" office:value="12.50" office:currency="EUR"'),
        cell("sum") + cell("", 'table:formula="of:=SUM([.B1:.B9])"'),
        cell(
            "task", more="<office:annotation><dc:creator>Bo</dc:creator><text:p>Peregrine</text:p></office:annotation>"
        ),
        attributes='table:name="Rates"',
    )
    secret = table(cell("puma"), attributes='table:name="Second" table:style-name="H"').replace(
        "<table:table-row>", '<table:table-row table:visibility="collapse">'
    )
    styles = style("H", "table", '<style:table-properties table:display="false"/>')
    document = read(make_open_document("spreadsheet", rates + secret, styles=styles), "a.ods")
    columns = ("Rates", "kind, value")
    assert [(block.text, block.page, block.headings) for block in document.blocks] == [
        *(("Rates", 1, ("Rates",)), ("kind, value", 1, columns)),
        *((text, 1, columns) for text in ("discount | 7.5 %", "rebate | 7.5%", "audit | 2026-03-15 09:30:00")),
        *((text, 1, columns) for text in ("call | 09:05:00", "open | TRUE", "price | 12.5 EUR")),
        *((text, 1, columns) for text in ("sum | =SUM([.B1:.B9])", "task", "Comment by Bo: Peregrine")),
        *(("Second", 2, ("Second",)), ("puma", 2, ("Second",))),
    ]
    assert document.parts == {"comments": 1, "hidden_sheets": 1, "hidden_rows": 1}


def test_far_and_repeated_cells_cost_what_is_filled() -> None:
    far = table(
        cell("falcon") + cell("", 'table:number-columns-repeated="16000"') + cell("x"),
        cell("y", 'table:number-columns-repeated="3"') + cell("", 'table:number-columns-repeated="16000"'),
        attributes='table:name="Solver"',
    )
    rest = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>'
    document = read(make_open_document("spreadsheet", far.replace("</table:table>", f"{rest}</table:table>")), "a.ods")
    _, first, second = document.text.replace("\n\n", "\n").split("\n")
    assert (first[:6], first[-1], second) == ("falcon", "x", "y | y | y")
    assert len(document.text) < 10_000
    filled = table(cell("z")).replace("<table:table-row>", '<table:table-row table:number-rows-repeated="1048576">')
    document = read(make_open_document("spreadsheet", filled), "a.ods")
    assert document.text.count("z") == 1000
    assert "repeated more than 1000 times" in document.warnings[0]


def test_chart_in_a_sheet_is_read_after_its_rows() -> None:
    chart = part(
        "office:document-content",
        "<office:body><office:chart><chart:chart><chart:title><text:p>Turnover</text:p></chart:title>"
        f"{table(cell('') + cell('Revenue'), cell('Lynxburg') + cell('417'))}</chart:chart>"
        "</office:chart></office:body>",
    )
    shapes = '<table:shapes><draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></table:shapes>'
    sheet = table(cell("a") + cell("b"), attributes='table:name="S"').replace(
        "<table:table-row>", f"{shapes}<table:table-row>", 1
    )
    data = make_open_document("spreadsheet", sheet, parts={"Object 1/content.xml": chart})
    document = read(data, "a.ods")
    assert document.text == "S\n\na, b\n\nTurnover\n\n| Revenue\nLynxburg | 417"
    assert document.parts == {"charts": 1}


def test_slides_are_pages_with_titles_notes_footers_and_what_is_hidden() -> None:
    title = 'presentation:class="title"'
    notes = f"<presentation:notes><draw:page-thumbnail/>{text_box('Say it slowly.')}</presentation:notes>"
    group = f"<draw:g>{text_box('Nested meerkat')}<svg:desc>Two animals</svg:desc></draw:g>"
    placeholder = (
        '<draw:frame presentation:placeholder="true"><draw:text-box><text:p>Click</text:p></draw:text-box></draw:frame>'
    )
    body = (
        '<presentation:footer-decl presentation:name="f">Acme</presentation:footer-decl>'
        f'<draw:page presentation:use-footer-name="f">{text_box("Sales rose.")}{text_box("Quarterly dotterel", title)}'
        f"{group}{placeholder}{notes}</draw:page>"
        f'<draw:page draw:style-name="H" presentation:use-footer-name="f">{text_box("Hidden slide")}</draw:page>'
        "<draw:page/>"
    )
    styles = style("H", "drawing-page", '<style:drawing-page-properties presentation:visibility="hidden"/>')
    for kind in ("presentation", "presentation-template"):
        document = read(make_open_document(kind, body, styles=styles, meta="<dc:title>Deck</dc:title>"), "a.odp")
        head = ("Quarterly dotterel",)
        assert [(block.text, block.page, block.headings) for block in document.blocks] == [
            (head[0], 1, head),
            *((text, 1, head) for text in ("Sales rose.", "Nested meerkat", "Two animals", "Acme", "Say it slowly.")),
            ("Hidden slide", 2, ()),
        ]
        assert (document.title, document.pages, document.pages_without_text) == ("Deck", 3, (3,))
        assert document.parts == {"alt_texts": 1, "footers": 1, "notes": 1, "hidden_slides": 1}


@pytest.mark.parametrize(
    ("kind", "name"),
    (("text", "a.odt"), ("text-template", "a.ott"), ("text-master", "a.odm"), ("spreadsheet-template", "a.ots")),
)
def test_type_is_found_from_the_bytes_however_they_name_it(kind: str, name: str) -> None:
    data = make_open_document(kind, "")
    assert detect(data) == detect(data, name) == f"{TYPE}.{kind}"
    manifest = f'<manifest:manifest><manifest:file-entry manifest:media-type="{TYPE}.{kind}"/></manifest:manifest>'
    assert detect(make_zip({"content.xml": b"<x/>", "META-INF/manifest.xml": manifest.encode()})) == f"{TYPE}.{kind}"
    flat = make_flat("")
    assert detect(flat) == detect(flat, "a.xml") == f"{TYPE}.text-flat-xml"


def test_damaged_part_costs_itself() -> None:
    document = read(replaced(make_open_document("text", "<text:p>Seen</text:p>"), "styles.xml", b"<broken"), "a.odt")
    assert (document.text, len(document.warnings)) == ("Seen", 1)


def test_deep_nesting_ends_with_text_or_a_warning() -> None:
    deep = "<text:section>" * 1500 + "<text:p>Deep</text:p>" + "</text:section>" * 1500
    assert text_of("text", deep) == "Deep"
    tables = "<table:table><table:table-row><table:table-cell>" * 300
    nested = tables + "</table:table-cell></table:table-row></table:table>" * 300
    assert read(make_open_document("text", f"<text:p>A</text:p>{nested}"), "a.odt").warnings


def test_each_table_of_a_sheet_that_empty_rows_part_has_the_names_of_its_columns() -> None:
    first, second = (["Room", "Fee"], ["Blue", "80"], ["Red", "90"]), (["Dog", "Tax"], ["Pug", "5"])
    empty = '<table:table-cell table:number-columns-repeated="9"/>'
    rows = ["".join(map(cell, row)) for row in first] + [empty] + ["".join(map(cell, row)) for row in second]
    document = read(make_open_document("spreadsheet", table(*rows, attributes='table:name="List"')), "a.ods")
    assert [(block.text, block.headings[1:]) for block in document.blocks if block.kind == "row"] == [
        *(("Blue | 80", ("Room, Fee",)), ("Red | 90", ("Room, Fee",)), ("Pug | 5", ("Dog, Tax",))),
    ]


def test_names_of_a_sheets_columns_may_stand_below_titles_and_lack_the_first() -> None:
    rows = [["Price list"], ["of May"], ["", "2025", "2026"], ["Gas", "1", "2"]]
    sheet = table(*("".join(map(cell, row)) for row in rows), attributes='table:name="List"')
    found = [
        (block.text, block.headings[1:]) for block in read(make_open_document("spreadsheet", sheet), "a.ods").blocks
    ]
    assert found[-2:] == [(", 2025, 2026", (", 2025, 2026",)), ("Gas | 1 | 2", (", 2025, 2026",))]
    assert [text for text, headings in found if not headings] == ["List", "Price list", "of May"]
