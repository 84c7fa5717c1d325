"""HTML: every visible word of a file once and in its place."""

import pytest

from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats.html.html import add_markup
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.readings import exact, read, refused, shape

PARTS = (
    f"<h1>The harbour</h1><p>{samples.PROSE} See <a href='/x'>the map</a>.</p><h2>Its <i>rules</i></h2>"
    "<ul><li>First rule<ul><li>Exception</li></ul></li></ul>"
    "<table><tr><th>Name</th><th>Berth</th></tr><tr><td>Anna</td><td>7</td></tr></table>"
    "<pre><code>a = 1\n\n  b = 2</code></pre><p>Line<br>break</p>"
)


def blocks(markup: str) -> list[tuple[str, str]]:
    """Return the kinds and texts of an HTML fragment's blocks."""
    flow = FlowDocument()
    add_markup(flow, markup)
    return [(block.kind, block.text) for block in exact(flow.finish()).blocks]


def texts(markup: str) -> list[str]:
    return [text for _, text in blocks(markup)]


def test_file_is_read_whole_with_its_headings() -> None:
    document = read(samples.make_html(PARTS, title="Harbours &amp; ports", language="en-GB"), "a.html")
    one, two = ("The harbour",), ("The harbour", "Its rules")
    assert shape(document) == [
        ("paragraph", "Home Shop", ()),
        *(("heading", "The harbour", one), ("paragraph", f"{samples.PROSE} See the map.", one)),
        *(("heading", "Its rules", two), ("item", "First rule", two), ("item", "Exception", two)),
        *(("row", "Name | Berth", two), ("row", "Anna | 7", two), ("code", "a = 1\n\n  b = 2", two)),
        *(("paragraph", "Line\nbreak", two), ("paragraph", "All rights reserved", two)),
    ]
    assert (document.title, document.language) == ("Harbours & ports", "en-GB")


@pytest.mark.parametrize("begin", ("", "<!-- note -->", "<body>", "<div>", "<html><body><div>", "<!doctype html>"))
def test_loose_text_and_the_first_heading_are_read(begin: str) -> None:
    document = read(f"{begin}Loose<h1>Quay</h1>here<table><tr><td>a</table>end".encode(), "a.html")
    assert document.text.split("\n\n") == ["Loose", "Quay", "here", "a", "end"]
    assert read(f"{begin}<h1>Quay <s>6</s> 7<sup>2</sup></h1>a".encode(), "a.html").title == "Quay 7^2"


@pytest.mark.parametrize(
    ("markup", "expected"),
    (
        ("<p>Be<b>ta</b> <i>ca</i>n<wbr>not Ge&shy;samt</p>", ["Beta cannot Gesamt"]),
        ("<div>one<div>two</div>three</div>", ["one", "two", "three"]),
        ("<li><p>Pond</p><p>Marsh</p></li>", ["Pond", "Marsh"]),
        ("<dl><dt>Term<dd>First<dd><p>Second</p><p>More</p></dl>", ["Term", "First", "Second", "More"]),
        ("<center>a</center><address>b<br>c</address>", ["a", "b\nc"]),
        ("<fieldset><legend>Name</legend><label>First</label><input value=Ada></fieldset>", ["Name", "First Ada"]),
        ("<nav><a>Home</a><a>Shop</a></nav>", ["Home Shop"]),
        ("<p>The <my-word>box</my-word><my-word>two</my-word></p>", ["The box two"]),
        ("<p>As shown<sup><a href='#1'>12</a></sup>.</p>", ["As shown 12."]),
        ("<p>10 m<sup>2</sup></p>", ["10 m2"]),
        ("<p><span style='display:block'>one</span><span style='display:inline-block'>two</span></p>", ["one", "two"]),
        ("<style>.l{display:block}</style><p><span class=l>one</span><span class=l>two</span></p>", ["one", "two"]),
        ("<details><summary>More</summary>Inside</details>", ["More", "Inside"]),
        ("<figure><img alt='A pier'><figcaption>The pier</figcaption></figure>", ["A pier", "The pier"]),
        ("<blockquote>Said<footer>Ada</footer></blockquote><aside>Beside</aside>", ["Said", "Ada", "Beside"]),
        ("<p>a<noscript><p>never</p></noscript>b</p><template>x</template><iframe>y</iframe>", ["ab"]),
        ("<p>a</p><script>'<p>x</p>'</script><style>p{}</style>", ["a"]),
    ),
)
def test_words_are_neither_glued_nor_cut(markup: str, expected: list[str]) -> None:
    assert texts(markup) == expected


