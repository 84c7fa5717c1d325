"""Slides are read as their reader sees them: shapes in their order, notes, comments, charts, and nothing twice."""

from tests.extract.office_files import (
    CHART,
    DIAGRAM,
    NAMESPACES,
    deck,
    deck_parts,
    part,
    place,
    relation,
    relations,
    shape,
    slide,
    zipped,
)
from tests.extract.readings import read


def texts(data: bytes, filename: str = "a.pptx") -> list[str]:
    return [block.text for block in read(data, filename).blocks]


def test_title_comes_first_and_groups_and_shapes_without_a_place_are_read() -> None:
    group = (
        f"<p:grpSp><p:nvGrpSpPr><p:cNvPr id='2' name='G' descr='A fleet'/>"
        f"</p:nvGrpSpPr><p:grpSp>{shape('Nested')}</p:grpSp></p:grpSp>"
    )
    either = (
        f'<mc:AlternateContent><mc:Choice Requires="a14">{shape("New")}</mc:Choice>'
        f"<mc:Fallback>{shape('Old')}</mc:Fallback></mc:AlternateContent>"
    )
    document = read(deck([slide(shape("Below") + group + either + shape("Harbour", kind="ctrTitle"))]), "a.pptx")
    assert [(block.text, block.headings) for block in document.blocks] == [
        (text, ("Harbour",)) for text in ("Harbour", "Below", "A fleet", "Nested", "New")
    ]
    assert document.title == "Harbour"


def test_title_that_is_a_picture_costs_nothing() -> None:
    picture = (
        '<p:pic><p:nvPicPr><p:cNvPr id="3" name="P" descr="A gadwall"/>'
        '<p:nvPr><p:ph type="title"/></p:nvPr></p:nvPicPr></p:pic>'
    )
    assert texts(deck([slide(picture + shape("The count is done."))])) == ["A gadwall", "The count is done."]


