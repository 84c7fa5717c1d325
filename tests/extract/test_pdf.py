"""PDFs are read as their pages show them: forms, notes, columns, broken words, and what nobody sees kept apart."""

import pytest

from tests.extract.pdfs import PICTURE, field, lines, make_page, note
from tests.extract.readings import read
from tests.samples import make_pdf

LEFT = ("The committee reviewed the annual", "report on the reed bunting and", "decided to keep the colony as")
RIGHT = ("approved the budget for the", "coming fiscal year after a long", "debate about the reserve fund.")


def text_of(data: bytes) -> str:
    return read(data, "a.pdf").text


def in_rows(*columns: tuple[str, ...], across: int = 270) -> str:
    """Columns of text as a program draws them that writes line by line."""
    rows = enumerate(zip(*columns, strict=True))
    return "".join(
        lines(text, x=60 + across * at, y=720 - 16 * row) for row, texts in rows for at, text in enumerate(texts)
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    (
        (
            [field("Tx", "/V (Quellmalz)"), field("Tx", "/V (PX-5521)", 700)],
            "Surname: Quellmalz\nPolicy number: PX-5521",
        ),
        (
            [field("Ch", "/Ff 131072 /V (de) /Opt [[(de) (Germany)] [(fr) (France)]]")],
            "Surname: Germany\nPolicy number:",
        ),
        ([field("Ch", "/Ff 131072 /V (Ulm) /Opt [(Ulm) (Celle)]", 700)], "Surname:\nPolicy number: Ulm"),
        ([field("Btn", "/V /Yes /AS /Yes")], "Surname:\nPolicy number:"),
        ([field("Tx", "/V <FEFF00D600730074>")], "Surname: Öst\nPolicy number:"),
        (
            [field("Tx", "/V (First line\\nsecond line) /Ff 4096", 640, 50)],
            "Surname:\nPolicy number:\nFirst line\nsecond line",
        ),
        ([field("Tx", "/V (12345) /MaxLen 10 /Ff 16777216")], "Surname: 12345\nPolicy number:"),
    ),
)
def test_values_of_a_form_stand_behind_their_labels(fields: list[str], expected: str) -> None:
    assert text_of(make_page(lines("Surname:", "Policy number:"), annotations=fields)) == expected


def test_page_with_only_a_value_has_text_and_a_hidden_or_secret_value_is_none() -> None:
    document = read(make_page("", annotations=[field("Tx", "/V (Alone)")]), "a.pdf")
    assert (document.text, document.pages_without_text, document.parts) == ("Alone", (), {"form_fields": 1})
    hidden = field("Tx", "/V (unseen)").replace("/F 4", "/F 2")
    document = read(make_page(lines("Seen"), annotations=[hidden, field("Tx", "/V (s3cret) /Ff 8192", 600)]), "a.pdf")
    assert "s3cret" not in document.text
    assert document.text.startswith("Seen")
    assert [each.text for each in document.hidden] == ["unseen"]


def test_notes_and_typed_text_are_read_with_their_authors() -> None:
    notes = [
        note("Text", "Ask legal", "/T (Ada)"),
        note("FreeText", "Typed here", "/DA (/Helv 10 Tf 0 g)"),
        note("Highlight", "Important"),
        note("Link", "no note"),
        note("Popup", "no note"),
    ]
    document = read(make_page(lines("Seen"), annotations=notes), "a.pdf")
    assert document.text == "Seen\nTyped here\n\nNote by Ada: Ask legal\n\nNote: Important"
    assert document.parts == {"annotations": 2}