@pytest.mark.parametrize(
    ("cell", "text"),
    (
        ("<ul><li>Pond</li><li>Marsh</li></ul>", "Pond Marsh"),
        ("<p>Pond</p><p><b>Marsh</b></p>", "Pond Marsh"),
        ("Pond<br>Marsh", "Pond Marsh"),
        ("<div><div>Pond</div><div>Marsh</div></div>", "Pond Marsh"),
        ("<table><tr><td>Pond</td></tr><tr><td>Marsh</td></tr></table>", "Pond Marsh"),
        ("<dl><dt>Pond</dt><dd>Marsh</dd></dl>", "Pond Marsh"),
    ),
)
def test_blocks_in_a_cell_are_separate_words_of_its_row(cell: str, text: str) -> None:
    table = f"<table><caption>Birds</caption><tr><th>Bird<th>Places<tr><td>Teal<td>{cell}</table>"
    assert blocks(table) == [("paragraph", "Birds"), ("row", "Bird | Places"), ("row", f"Teal | {text}")]
    assert f"Teal | {text}" in read(samples.make_html(f"<h1>A</h1><p>{samples.PROSE}</p>{table}"), "a.html").text


@pytest.mark.parametrize(
    ("rows", "expected"),
    (
        ("<tr><th>a<th>b<tr><td><td>7", ["a | b", "| 7"]),
        ("<tr><th>a<th>b<th>c<tr><td rowspan=2>N<td>1<td>2<tr><td>3<td>4", ["a | b | c", "N | 1 | 2", "N | 3 | 4"]),
        ("<tr><td rowspan=0>N<td>1<tr><td>2<tr><td>3", ["N | 1", "N | 2", "N | 3"]),
        ("<tr><th colspan=2>a<th>b<tr><td>1<td>2<td>3", ["a |  | b", "1 | 2 | 3"]),
        ("<thead><tr><th>a<th>b</thead><tr><td>1<td>2<tr><th>a<th>b<tr><td>3<td>4", ["a | b", "1 | 2", "3 | 4"]),
        ("<tr><td>1 | 2<td>3", ["1 | 2 | 3"]),
        ("<tr><td colspan=x>1<td rowspan=-2>2", ["1 | 2"]),
    ),
)
def test_cells_stay_beneath_their_headings(rows: str, expected: list[str]) -> None:
    assert blocks(f"<table>{rows}</table>") == [("row", text) for text in expected]


def test_table_that_places_the_parts_of_a_page_is_read_part_by_part() -> None:
    page = f"<table><tr><td>Menu<td><h1>Quay</h1><p>{samples.PROSE}</p><ul><li>one<li>two</ul></table>"
    assert blocks(page) == [
        *(("paragraph", "Menu"), ("heading", "Quay"), ("paragraph", samples.PROSE), ("item", "one"), ("item", "two"))
    ]
    nested = "<table><tr><td><table><tr><td>Invoice<td>4711<tr><td>Total<td>7</table><tr><td><p>Bye</p></table>"
    assert texts(nested) == ["Invoice | 4711", "Total | 7", "Bye"]


