"""Word files are read as their reader sees them: every part, each text once, in its place."""

import pytest

from tests.extract.office_files import (
    CHART,
    DIAGRAM,
    paragraph,
    part,
    relation,
    run,
    word,
    word_parts,
    zipped,
)
from tests.extract.readings import read


def texts(data: bytes, filename: str = "a.docx") -> list[str]:
    return [block.text for block in read(data, filename).blocks]


def test_headers_and_footers_of_all_sections_are_read_once_around_the_text() -> None:
    marks = (
        '<w:sectPr><w:headerReference w:type="{}" r:id="{}"/><w:footerReference w:type="default" r:id="rF"/>'
        "<w:titlePg/></w:sectPr>"
    )
    body = (
        paragraph("One.", marks.format("first", "r1"))
        + paragraph("Two.", marks.format("default", "r2"))
        + paragraph("Three.", marks.format("even", "r3"))
    )
    watermark = '<w:p><w:r><w:pict><v:shape alt="A seal"><v:textpath string="DRAFT"/></v:shape></w:pict></w:r></w:p>'
    parts = {
        "h1.xml": part("w:hdr", paragraph("Zebra GmbH")),
        "h2.xml": part("w:hdr", paragraph("Zebra GmbH")),
        "h3.xml": part("w:hdr", watermark),
        "f.xml": part("w:ftr", paragraph("Contract 7")),
    }
    related = "".join(relation(f"r{number}", "header", f"h{number}.xml") for number in (1, 2, 3))
    related += relation("rF", "footer", "f.xml") + relation("rS", "settings", "settings.xml")
    settings = {"settings.xml": part("w:settings", "<w:evenAndOddHeaders/>")}
    document = read(word(body, parts | settings, related), "a.docx")
    assert document.text.split("\n\n") == ["Zebra GmbH", "A seal", "DRAFT", "One.", "Two.", "Three.", "Contract 7"]
    assert document.parts == {"headers": 2, "footers": 1, "alt_texts": 1}
    off = read(word(body.replace("<w:titlePg/>", '<w:titlePg w:val="0"/>'), parts, related), "a.docx")
    assert off.text.split("\n\n") == ["Zebra GmbH", "One.", "Two.", "Three.", "Contract 7"]
    assert [(each.text, each.reason) for each in off.hidden] == [("Zebra GmbH", "header that is turned off")]


def test_notes_and_comments_follow_their_paragraph_or_row_with_their_authors() -> None:
    marks = '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:endnoteReference w:id="2"/></w:r>'
    comment = '<w:r><w:commentReference w:id="5"/></w:r>'
    parts = {
        "footnotes.xml": part(
            "w:footnotes",
            f'<w:footnote w:id="0" w:type="separator">{paragraph("line")}</w:footnote>'
            f'<w:footnote w:id="2">{paragraph("Below the page.")}</w:footnote>',
        ),
        "endnotes.xml": part("w:endnotes", f'<w:endnote w:id="2">{paragraph("At the end.")}</w:endnote>'),
        "comments.xml": part(
            "w:comments",
            f'<w:comment w:id="5" w:author="Ann">{paragraph("Really?")}</w:comment>'
            f'<w:comment w:id="6" w:author="Bo">{paragraph("On nothing.")}</w:comment>',
        ),
    }
    related = "".join(relation(kind, kind, f"{kind}.xml") for kind in ("footnotes", "endnotes", "comments"))
    table = f"<w:tbl><w:tr><w:tc>{paragraph('a', inside=comment)}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"
    document = read(word(paragraph("The fee is due.", inside=marks) + table, parts, related), "a.docx")
    assert [block.text for block in document.blocks] == [
        *("The fee is due.", "Footnote: Below the page.", "Endnote: At the end."),
        *("a | b", "Comment by Ann: Really?", "Comment by Bo: On nothing."),
    ]
    assert document.parts == {"notes": 2, "comments": 2}


LEVEL = '<w:lvl w:ilvl="{}"><w:start w:val="{}"/><w:numFmt w:val="{}"/>{}<w:lvlText w:val="{}"/></w:lvl>'


def numbered(levels: str, items: list[tuple[int, int, str]], lists: str = "") -> list[str]:
    """The texts of numbered paragraphs: number of the list, level, text."""
    numbering = part(
        "w:numbering",
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        f'<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>{lists}',
    )
    body = "".join(
        paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')
        for number, level, text in items
    )
    return texts(word(body, {"numbering.xml": numbering}, relation("n", "numbering", "numbering.xml")))


