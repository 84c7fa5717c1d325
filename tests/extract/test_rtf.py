"""RTF files are read as a word processor shows them, in every code page."""

import pytest

from tests.extract.readings import read, shape

HEAD = (
    r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fnil\fcharset128 Mincho"
    r"{\*\falt ??};}{\f3\fcharset134 SimSun;}{\f4\cpg1250 Old;}}"
    r"{\colortbl;\red255\green255\blue255;\red0\green0\blue9;}"
    r"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\*\cs9 no;}{\s2 Heading 2;}}"
    r"{\info{\title My title}{\author A}}"
)


def text_of(body: str) -> str:
    return read(f"{HEAD}{body}}}".encode("latin-1"), "a.rtf").text


@pytest.mark.parametrize(
    ("body", "expected"),
    (
        (r"One\par Two\line three\tab four\par", "One\n\nTwo\nthree\tfour"),
        (r"It\rquote s \ldblquote so\rdblquote\emdash or 7\endash 9\~km co\-op e\_mail \{\}\\\par", None),
        (r"Gr\'fc\'dfe \u8364? \u-10179?\u-8704? \uc2\u26085\'93\'fa!\par", "Grüße € 😀 日!"),
        (r"\f1 \'cf\'f0\'e8\'e2\'e5\'f2 \f4 \'b3\'f3d\'9f\f0  \'e9\par", "Привет łódź é"),
        (r"\f2 \'8c\'9f\'8d\'f5\f0 , {\f3 \'b9\'a9\'d3\'a6} end\par", "検索, 供应 end"),
        (r"The fee is {\deleted ninety}{\revised eighty} euros.\par", "The fee is eighty euros."),
        ((r"See {\field{\*\fldinst HYPERLINK "
         r'"http://x"}{\fldrslt the page}}.{\pict\pngblip 8950}{\*\unknown no}{\*\bkmkstart b}\par'), "See the page."),
        (r"It grows.{\footnote\chftn  See paca.} Fast.\par", "It grows. Fast.\n\nNote: See paca."),
        (
            r"Two years{\*\atnid A}{\*\atnauthor Ada B}\chatn{\*\annotation{\*\atnref 1}\pard Three!}.\par",
            "Two years.\n\nComment by Ada B: Three!",
        ),
        (r"Text{\shp{\*\shpinst{\sp{\sn a}}{\shptxt Boxed\par}}{\shprslt{\*\do no}}} on\par", "Text on\n\nBoxed"),
        (r"{\header Zebra\par}{\headerl Zebra\par}{\footer KX\par}{\footerf 1\par}Body\par", "Zebra\n\nBody\n\nKX"),
        (r"10{\super -}{\super 6}, 2\super 10\nosupersub , m{\super 2}, H{\sub 2}O\par", "10^-6, 2^10, m2, H2O"),
        (r"{\upr{ab?}{\*\ud{ab\u322?}}}c\par", "abłc"),
        ("a\\bin5 {}{{{b\\par", "ab"),
    ),
)  # fmt: skip
def test_text_is_read_with_what_stands_beside_it(body: str, expected: str | None) -> None:
    assert text_of(body) == (expected or "It’s “so”—or 7–9\u00a0km coop e-mail {}\\")  # noqa: RUF001


def test_headings_items_and_the_title_are_read_with_their_places() -> None:
    body = (
        r"\pard\s1 Report\par\pard\s2 Costs\par\pard\plain Text\par"
        r"{\pntext 1.\tab}First\par{\listtext\bullet\tab}Second\par"
        r"\pard\outlinelevel0 Other\par\pard End\par"
    )
    document = read(f"{HEAD}{body}}}".encode(), "a.rtf")
    both = ("Report", "Costs")
    assert shape(document) == [
        *(("heading", "Report", both[:1]), ("heading", "Costs", both), ("paragraph", "Text", both)),
        *(("item", "1. First", both), ("item", "Second", both), ("heading", "Other", ("Other",))),
        ("paragraph", "End", ("Other",)),
    ]
    assert document.title == "My title"


def test_tables_are_read_by_rows_and_merged_cells_count_in_each() -> None:
    def row(*cells: str, merged: str = "") -> str:
        text = "".join(f"{cell}\\cell " for cell in cells)
        return f"\\trowd{merged}\\cellx1000\\cellx2000\\pard\\intbl {text}\\row\n"

    rows = row("Region", "City") + row("North", "Ulm", merged=r"\clvmgf") + row("", "Trier", merged=r"\clvmrg")
    rows += row("", r"a\par b{\footnote See}")
    assert text_of(rows + r"\pard After\par") == (
        "Region | City\nNorth | Ulm\nNorth | Trier\n| a b\n\nNote: See\n\nAfter"
    )
    assert text_of(r"\trowd\cellx1\intbl never closed\cell") == "never closed"


@pytest.mark.parametrize(
    ("body", "reason"),
    (
        (r"{\v secret}", "hidden"),
        (r"\v secret\v0 ", "hidden"),
        (r"{\cf1 secret}", "white text"),
        (r"{\fs1 secret}", "text of size 0"),
        (r"{\strike secret}", "struck out"),
        (r"\striked1 secret\striked0 ", "struck out"),
    ),
)
def test_text_that_is_not_shown_is_kept_apart(body: str, reason: str) -> None:
    document = read(f"{HEAD}Seen{body}{{\\cf1\\highlight2  too}}\\par}}".encode(), "a.rtf")
    assert document.text == "Seen too"
    assert [(each.text, each.reason) for each in document.hidden] == [("secret", reason)]


def test_words_of_pictures_and_shapes_are_read_once() -> None:
    words = r"{\sp{\sn wzName}{\sv Picture 1}}{\sp{\sn wzDescription}{\sv A lapwing}}"
    picture = rf"{{\pict{{\*\picprop{words}}}\pngblip 89504e47}}"
    copies = rf"{{\*\shppict{picture}}}{{\nonshppict{picture}}}"
    shape = r"{\shp{\*\shpinst{\sp{\sn gtextUNICODE}{\sv Whimbrel}}{\sp{\sn fFlipH}{\sv 0}}}}"
    document = read(rf"{{\rtf1 On a fence:{copies} or {shape}.\par}}".encode(), "a.rtf")
    assert document.text.split() == ["On", "a", "fence:", "A", "lapwing", "or", "Whimbrel", "."]
    assert document.parts == {"alt_texts": 2}


def test_deep_groups_are_read() -> None:
    assert read(b"{\\rtf1 " + b"{" * 50_000 + b"Deep" + b"}" * 50_000, "a.rtf").text == "Deep"


@pytest.mark.parametrize(
    "body",
    (
        r"\pard\cbpat2{\plain\cf1 seen}",
        r"\pard\shading10000\cfpat2 {\cf1 seen}",
        r"{\chshdng10000\chcfpat2\cf1 seen}",
        r"{\shp{\*\shpinst{\shptxt \pard\cf1 seen\par}}}",
        r"{\*\background{\shp{\*\shpinst{\sp{\sn fillColor}{\sv 0}}}}}\cf1 seen",
    ),
)
def test_white_text_is_seen_on_a_paragraph_shape_or_page_that_has_a_colour(body: str) -> None:
    colours = r"{\colortbl;\red255\green255\blue255;\red0\green0\blue0;}"
    document = read((r"{\rtf1\ansi" + colours + body + "}").encode(), "a.rtf")
    assert (document.text, document.hidden) == ("seen", ())