@pytest.mark.parametrize(
    ("markup", "expected"),
    (
        ("<ol><li>a<li><p>b</p><p>c</p></ol>", ["1. a", "2. b", "c"]),
        ("<ol start=3 type=a><li>a<li value=27>b</ol>", ["c. a", "aa. b"]),
        ("<ol type=a reversed><li>a<li>b</ol>", ["b. a", "a. b"]),
        ("<ol type=I><li>a<ol reversed start=2><li>b<li>c</ol><li>d</ol>", ["I. a", "2. b", "1. c", "II. d"]),
        ("<ol style='list-style:none'><li>a</ol><nav><ol><li>b</ol></nav>", ["a", "b"]),
        ("<ol><li><h2>Clause</h2></ol>", ["1. Clause"]),
    ),
)
def test_items_have_the_numbers_that_the_reader_sees(markup: str, expected: list[str]) -> None:
    assert texts(markup) == expected


@pytest.mark.parametrize(
    ("heading", "expected"),
    (
        ("Umber<br>Quay", ["Umber Quay"]),
        ("<div>Umber</div> <span>Quay</span>", ["Umber Quay"]),
        ("Umber Quay<a class=headerlink href='#q'>¶</a>", ["Umber Quay"]),
        ("Umber Quay<button>Edit</button>", ["Umber Quay", "Edit"]),
        ("<button>Umber Quay</button>", ["Umber Quay"]),
        ("<img alt='Umber Quay'>", ["Umber Quay"]),
        ("Umber <svg><title>link</title></svg>Quay", ["Umber Quay", "link"]),
        ("<style>.a{color:red}</style>Umber Quay", ["Umber Quay"]),
    ),
)
def test_heading_has_its_own_words_alone(heading: str, expected: list[str]) -> None:
    found = blocks(f"<h2>{heading}</h2>")
    assert [text for _, text in found] == expected
    assert found[0][0] == "heading"


def test_heading_that_was_not_closed_costs_no_text() -> None:
    found = blocks(f"<h1><p>Quay</p><p>{samples.PROSE}</p><p>{samples.PROSE}</p>")
    assert found == [("heading", "Quay"), ("paragraph", samples.PROSE), ("paragraph", samples.PROSE)]


@pytest.mark.parametrize(
    ("markup", "text"),
    (
        ("The fee is <del>30</del> 45 euros.", "The fee is 45 euros."),
        ("2<sup>10</sup>, 10<sup>-6</sup>, <b>5</b><sup><i>2</i></sup>", "2^10, 10^-6, 5^2"),
        ("H<sub>2</sub>O, m<sup>2</sup>, 21<sup>st</sup>, 2<sup>n</sup>", "H2O, m2, 21st, 2n"),
        ("<math><msup> <mn>10</mn> <mrow><mo>-</mo><mn>6</mn></mrow> </msup></math>", "10^-6"),
        (
            "<ruby>東<rt>とう</rt></ruby><ruby>京<rp>(</rp><rt>きょう</rt><rp>)</rp></ruby>の天気",
            "東京の天気 (とうきょう)",
        ),
        (
            "<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>へ、<ruby>海<rt>うみ</rt></ruby>へ",
            "東京へ、海へ (とうきょう うみ)",
        ),
        ("<ruby>東<rt>とう</rt></ruby><br><p>x<ruby>海<p><rt>うみ</rt></ruby>", "東 (とう)"),
        ("<ruby><rb>東<rb>京<rtc><rt>とう<rt>きょう</rtc></ruby>へ", "東京へ (とうきょう)"),
    ),
)
def test_readings_follow_the_words_that_they_would_cut(markup: str, text: str) -> None:
    assert texts(f"<p>{markup}</p>")[0] == text


def test_equation_that_katex_writes_twice_is_read_once() -> None:
    maths = "<math><semantics><mi>q</mi><annotation>q</annotation></semantics></math>"
    shown = '<span class="katex-html" aria-hidden="true"><span>q</span></span>'
    assert texts(f'<p>so <span class="katex"><span class="katex-mathml">{maths}</span>{shown}</span>.</p>') == ["so q."]
    assert texts(f'<p>so <span class="katex">{shown}</span>.</p>') == ["so q."]