def test_words_for_pictures_are_read_unless_the_page_has_them() -> None:
    words = ("A lapwing on a fence", "On the page", "C:\\\\bird.jpg", "the page for a link")
    kinds = ("Figure", "Figure", "Figure", "Link")
    elements = [
        f"<</Type /StructElem /S /{kind} /P 10 0 R /Pg 3 0 R /K {at} /Alt ({each})>>"
        for at, (kind, each) in enumerate(zip(kinds, words, strict=True))
    ]
    kids = " ".join(f"{12 + at} 0 R" for at in range(len(elements)))
    tree = (f"<</Type /StructTreeRoot /K [{kids}] /ParentTree 11 0 R>>", f"<</Nums [0 [{kids}]]>>")
    content = lines("On the page") + "".join(f"/P <</MCID {at}>> BDC EMC " for at in range(len(elements)))
    catalog = "/MarkInfo <</Marked true>> /StructTreeRoot 10 0 R"
    data = make_page(content, page="/StructParents 0", catalog=catalog, others=(*tree, *elements))
    document = read(data, "a.pdf")
    assert document.text == "On the page\n\nA lapwing on a fence"
    assert document.parts == {"alt_texts": 1}


def test_attached_files_are_named() -> None:
    names = "/Names <</EmbeddedFiles <</Names [(a) 10 0 R]>>>>"
    spec = "<</Type /Filespec /F (plan.xlsx) /UF (plan.xlsx) /EF <</F 11 0 R>>>>"
    data = make_page(lines("Seen"), catalog=names, others=[spec, "<</Length 1>>\nstream\nx\nendstream"])
    document = read(data, "a.pdf")
    assert document.warnings == ("The attached file plan.xlsx was not read; upload it by itself.",)
    assert document.parts == {"attachments": 1}


@pytest.mark.parametrize("rows", (2, 3))
def test_columns_that_were_drawn_line_by_line_are_read_one_after_another(rows: int) -> None:
    left, right = LEFT[:rows], RIGHT[:rows]
    head = lines("Annual meeting of the bird society held in the old town hall of Ulm", x=60, y=750)
    assert text_of(make_page(head + in_rows(left, right))).split("\n")[1:] == [*left, *right]
    drawn_by_column = lines(*left, x=60) + lines(*right, x=330)
    assert text_of(make_page(drawn_by_column)).split("\n") == [*left, *right]


def test_three_columns_and_a_word_that_is_cut_in_one_of_them() -> None:
    first = ("the ships of the har-", "bour are old and small")
    middle = ("they are painted in a", "colour that nobody has")
    last = ("seen on any other coast", "of the northern sea.")
    text = text_of(make_page(in_rows(first, middle, last, across=180)))
    assert text == f"the ships of the harbour are old and small\n{middle[0]}\n{middle[1]}\n{last[0]}\n{last[1]}"


def test_tables_are_read_row_by_row() -> None:
    goods = in_rows(("Name", "Bolt of hard steel", "Washer of brass"), ("Place", "Northmark on Sea", "Trier on Mosel"))
    assert text_of(make_page(goods)).split("\n")[1:] == [
        "Bolt of hard steel Northmark on Sea",
        "Washer of brass Trier on Mosel",
    ]
    asked, told = (
        ("What does the long bolt cost?", "Who sells the washers?"),
        ("It costs twelve euros.", "All dealers do."),
    )
    assert text_of(make_page(in_rows(asked, told))).split("\n") == [f"{asked[0]} {told[0]}", f"{asked[1]} {told[1]}"]


@pytest.mark.parametrize(
    ("columns", "rows"),
    (
        (
            (("Number:", "Customer:", "Due date:"), ("INV-7719", "Ada Example", "2026-03-15")),
            ["Number: INV-7719", "Customer: Ada Example", "Due date: 2026-03-15"],
        ),
        (
            (("Item", "Bolt", "Nut"), ("Qty", "12", "140"), ("Price", "3.50 €", "0.80 €")),
            ["Item Qty Price", "Bolt 12 3.50 €", "Nut 140 0.80 €"],
        ),
        (
            (("Sender Ltd", "Main Street 1", "Ulm"), ("Invoice", "No. 7", "March")),
            ["Sender Ltd", "Main Street 1", "Ulm", "Invoice", "No. 7", "March"],
        ),
    ),
)
def test_labels_and_figures_that_were_drawn_column_by_column_are_read_by_rows(
    columns: tuple[tuple[str, ...], ...], rows: list[str]
) -> None:
    head = lines("Harbour office of the northern basin", y=760)
    content = "".join(lines(*texts, x=72 + 150 * at) for at, texts in enumerate(columns))
    assert text_of(make_page(head + content)).split("\n")[1:] == rows