def test_clauses_are_numbered_as_word_counts_them() -> None:
    three = "".join(
        LEVEL.format(level, 1, "decimal", "", text) for level, text in enumerate(("%1.", "%1.%2", "%1.%2.%3"))
    )
    items = [(1, 0, "A"), (1, 1, "B"), (1, 2, "C"), (1, 1, "D"), (1, 0, "E"), (1, 1, "F")]
    assert numbered(three, items) == ["1. A", "1.1 B", "1.1.1 C", "1.2 D", "2. E", "2.1 F"]


@pytest.mark.parametrize(
    ("spelling", "start", "text", "label"),
    (
        ("upperRoman", 4, "Article %1", "Article IV"),
        ("lowerLetter", 27, "(%1)", "(aa)"),
        ("ordinal", 22, "%1", "22nd"),
        ("cardinalText", 21, "%1", "Twenty-one"),
        ("ordinalText", 12, "%1", "Twelfth"),
        ("decimalZero", 7, "%1.", "07."),
        ("japaneseCounting", 12, "第%1条", "第十二条"),
        ("decimalEnclosedCircle", 3, "%1", "③"),
        ("russianLower", 2, "%1)", "\u0431)"),
        ("none", 1, "Note:", "Note:"),
    ),
)
def test_number_of_a_clause_is_spelled_as_the_list_says(spelling: str, start: int, text: str, label: str) -> None:
    assert numbered(LEVEL.format(0, start, spelling, "", text), [(1, 0, "x")]) == [f"{label} x"]


def test_lists_restart_and_bullets_have_no_number() -> None:
    levels = LEVEL.format(0, 1, "decimal", "", "%1.") + LEVEL.format(1, 1, "bullet", "", "•")
    again = (
        '<w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/>'
        "</w:lvlOverride></w:num>"
    )
    items = [(1, 0, "A"), (1, 1, "B"), (1, 0, "C"), (2, 0, "D"), (2, 0, "E"), (0, 0, "F")]
    assert numbered(levels, items, again) == ["1. A", "B", "2. C", "9. D", "10. E", "F"]


def test_style_gives_the_number_of_a_heading() -> None:
    styles = part(
        "w:styles",
        (
            '<w:style w:type="paragraph" w:styleId="H1">'
            '<w:name w:val="heading 1"/>'
            '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr>'
            '</w:pPr></w:style><w:style w:type="paragraph" w:styleId="Own">'
            '<w:name w:val="Own"/><w:basedOn w:val="H1"/></w:style>'
        ),
    )
    numbering = part(
        "w:numbering",
        f'<w:abstractNum w:abstractNumId="0">{LEVEL.format(0, 1, "decimal", "", "§ %1")}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>',
    )
    body = paragraph("Scope", '<w:pStyle w:val="H1"/>') + paragraph("Terms", '<w:pStyle w:val="Own"/>')
    data = word(body, {"styles.xml": styles, "numbering.xml": numbering}, relation("n", "numbering", "numbering.xml"))
    assert [(block.kind, block.text) for block in read(data, "a.docx").blocks] == [
        ("heading", "§ 1 Scope"),
        ("heading", "§ 2 Terms"),
    ]


def test_moved_text_is_read_once_and_deleted_text_never() -> None:
    moved = '<w:{0} w:id="1">' + run("the red folder") + "</w:{0}>"
    deleted = '<w:del w:id="2"><w:r><w:delText>ninety</w:delText></w:r></w:del>'
    row = "<w:tr>{}<w:tc>" + paragraph("{}") + "</w:tc></w:tr>"
    table = row.format('<w:trPr><w:del w:id="3"/></w:trPr>', "gone") + row.format("", "kept")
    split = '<w:rPr><w:del w:id="4"/></w:rPr>'
    body = (
        paragraph("Bring ", inside=moved.format("moveTo"))
        + paragraph("Lunch. ", inside=moved.format("moveFrom"))
        + paragraph("The fee is ", inside=deleted + '<w:ins w:id="5">' + run("eighty") + "</w:ins>")
        + f"<w:tbl>{table}</w:tbl>"
        + paragraph("One para", split)
        + paragraph("graph.")
    )
    assert texts(word(body)) == ["Bring the red folder", "Lunch.", "The fee is eighty", "kept", "One paragraph."]