def test_forms_pictures_drawings_and_equations_are_read() -> None:
    form = "<input value=Ada><input type=hidden value=x><input type=checkbox checked> yes <textarea>a\nb</textarea>"
    chart = "<svg><title>Sales</title><text>Jan</text><text>Feb</text><defs><text>no</text></defs></svg>"
    maths = "<math><mi>E</mi><mo>=</mo><mfrac><mi>kTorque</mi><mn>4</mn></mfrac><annotation>E=k</annotation></math>"
    flow = FlowDocument()
    add_markup(flow, f"<p>{form}</p><select><option>open<option selected>shut</select><p>{chart}<p>{maths}")
    document = flow.finish()
    assert document.text.split("\n\n") == ["Ada ☑ yes a\nb", "shut", "open", "Sales Jan Feb", "E=kTorque/4"]
    assert document.parts == {"form_fields": 4, "alt_texts": 1, "equations": 1}


HIDDEN = (
    *("<p hidden>never</p>", "<p style='display:none'>never</p>", "<p style='visibility:hidden'>never</p>"),
    *("<p style='font-size:0'>never</p>", "<p style='opacity:0'>never</p>", "<p style='color:white'>never</p>"),
    *("<p style='position:absolute;left:-9999px'>never</p>", "<p style='text-indent:-9999px'>never</p>"),
    *("<p style='background:#000;color:#010101'>never</p>", "<td bgcolor=navy><font color=white>never</font>"[17:]),
    *("<p style='height:0;overflow:hidden'>never</p>", "<p style='color:transparent'>never</p>"),
    *("<div style='position:absolute;clip:rect(0,0,0,0)'><p>never</p></div>", "<font color='#ffffff'>never</font>"),
    *("<style>.x{display:none}</style><p class=x>never</p>", "<style>#x{font-size:0px}</style><p id=x>never</p>"),
    *("<del>never</del>", "<p><s><b>never</b></s></p>", "<strike><p>never</p></strike>"),
    *("<p style='text-decoration: line-through red'>never</p>", "<s style='text-decoration:none'>never</s>"),
    *("<style>.x{text-decoration-line:Line-Through}</style><p class=x>never</p>",),
    *("<style>p.x, .y { color: #fefefe }</style><p class='x'>never</p>", "<p style='transform:scale(0)'>never</p>"),
)


@pytest.mark.parametrize("markup", HIDDEN)
def test_what_is_not_seen_is_no_text_but_kept_apart(markup: str) -> None:
    document = read(f"<html><body><p>Seen.</p>{markup}<p>Also seen.</p>".encode(), "a.html")
    assert document.text == "Seen.\n\nAlso seen."
    assert [each.text for each in document.hidden] == ["never"]
    assert document.hidden_characters == len("never")


