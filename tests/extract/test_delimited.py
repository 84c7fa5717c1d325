"""Each row of a CSV file has the names of its columns, however the file separates its columns and says so."""

import pytest

from svc_daemon.core.text.chunking import ChunkingOptions, chunk_document
from tests.extract.readings import lines, read, shape

ROWS = [("Name", "Ort", "Betrag"), ("Ada", "Köln", "1,50"), ("Bo", "Trier", "2,75")]


def joined(separator: str, end: str = "\n") -> str:
    return end.join(separator.join(f'"{cell}"' if separator in cell else cell for cell in row) for row in ROWS)


@pytest.mark.parametrize(
    ("table", "first"),
    (
        *((joined(separator), 1) for separator in ",;\t|"),
        *((joined(";", "\r\n"), 1), ("\n" + joined(";"), 2), ("\ufeff" + joined(";"), 1)),
        *((f"sep={separator}\r\n" + joined(separator, "\r\n"), 2) for separator in ",;\t|"),
        *(('"sep=;"\n' + joined(";"), 2), ("SEP=;\n" + joined(";"), 2), ("sep=^\n" + joined("^"), 2)),
        *(("Zahlungen 2026\n\n" + joined(";"), 3), ("Zahlungen 2026;;\n" + joined(";"), 2)),
        ("# exported, by hand\n# on Monday, at noon\n" + joined(","), 3),
    ),
)
@pytest.mark.parametrize("codec", ("utf-8", "utf-16", "cp1252"))
def test_separator_is_found_and_each_row_has_the_names_of_the_columns(table: str, first: int, codec: str) -> None:
    document = read(table.encode(codec, "ignore"), "a.csv")
    *above, heading, rows = document.blocks
    assert (heading.headings, rows.headings) == (("Name, Ort, Betrag",),) * 2
    assert (heading.line_start, rows.line_start, rows.line_end) == (first, first + 1, first + 2)
    assert rows.text.splitlines()[1].startswith("Bo")
    assert [(block.kind, block.headings) for block in above] == [("paragraph", ())] * len(above)


def test_what_stands_above_a_table_is_read() -> None:
    document = read(b"Sales report\nMade by Ada\n\nRegion;Q1\nNorth;12\n", "a.csv")
    assert shape(document) == [
        ("paragraph", "Sales report\nMade by Ada", ()),
        ("heading", "Region;Q1", ("Region, Q1",)),
        ("row", "North;12", ("Region, Q1",)),
    ]


BANK = """"Konto:";"DE12 3456";

"Von:";"01.02.2026";
"Stand vom 28.02.2026:";"1.234,56 EUR";

"Tag";"Zweck";"Betrag";
"27.02.2026";"Strom";"-72,10";
"20.02.2026";"Rechnung 123
Festnetz";"-39,95";
"""
TABLES = "Room;Fee\nBlue;80\nRed;90\n{}\nDog;Tax\nPug;5\nBoxer;12\n"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        (BANK, ["Tag, Zweck, Betrag"]),
        (BANK.replace("Rechnung 123\n", ""), ["Tag, Zweck, Betrag"]),
        *((TABLES.format(between), ["Room, Fee", "Dog, Tax"]) for between in ("", ";", "\nDogs;")),
        # What has no figures below names without any goes on with the table.
        ("Name;Town;Age\nAnn;Ulm;20\n\nBo;Bonn;old\n\nCy;Trier;5\n", ["Name, Town, Age"]),
        ("Budget 2026\n;2025;2026\nGas;1;2\n", [", 2025, 2026"]),
    ],
)
def test_each_table_of_a_file_has_the_names_of_its_columns(text: str, headings: list[str]) -> None:
    document = read(text.encode(), "a.csv")
    rows = [block for block in document.blocks if block.kind == "row"]
    assert list(dict.fromkeys(heading for row in rows for heading in row.headings)) == headings
    assert document.text == text


@pytest.mark.parametrize("quote", ("", '"'))
def test_repeated_row_of_names_is_no_row(quote: str) -> None:
    header = f"{quote}name{quote},city\n"
    document = read(f"{header}Ada,Rome\n{header}Bo,Oslo\n{header}".encode(), "a.csv")
    assert [(kind, text) for kind, text, _ in shape(document)] == [
        *(("heading", header.strip()), ("row", "Ada,Rome"), ("row", "Bo,Oslo")),
    ]
    assert lines(document) == [(1, 1), (2, 2), (4, 4)]


def test_column_without_a_name_counts_and_keeps_its_place() -> None:
    assert read(b",Q1,Q2\nNorth,1,2\n", "a.csv").blocks[1].headings == (", Q1, Q2",)
    assert read(b"name,city,,\nAda,Rome,,\n", "a.csv").blocks[1].headings == ("name, city",)


def test_row_with_line_breaks_is_in_one_chunk_with_its_lines() -> None:
    record = '"Ada, the first","She said ""stop""\n\nand left by the gate,\nwhich was open"\n'
    document = read(("Name,Note\n" + record * 100).encode(), "a.csv")
    chunks = chunk_document(document, ChunkingOptions())
    assert len(chunks) > 3
    assert {chunk.text.count('"Ada') - chunk.text.count('was open"') for chunk in chunks} == {0}
    for chunk in chunks:
        assert chunk.line_start is not None
        assert (chunk.line_start - 2) % 4 == 0