def test_text_boxes_alternatives_and_old_shapes_are_read_once() -> None:
    box = "<w:txbxContent>" + paragraph("Box says ostrich") + "</w:txbxContent>"
    inner = (
        f"<wp:anchor><a:graphic><a:graphicData><wps:wsp><wps:txbx>{box}"
        f"</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor>"
    )
    both = (
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>{inner}</w:drawing></mc:Choice>'
        f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    unknown = both.replace('Requires="wps"', 'Requires="zz"').replace("ostrich", "heron")
    assert texts(word(paragraph("Before.", inside=both) + paragraph(inside=unknown))) == [
        *("Before.", "Box says ostrich", "Box says heron"),
    ]


def test_charts_diagrams_and_descriptions_are_read_where_they_stand() -> None:
    drawing = "<w:r><w:drawing><wp:inline>{}</wp:inline></w:drawing></w:r>"
    body = (
        paragraph("Sales:", inside=drawing.format('<c:chart r:id="rC"/>'))
        + paragraph(inside=drawing.format('<dgm:relIds r:dm="rD"/>'))
        + paragraph(
            "Map:", inside=drawing.format('<wp:docPr id="1" name="P" title="Basin" descr="A map of the basin"/>')
        )
        + paragraph(inside=drawing.format('<wp:docPr id="2" name="P" hidden="1" descr="Nobody sees this"/>'))
    )
    related = relation("rC", "chart", "charts/c.xml") + relation("rD", "diagramData", "diagrams/d.xml")
    document = read(word(body, {"charts/c.xml": CHART, "diagrams/d.xml": DIAGRAM}, related), "a.docx")
    assert [block.text for block in document.blocks] == [
        *("Sales:", "Turnover by branch", "| Share", "Ulm | 25%", "Celle | 50%", "First step", "Second step"),
        *("Map:", "Basin: A map of the basin"),
    ]
    assert document.parts == {"charts": 1, "diagrams": 1, "alt_texts": 1}


def test_equations_are_a_line_of_their_characters() -> None:
    one = "<m:r><m:t>{}</m:t></m:r>"
    fraction = f"<m:f><m:num>{one.format('a+b')}</m:num><m:den>{one.format('2')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{one.format('x')}</m:e><m:sup>{one.format('2')}</m:sup></m:sSup>"
    index = f"<m:sSub><m:e>{one.format('v')}</m:e><m:sub>{one.format('max')}</m:sub></m:sSub>"
    root = f"<m:rad><m:deg/><m:e>{one.format('y+1')}</m:e></m:rad>"
    body = paragraph("So ", inside=f"<m:oMath>{fraction}{one.format('=')}{power}</m:oMath>" + run(" holds."))
    body += f"<m:oMathPara><m:oMath>{index}{one.format('=')}{root}</m:oMath></m:oMathPara>"
    assert texts(word(body)) == ["So (a+b)/2=x² holds.", "v_max=√(y+1)"]


def field(instruction: str, result: str | None, begin: str = "") -> str:
    mark = '<w:r><w:fldChar w:fldCharType="{}">{}</w:fldChar></w:r>'
    shown = "" if result is None else mark.format("separate", "") + run(result)
    code = f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
    return mark.format("begin", begin) + code + shown + mark.format("end", "")


def test_fields_show_their_results_and_forms_their_state() -> None:
    checked = '<w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData>'
    chosen = (
        '<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/>'
        '<w:listEntry w:val="blue"/></w:ddList></w:ffData>'
    )
    symbol = '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r><w:r><w:sym w:font="Symbol" w:char="F061"/></w:r>'
    control = "<w:sdt><w:sdtPr><w:dropDownList/></w:sdtPr><w:sdtContent>" + run("Picked") + "</w:sdtContent></w:sdt>"
    body = (
        paragraph("On ", inside=field(" DATE ", "3 May") + field(" XE hidden ", None))
        + paragraph(inside=field("FORMCHECKBOX", None, checked) + field("FORMDROPDOWN", None, chosen))
        + paragraph(inside=field(" MACROBUTTON Go [Click here] ", None))
        + paragraph(inside=symbol + control)
    )
    assert texts(word(body)) == ["On 3 May", "☒blue", "[Click here]", "☑\u03b1Picked"]
    endless = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    assert texts(word(paragraph(inside=endless) + paragraph("Still read."))) == ["Still read."]


def test_readings_do_not_cut_a_word_and_a_drop_cap_belongs_to_it() -> None:
    ruby = "".join(
        f"<w:r><w:ruby><w:rt>{run(reading)}</w:rt><w:rubyBase>{run(base)}</w:rubyBase></w:ruby></w:r>"
        for base, reading in (("東", "とう"), ("京", "きょう"))
    )
    body = paragraph(inside=ruby + run("の天気"))
    body += paragraph("O", '<w:framePr w:dropCap="drop"/>') + paragraph("nce upon a time")
    assert texts(word(body)) == ["東京の天気 (とうきょう)", "Once upon a time"]


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def test_table_cells_that_span_stand_in_their_columns() -> None:
    start, on, wide = '<w:vMerge w:val="restart"/>', "<w:vMerge/>", '<w:gridSpan w:val="2"/>'
    rows = (
        cell("Region") + cell("City and quota", wide),
        cell("North", start) + cell("Ulm") + cell("41"),
        cell("", on) + cell("Celle") + cell("93"),
        '<w:trPr><w:gridBefore w:val="1"/></w:trPr>' + cell("Trier") + cell("7"),
        f"<w:sdt><w:sdtContent>{cell('South')}</w:sdtContent></w:sdt>" + cell("Wide", wide),
    )
    table = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    assert texts(word(f"<w:tbl>{table}</w:tbl>")) == [
        *("Region | City and quota", "North | Ulm | 41", "North | Celle | 93", "| Trier | 7", "South | Wide"),
    ]


def test_nested_table_follows_its_row_and_a_frame_of_one_cell_is_no_row() -> None:
    inner = f"<w:tbl><w:tr>{cell('x')}{cell('y')}</w:tr></w:tbl>"
    outer = f"<w:tbl><w:tr><w:tc>{paragraph('Left')}{inner}</w:tc>{cell('Right')}</w:tr></w:tbl>"
    frame = f"<w:tbl><w:tr><w:tc>{paragraph('First.')}{paragraph('Second.')}</w:tc></w:tr></w:tbl>"
    document = read(word(outer + frame), "a.docx")
    found = [(block.kind, block.text) for block in document.blocks]
    assert found == [("row", "Left | Right"), ("row", "x | y"), ("paragraph", "First."), ("paragraph", "Second.")]


WHITE, SHADED = '<w:color w:val="FFFFFF"/>', '<w:shd w:val="clear" w:fill="000080"/>'


def test_what_cannot_be_seen_is_kept_apart_and_white_text_on_a_colour_is_seen() -> None:
    styles = part(
        "w:styles",
        '<w:style w:type="character" w:styleId="Gone"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:type="character" w:styleId="Back"><w:basedOn w:val="Gone"/>'
        '<w:rPr><w:vanish w:val="0"/></w:rPr></w:style>',
    )
    body = paragraph(
        "Seen. ",
        inside=run("hidden ", "<w:vanish/>")
        + run("styled ", '<w:rStyle w:val="Gone"/>')
        + run("shown ", '<w:rStyle w:val="Back"/>')
        + run("pale ", WHITE)
        + run("tiny ", '<w:sz w:val="1"/>')
        + run("banner", WHITE + SHADED),
    )
    body += (
        f"<w:tbl><w:tr><w:tc><w:tcPr>{SHADED}</w:tcPr>{paragraph(inside=run('header', WHITE))}</w:tc></w:tr></w:tbl>"
    )
    body += paragraph(inside=run("bar", WHITE), properties=SHADED)
    document = read(word(body, {"styles.xml": styles}), "a.docx")
    assert [block.text for block in document.blocks] == ["Seen. shown banner", "header", "bar"]
    assert [(each.text, each.reason) for each in document.hidden] == [
        *(("hidden", "hidden text"), ("styled", "hidden text"), ("pale", "white text"), ("tiny", "size 0")),
    ]


def test_struck_words_are_kept_apart_and_exponents_stay_apart_from_their_numbers() -> None:
    look = '<w:style w:type="character" w:styleId="{}"><w:rPr>{}</w:rPr></w:style>'
    styles = part(
        "w:styles", look.format("Out", "<w:strike/>") + look.format("Up", '<w:vertAlign w:val="superscript"/>')
    )
    up = '<w:vertAlign w:val="superscript"/>'
    inside = run("30 ", "<w:strike/>") + run("40 ", "<w:dstrike/>") + run("41 ", '<w:rStyle w:val="Out"/>')
    inside += (
        run("45", '<w:rStyle w:val="Out"/><w:strike w:val="0"/>') + run(" euros, 10") + run("-", up) + run("6", up)
    )
    inside += run(", 2") + run("10", '<w:rStyle w:val="Up"/>') + run(", m") + run("2", up) + run(", 1") + run("st", up)
    inside += run(", H") + run("2", '<w:vertAlign w:val="subscript"/>') + run("O")
    document = read(word(paragraph("The fee is ", inside=inside), {"styles.xml": styles}), "a.docx")
    assert document.text == "The fee is 45 euros, 10^-6, 2^10, m2, 1st, H2O"
    assert [(each.text, each.reason) for each in document.hidden] == [(fee, "struck out") for fee in ("30", "40", "41")]


TABLE_ON_BLACK = (
    '<w:tbl><w:tblPr><w:shd w:val="clear" w:fill="000000"/></w:tblPr><w:tr><w:tc>'
    f"{paragraph(inside=run('seen', WHITE))}</w:tc></w:tr></w:tbl>"
)


@pytest.mark.parametrize(
    ("before", "body"),
    (
        ('<w:background w:color="1F1F1F"/>', paragraph(inside=run("seen", WHITE))),
        ("", paragraph(inside=run("seen", WHITE), properties='<w:shd w:val="clear" w:themeFill="accent1"/>')),
        ("", paragraph(inside=f'<w:r><w:drawing><wp:anchor behindDoc="1"/></w:drawing></w:r>{run("seen", WHITE)}')),
        ("", paragraph(inside=f'<w:r><w:pict><v:rect style="z-index:-9"/></w:pict></w:r>{run("seen", WHITE)}')),
        ("", TABLE_ON_BLACK),
    ),
)
def test_white_text_is_seen_on_a_page_table_or_shape_that_has_a_colour(before: str, body: str) -> None:
    members = word_parts(body)
    members["word/document.xml"] = (
        members["word/document.xml"]
        .replace(b"<w:body>", before.encode() + b"<w:body>")
        .replace(b"<w:document ", b'<w:document xmlns:wp="urn:wp" ', 1)
    )
    document = read(zipped(members), "a.docx")
    assert (document.text, document.hidden) == ("seen", ())


def test_imported_parts_are_read_by_the_reader_of_their_format() -> None:
    page = b"<html><body><p>Imported heron.</p></body></html>"
    inner = word(
        paragraph("Inner bittern.") + '<w:altChunk r:id="x"/>', {"p.html": page}, relation("x", "aFChunk", "p.html")
    )
    body = paragraph("Main.") + '<w:altChunk r:id="p"/><w:altChunk r:id="d"/><w:altChunk r:id="lost"/>'
    parts = {"p.html": page, "inner.docx": inner}
    related = relation("p", "aFChunk", "p.html") + relation("d", "aFChunk", "inner.docx")
    document = read(word(body, parts, related), "a.docx")
    assert [block.text for block in document.blocks] == ["Main.", "Imported heron.", "Inner bittern."]
    assert document.warnings == ("The imported part p.html was not read, because it is in an imported part.",)


def test_damaged_part_costs_itself_and_gives_a_warning() -> None:
    body = paragraph("Read.") + '<w:sectPr><w:headerReference r:id="h"/></w:sectPr>'
    parts = {"h.xml": part("w:hdr", paragraph("Half")).removesuffix("</w:hdr>"), "styles.xml": "<broken"}
    document = read(
        word(body, parts, relation("h", "header", "h.xml") + relation("f", "footnotes", "no.xml")), "a.docx"
    )
    assert [block.text for block in document.blocks] == ["Half", "Read."]
    assert [warning.partition(" of the file")[0] for warning in document.warnings] == [
        *("The part word/styles.xml", "The part word/no.xml", "The part word/h.xml"),
    ]


def test_styles_that_are_based_on_each_other_end() -> None:
    styles = "".join(
        f'<w:style w:type="table" w:styleId="{one}"><w:name w:val="{one}"/><w:basedOn w:val="{other}"/></w:style>'
        for one, other in (("A", "B"), ("B", "A"))
    )
    table = f'<w:tbl><w:tblPr><w:tblStyle w:val="A"/></w:tblPr><w:tr>{cell("x")}{cell("y")}</w:tr></w:tbl>'
    data = word(table + paragraph("p", '<w:pStyle w:val="B"/>'), {"styles.xml": part("w:styles", styles)})
    assert texts(data) == ["x | y", "p"]