SEEN = (
    *("<p hidden=until-found>seen</p>", "<details><p>seen</p></details>", "<dialog>seen</dialog>"),
    *("<div role=tabpanel hidden>seen</div>", "<a href='#x'>t</a><div id=x style='display:none'>seen</div>"),
    *("<button aria-controls=x>t</button><div id=x hidden>seen</div>", "<button>t</button><p hidden>seen</p>"),
    *("<button onclick=\"show('x')\">t</button><p>a</p><div id=x hidden>seen</div>",),
    *("<style>.x{display:none}.x.active{display:block}</style><p class=x>seen</p>",),
    *("<style>.x{display:none}#c:checked ~ .x{display:block}</style><p class=x>seen</p>",),
    *("<style>@media print{.x{display:none}}</style><p class=x>seen</p>",),
    *("<style>.x{display:none}@media(min-width:9px){.x{display:block}}</style><p class=x>seen</p>",),
    *("<div style='font-size:0'><span style='font-size:13px'>seen</span></div>",),
    *("<div style='visibility:hidden'><span style='visibility:visible'>seen</span></div>",),
    *("<div style='background:#036'><p style='color:white'>seen</p></div>", "<p style='font-size:.8rem'>seen</p>"),
    *("<table><tr><td bgcolor=navy><font color=white>seen</font></table>", "<p style='left:-9999px'>seen</p>"),
    *("<div style='background:url(a.png)'><p style='color:white'>seen</p></div>", "<p aria-hidden=true>seen</p>"),
    *("<style>.hero p{background:navy}</style><div class=hero><p style='color:white'>seen</p></div>",),
    *("<link rel=stylesheet href=a.css><p style='color:white'>seen</p>", "<p style='color:white'><a href=x>seen</a>"),
    *("<style>.x{display:none}</style><p class=x style='display:block'>seen</p>",),
    *("<style>html{background:#000}</style><p style='color:white'>seen</p>",),
    *("<style>:root{background:#000}</style><p style='color:white'>seen</p>",),
    *("<style>.x{opacity:0;animation:fade 1s forwards}</style><p class=x>seen</p>",),
    *("<p style='opacity:0;transition:opacity 1s'>seen</p>",),
    *("<p style='color:white'><mark>seen</mark>", "<h1 style='color:white'><button>seen</button></h1>"),
    *("<p style='color:white;text-shadow:0 0 4px #000'>seen</p>",),
    *("<p style='color:transparent;-webkit-text-stroke:1px #000'>seen</p>",),
    *("<img src=a.jpg><div style='position:absolute;top:9px'><p style='color:white'>seen</p></div>",),
    *("<div style='color:white'><a style='background:#fff' href=x>a</a></div><p>seen</p>",),
    *("<table><tr><td style='max-width:0;overflow:hidden;text-overflow:ellipsis'>seen</table>",),
    *("<div style='height:0;padding-bottom:56%;overflow:hidden'><p>seen</p></div>",),
    *("<table background=a.png><tr><td><font color=white>seen</font></table>",),
    *("<p style='color:light-dark(#fff,#000)'>seen</p>", "<p style='color:var(--ink, #fff)'>seen</p>"),
)


@pytest.mark.parametrize("markup", SEEN)
def test_what_is_seen_or_opened_by_a_control_is_text(markup: str) -> None:
    document = read(f"<html><body>{markup}</body></html>".encode(), "a.html")
    assert "seen" in document.text
    assert document.hidden == ()


def test_link_in_the_colour_of_its_background_is_hidden_and_what_follows_is_text() -> None:
    markup = b"<div style='color:white'><a style='color:white' href=x>never</a></div><p>after</p>"
    assert (shown := read(markup, "a.html")).text == "after"
    assert [each.text for each in shown.hidden] == ["never"]


@pytest.mark.parametrize("display", ("flex", "inline-flex", "grid"))
def test_elements_that_a_box_arranges_stand_apart(display: str) -> None:
    assert read(f"<div style='display:{display}'><b>A</b><b>B</b></div>".encode(), "a.html").text == "A B"


def test_items_have_the_numbers_that_styles_give_them() -> None:
    markup = b"<style>.c{list-style-type:upper-roman}</style><ol class=c><li>x<li>y</ol>"
    markup += b"<ol type=1 style='list-style:lower-alpha inside'><li>z</ol>"
    assert read(markup, "a.html").text.split("\n") == ["I. x", "II. y", "a. z"]


def test_page_that_its_scripts_show_is_read() -> None:
    for page in (
        "<body style='opacity:0'><p>The quay.</p>",
        "<script>show()</script><div style='visibility:hidden'><h1>Quay</h1><p>The quay is long.</p></div><p>Menu</p>",
    ):
        assert "The quay" in read(f"<html>{page}".encode(), "a.html").text