def test_page_that_was_drawn_from_below_is_read_from_above() -> None:
    content = "".join(lines(text, y=700 - 16 * at) for at, text in reversed([*enumerate(LEFT)]))
    assert text_of(make_page(content)).split("\n") == [*LEFT]


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    (
        ("der Immo-", "bilien sind", "der Immobilien sind"),
        ("der Poli\xad", "tikwissenschaft", "der Politikwissenschaft"),
        ("Frau Jean-", "Paul came", "Frau Jean-Paul came"),
        ("a well-", "known fact", "a well-known fact"),
        ("the COVID-", "19 case", "the COVID-19 case"),
        ("an e-", "mail came", "an e-mail came"),
        ("a state-of-the-", "art tool", "a state-of-the-art tool"),
        ("a mid-size and a mid-", "size ship", "a mid-size and a mid-size ship"),
        ("for case and sensitive, case-", "sensitive", "for case and sensitive, case-sensitive"),
        ("die Vor-", "und Nachteile", "die Vor- und Nachteile"),
        ("the pre-", "and postwar years", "the pre- and postwar years"),
    ),
)
def test_word_that_was_broken_at_a_line_end_is_joined_and_a_compound_keeps_its_hyphen(
    first: str, second: str, joined: str
) -> None:
    assert " ".join(text_of(make_page(lines(first, second))).split()) == joined


def test_ligatures_and_letters_by_their_place_in_a_word_are_read_as_plain_letters() -> None:
    letters = {1: "ﬁ", 2: "ﬂ", 3: "ﬃ"} | {code: chr(code) for code in range(32, 127)}
    assert text_of(make_page(lines(b"The of\x02oad o\x03ce \x01nds"), letters=letters)) == "The offload office finds"
    word = "ﻣﺮﺣﺒﺎ"
    codes = dict(enumerate(word, 65))
    assert text_of(make_page(lines(bytes(reversed(codes))), letters=codes)) == "مرحبا"


@pytest.mark.parametrize("offset", (0.3, 1, 2))
def test_text_that_is_drawn_twice_is_read_once(offset: float) -> None:
    assert text_of(make_page(lines("Total") + lines("Total", x=72 + offset, y=720 - offset))) == "Total"


@pytest.mark.parametrize(
    ("content", "page", "reason"),
    (
        (lines("unseen", y=600, before="3 Tr"), "", "never painted"),
        (f"1 g\n{lines('unseen', y=600)}", "", "white text"),
        (f"1 1 1 rg 50 590 300 30 re f 1 g\n{lines('unseen', y=600)}", "", "white text"),
        (lines("unseen", y=600, size=0.1), "", "text of size 0"),
        (lines("unseen", x=2000), "", "off the page"),
        (lines("unseen", y=20), "/CropBox [0 100 612 792]", "off the page"),
    ),
)
def test_text_that_is_not_seen_is_kept_apart(content: str, page: str, reason: str) -> None:
    document = read(make_page(f"{lines('Seen')}{content}", page=page), "a.pdf")
    assert document.text == "Seen"
    assert [(each.text, each.reason, each.page) for each in document.hidden] == [("unseen", reason, 1)]