def test_table_cells_that_span_stand_in_their_columns() -> None:
    def cell(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = (
        cell("Fleet", 'gridSpan="2"') + cell("", 'hMerge="1"') + cell("Berth"),
        cell("North", 'rowSpan="2"') + cell("Anna") + cell("7"),
        cell("", 'vMerge="1"') + cell("Bob") + cell(""),
    )
    table = "".join(f"<a:tr>{row}</a:tr>" for row in rows)
    frame = (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{table}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )
    assert texts(deck([slide(frame)])) == ["Fleet |  | Berth", "North | Anna | 7", "North | Bob"]


def test_charts_diagrams_notes_and_comments_of_both_kinds_are_read() -> None:
    graphic = "<p:graphicFrame><a:graphic><a:graphicData>{}</a:graphicData></a:graphic></p:graphicFrame>"
    own = relations(
        relation("rC", "chart", "../charts/c.xml"),
        relation("rD", "diagramData", "../diagrams/d.xml"),
        relation("rN", "notesSlide", "../notesSlides/n.xml"),
        relation("rO", "comments", "../comments/old.xml"),
        relation("rW", "comments", "../comments/new.xml"),
    )
    body = "<a:p><a:r><a:t>{}</a:t></a:r></a:p>"
    parts = {
        "slides/_rels/slide0.xml.rels": own,
        "charts/c.xml": CHART,
        "diagrams/d.xml": DIAGRAM,
        "notesSlides/n.xml": part(
            "p:notes",
            f"<p:cSld><p:spTree>{shape('5', kind='sldNum')}{shape('Say May.', kind='body')}</p:spTree></p:cSld>",
        ),
        "commentAuthors.xml": part("p:cmAuthorLst", '<p:cmAuthor id="1" name="Ann"/>'),
        "authors.xml": '<x:authorLst xmlns:x="urn:x"><x:author id="{2}" name="Bo"/></x:authorLst>',
        "comments/old.xml": part("p:cmLst", '<p:cm authorId="1"><p:text>Old remark</p:text></p:cm>'),
        "comments/new.xml": (
            f'<x:cmLst xmlns:x="urn:x" {NAMESPACES}>'
            f'<x:cm authorId="{{2}}">'
            f'<x:replyLst><x:reply authorId="{{2}}"><x:txBody>'
            f"{body.format('An answer')}</x:txBody></x:reply></x:replyLst>"
            f"<x:txBody>{body.format('New remark')}</x:txBody></x:cm></x:cmLst>"
        ),
    }
    shapes = graphic.format('<c:chart r:id="rC"/>') + graphic.format('<dgm:relIds r:dm="rD"/>')
    authors = relation("rA", "commentAuthors", "commentAuthors.xml") + relation("rB", "authors", "authors.xml")
    document = read(deck([slide(shapes)], parts, authors), "a.pptx")
    assert [block.text for block in document.blocks] == [
        *("Turnover by branch", "| Share", "Ulm | 25%", "Celle | 50%", "First step", "Second step", "Say May."),
        *("Comment by Ann: Old remark", "Comment by Bo: New remark", "Comment by Bo: An answer", "5"),
    ]
    assert document.parts == {"charts": 1, "diagrams": 1, "notes": 1, "comments": 3}


def test_footers_and_backdrops_are_read_once_in_a_deck_and_prompts_never() -> None:
    layout = part(
        "p:sldLayout",
        f"<p:cSld><p:spTree>{shape('Zebra GmbH')}{shape('Click to add', kind='body')}</p:spTree></p:cSld>",
    )
    master = part("p:sldMaster", f"<p:cSld><p:spTree>{shape('Confidential')}</p:spTree></p:cSld>")
    related = relations(relation("rL", "slideLayout", "../slideLayouts/l.xml"))
    parts = {
        **{f"slides/_rels/slide{number}.xml.rels": related for number in (0, 1)},
        "slideLayouts/l.xml": layout,
        "slideLayouts/_rels/l.xml.rels": relations(relation("rM", "slideMaster", "../slideMasters/m.xml")),
        "slideMasters/m.xml": master,
    }
    footer = shape("Spring meeting", kind="ftr")
    slides = [slide(shape(text) + footer + shape(number, kind="sldNum")) for text, number in (("One", "1"), ("", "2"))]
    document = read(deck(slides, parts), "a.pptx")
    assert [(block.text, block.page) for block in document.blocks] == [
        *(("One", 1), ("Spring meeting", 1), ("Zebra GmbH", 1), ("Confidential", 1), ("1", 1)),
    ]
    assert (document.pages, document.pages_without_text) == (2, (2,))


def test_numbered_paragraphs_show_their_numbers_and_equations_their_characters() -> None:
    def line(text: str, properties: str = "", level: int = 0) -> str:
        return f'<a:p><a:pPr lvl="{level}">{properties}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'

    letters, digits = '<a:buAutoNum type="alphaLcParenR"/>', '<a:buAutoNum type="arabicPeriod" startAt="3"/>'
    equation = (
        '<a:p><mc:AlternateContent><mc:Choice Requires="a14"><a14:m>'
        "<m:oMath><m:sSup><m:e><m:r><m:t>E</m:t></m:r></m:e><m:sup><m:r>"
        "<m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath></a14:m></mc:Choice><mc:Fallback/></mc:AlternateContent></a:p>"
    )
    lines = line("A", digits) + line("B", letters, 1) + line("C", letters, 1) + line("D", digits) + line("E") + equation
    body = shape("x").replace(shape("x").partition("<a:p>")[2].partition("</p:txBody>")[0], lines.partition("<a:p>")[2])
    assert texts(deck([slide(body)])) == ["3. A", "a) B", "b) C", "4. D", "E", "E²"]


def test_struck_words_are_kept_apart_and_exponents_stay_apart_from_their_numbers() -> None:
    def run(text: str, look: str = "") -> str:
        return f"<a:r><a:rPr {look}/><a:t>{text}</a:t></a:r>"

    runs = run("The fee is ") + run("30 ", 'strike="sngStrike"') + run("40 ", 'strike="dblStrike"')
    runs += run("45", 'strike="noStrike"') + run(" euros, 2") + run("10", 'baseline="30000"') + run(", H")
    runs += run("2", 'baseline="-25000"') + run("O, m") + run("2", 'baseline="30000"')
    body = shape("x").replace("<a:r><a:rPr></a:rPr><a:t>x</a:t></a:r>", runs)
    document = read(deck([slide(body)]), "a.pptx")
    assert document.text == "The fee is 45 euros, 2^10, H2O, m2"
    assert [(each.text, each.reason, each.page) for each in document.hidden] == [("30 40", "struck out", 1)]


def test_what_cannot_be_seen_is_kept_apart_and_hidden_slides_are_read() -> None:
    white = '<a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill>'
    off = shape("Off", place(1000, 0)) + shape("Edge", place(950, 0)) + shape("Above", place(0, -200))
    moved = (
        "<p:grpSp><p:grpSpPr><a:xfrm><a:off x='0' y='0'/><a:ext cx='100' cy='100'/>"
        "<a:chOff x='5000' y='5000'/><a:chExt cx='100' cy='100'/>"
        f"</a:xfrm></p:grpSpPr>{shape('Inside', place(5000, 5000, 50, 50))}</p:grpSp>"
    )
    switched = shape("Switched").replace('name="S"', 'name="S" hidden="1"')
    plain = shape("Pale", properties=white) + shape("Text")
    tiny = shape("Tiny").replace("<a:rPr>", '<a:rPr sz="100">')
    dark = (
        '<p:sp><p:nvSpPr><p:cNvPr id="9" name="D"/></p:nvSpPr><p:spPr>'
        '<a:solidFill><a:srgbClr val="000080"/></a:solidFill></p:spPr></p:sp>'
    )
    document = read(deck([slide(off + moved + switched + tiny + plain, 'show="0"'), slide(dark + plain)]), "a.pptx")
    assert [(block.text, block.page) for block in document.blocks] == [
        *(("Edge", 1), ("Inside", 1), ("Text", 1), ("Pale", 2), ("Text", 2)),
    ]
    assert [(each.text, each.reason, each.page) for each in document.hidden] == [
        *(("Off", "off the slide", 1), ("Above", "off the slide", 1), ("Switched", "hidden shape", 1)),
        *(("Tiny", "size 0", 1), ("Pale", "white text", 1)),
    ]
    assert document.parts == {"hidden_slides": 1}


def test_lost_slide_costs_itself_and_variants_are_read() -> None:
    parts = deck_parts([slide(shape("One")), slide(shape("Two"))])
    del parts["ppt/slides/slide0.xml"]
    document = read(zipped(parts), "a.pptx")
    assert ([block.text for block in document.blocks], document.pages_without_text) == (["Two"], (1,))
    assert document.warnings[-1] == "Slide 1 can't be read."
    usual = b"vnd.openxmlformats-officedocument.presentationml.presentation.main"
    for kind in (
        "vnd.openxmlformats-officedocument.presentationml.slideshow",
        "vnd.openxmlformats-officedocument.presentationml.template",
        *(f"vnd.ms-powerpoint.{name}.macroEnabled" for name in ("presentation", "slideshow", "template")),
    ):
        other = {name: content.replace(usual, f"{kind}.main".encode()) for name, content in parts.items()}
        assert texts(zipped(other), "without-extension") == ["Two"], kind