@pytest.mark.parametrize(
    ("head", "codec"),
    (
        ('<html><meta charset="iso-8859-2"><body>', "iso-8859-2"),
        ('<html><meta http-equiv="Content-Type" content="text/html; charset=windows-1250"><body>', "cp1250"),
        ('<?xml version="1.0" encoding="iso-8859-2"?><html xmlns="http://www.w3.org/1999/xhtml"><body>', "iso-8859-2"),
        ("<html><body>", "utf-8-sig"),
        ("<html><meta charset=iso-8859-1><body>", "utf-8"),
        ("<html><meta charset=utf-8><body>", "utf-16"),
    ),
)
def test_file_is_read_in_its_declared_encoding(head: str, codec: str) -> None:
    document = read(f"{head}<p>Zażółć gęślą jaźń</p></body></html>".encode(codec), "a.html")
    assert (document.text, document.warnings) == ("Zażółć gęślą jaźń", ())


def test_zeros_that_browsers_ignore_cost_nothing() -> None:
    assert read(b"<html><body><p>The qu\0ay is long, and was built of grey stone.</p>", "a.html").text.startswith(
        "The quay"
    )


def test_xhtml_is_read_as_xml_understands_it() -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="fr"><head><title/><script src="a"/>'
        "</head><body><p><a id='x'/>One <i/>two</p><textarea/><p><![CDATA[a < b]]> c</p><br/><p>end</p></body></html>"
    )
    document = read(page.encode(), "a.xhtml")
    assert document.text.split("\n\n") == ["One two", "a < b c", "end"]
    assert document.language == "fr"


def test_deep_and_odd_markup_ends_with_its_text() -> None:
    for markup in (
        "<div>" * 5000 + "deep",
        "<table><tr><td>" * 1000 + "deep",
        "<b><p>" * 500 + "deep",
        "<noscript>" * 1000 + "</noscript>deep",
        "<style>" + "{" * 10_000 + "</style>deep",
        "<ol>" * 1000 + "<li>deep",
    ):
        assert texts(markup)[-1].endswith("deep"), markup[:20]


def test_words_for_programs_without_frames_are_not_read() -> None:
    assert texts("<frameset><frame src=a.html><noframes><body>No frames?</body></noframes></frameset>") == []


def test_evernotes_export_is_read_note_by_note() -> None:
    def note(title: str, body: str, *others: str) -> str:
        prologue = '<?xml version="1.0"?><!DOCTYPE en-note SYSTEM "http://xml.evernote.com/pub/enml2.dtd">'
        content = f"<content><![CDATA[{prologue}<en-note>{body}</en-note>]]></content>"
        return f"<note><title>{title}</title>{content}{''.join(others)}</note>"

    resource = "<resource-attributes><file-name>a.pdf</file-name></resource-attributes>"
    resource = f"<resource><data>iVBORw0K</data>{resource}</resource>"
    doctype = '<?xml version="1.0"?><!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">'
    notes = note(
        "Cake &amp; tea",
        '<h1>List</h1><div>250&nbsp;g</div><div><en-todo checked="true"/>eggs</div><div><en-todo/>milk</div>',
        "<tag>food</tag><tag>home</tag>",
        resource,
    ) + note("Safe", "<div>Door: 42</div><en-crypt>c2VjcmV0</en-crypt>")
    document = read(f"{doctype}<en-export>{notes}</en-export>".encode(), "a.enex")
    assert shape(document) == [
        ("heading", "Cake & tea", ("Cake & tea",)),
        ("paragraph", "Tags: food, home", ("Cake & tea",)),
        ("heading", "List", ("Cake & tea", "List")),
        *(("paragraph", words, ("Cake & tea", "List")) for words in ("250 g", "☑ eggs", "☐ milk")),
        ("paragraph", "Attachment: a.pdf", ("Cake & tea",)),
        *(("heading", "Safe", ("Safe",)), ("paragraph", "Door: 42", ("Safe",))),
    ]
    assert len(document.warnings) == 2
    refused(b"<en-export><note>", "a.enex", SourceErrorCode.DOCUMENT_UNREADABLE)