@pytest.mark.parametrize(
    "content",
    (
        f"0 0 0.5 rg 50 590 300 30 re f 1 g\n{lines('too', y=600)}",
        f"{PICTURE}{lines('too', y=600, before='3 Tr')}",
        f"q 12 0 0 12 0 0 cm\n{lines('too', x=6, y=50, size=1)}Q",
        f"q 0.1 0 0 0.1 0 0 cm\n{lines('too', x=720, y=6000, size=110)}Q",
    ),
)
def test_white_text_on_colour_a_layer_under_a_scan_and_scaled_text_are_seen(content: str) -> None:
    assert text_of(make_page(f"{lines('Seen')}{content}")).split() == ["Seen", "too"]


def test_text_in_a_layer_that_is_switched_off_is_kept_apart() -> None:
    layers = "/OCProperties <</OCGs [10 0 R 11 0 R] /D <</Order [] /OFF [11 0 R]>>>>"
    groups = ["<</Type /OCG /Name (On)>>", "<</Type /OCG /Name (Off)>>"]
    content = f"/OC /A BDC\n{lines('Seen')}EMC\n/OC /B BDC\n{lines('unseen', y=600)}EMC"
    data = make_page(content, catalog=layers, properties="/A 10 0 R /B 11 0 R", others=groups)
    document = read(data, "a.pdf")
    assert document.text == "Seen"
    assert [(each.text, each.reason) for each in document.hidden] == [("unseen", "hidden layer")]


@pytest.mark.parametrize(
    ("title", "expected"),
    (
        ("Annual report", "Annual report"),
        ("Microsoft Word - report.doc", None),
        ("untitled", None),
        ("report_final.docx", None),
        ("PowerPoint Presentation", None),
        ("Slide 1", None),
    ),
)
def test_title_that_a_program_has_filled_in_is_none(title: str, expected: str | None) -> None:
    assert read(make_pdf(["Words."], title=title), "a.pdf").title == expected


@pytest.mark.parametrize("across", (90.4, 91.5, 97))
def test_number_of_a_clause_is_no_part_of_its_first_word(across: float) -> None:
    content = lines("1.2.") + lines("The cellar", x=across) + lines("Version 2.x and 3.2.B", y=680)
    assert text_of(make_page(content)) == "1.2. The cellar\nVersion 2.x and 3.2.B"


def test_one_character_in_a_cell_stays_in_its_row() -> None:
    rows = (("Item", "Price", "Qty"), ("Apple", "1.20", "3"), ("Pear", "2.50", "7"))
    content = "".join(
        lines(text, x=x, y=700 - 20 * at)
        for at, row in enumerate(rows)
        for text, x in zip(row, (72, 200, 300), strict=True)
    )
    assert text_of(make_page(content + lines("C", y=600))) == "Item Price Qty\nApple 1.20 3\nPear 2.50 7\nC"
    content = lines("Washer", y=660) + lines("7", x=200, y=660) + lines("1.20", x=300, y=660)
    assert text_of(make_page(content)) == "Washer 7 1.20"


def test_numbers_below_each_other_stay_apart() -> None:
    columns = ((72, ("Bolt", "Washer", "Nut")), (200, ("12", "7", "140")))
    content = "".join(lines(text, x=x, y=700 - 20 * at) for x, texts in columns for at, text in enumerate(texts))
    assert text_of(make_page(content)).split() == ["Bolt", "Washer", "Nut", "12", "7", "140"]


def test_exponents_are_no_digits_of_their_numbers() -> None:
    def raised(text: str, by: int = 5) -> str:
        return f"{by} Ts /F 7 Tf ({text}) Tj 0 Ts /F 11 Tf "

    shown = f"(x) Tj {raised('2')} ( m, H) Tj {raised('2', -3)} (O, 10) Tj {raised('6')} ( or 10) Tj {raised('-12')} "
    text = text_of(make_page(f"BT /F 11 Tf 72 700 Td {shown} ( and 10-12, 3) Tj {raised('1')} (/2 mm) Tj ET"))
    assert text == "x2 m, H2O, 10^6 or 10^-12 and 10-12, 3 1/2 mm"
