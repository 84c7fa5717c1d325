"""EPUB: the chapters in the book's order; what can't be read costs itself, and a warning names it."""

import zlib
from collections.abc import Mapping

import pytest

from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.readings import read, refused, shape

OPF = '<package xmlns="http://www.idpf.org/2007/opf"><manifest>{}</manifest><spine>{}</spine></package>'
CONTAINER = '<container><rootfiles><rootfile full-path="{}"/></rootfiles></container>'


def page(words: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><p>{words}</p></body></html>'


def book(
    items: str, spine: str, members: Mapping[str, str], *, path: str = "OEBPS/a.opf", rest: Mapping[str, str] = {}
) -> bytes:
    """Return an EPUB with the items and the spine of a package document."""
    known = {"META-INF/container.xml": CONTAINER.format(path), path: OPF.format(items, spine), **members, **rest}
    return samples.make_zip({name: text.encode() for name, text in known.items()})


def item(identifier: str, href: str, rest: str = 'media-type="application/xhtml+xml"') -> str:
    return f'<item id="{identifier}" href="{href}" {rest}/>'


def spine(*identifiers: str) -> str:
    return "".join(f'<itemref idref="{identifier}"/>' for identifier in identifiers)


def test_chapters_are_read_in_the_order_of_the_spine() -> None:
    document = read(samples.make_epub({"Dawn": "It rose.", "Dusk": "It set."}, title="Sun", language="fr"), "a.epub")
    chapters = (("Dawn", "It rose."), ("Dusk", "It set."))
    kinds = (("heading", 0), ("paragraph", 1))
    assert shape(document) == [(kind, chapter[at], (chapter[0],)) for chapter in chapters for kind, at in kinds]
    assert (document.title, document.language) == ("Sun", "fr")


@pytest.mark.parametrize(
    ("href", "name"),
    (
        ("one.xhtml", "OEBPS/one.xhtml"),
        ("text/kapitel%201.xhtml#start", "OEBPS/text/kapitel 1.xhtml"),
        ("../text/one.xhtml", "text/one.xhtml"),
        ("text\\one.xhtml", "OEBPS/text/one.xhtml"),
        ("One.XHTML", "OEBPS/one.xhtml"),
        ("one.xhtml", "oebps/ONE.xhtml"),
        ("text/one.xhtml", "OEBPS\\text\\one.xhtml"),
        ("/OEBPS/one.xhtml", "OEBPS/one.xhtml"),
    ),
)
def test_chapter_is_found_however_it_is_named(href: str, name: str) -> None:
    document = read(book(item("a", href), spine("a"), {name: page("It rose.")}), "a.epub")
    assert (document.text, document.warnings) == ("It rose.", ())


def test_chapter_that_is_missing_or_broken_costs_itself() -> None:
    items = item("a", "a.xhtml") + item("b", "b.xhtml") + item("c", "c.xhtml") + item("d", "d.xhtml")
    entity = '<!DOCTYPE html [<!ENTITY e "x">]>' + page("&e;")
    members = {"OEBPS/a.xhtml": page("It rose."), "OEBPS/c.xhtml": entity, "OEBPS/d.xhtml": page("Bent words.")}
    data = book(items, spine("a", "b", "c", "lost", "d", "a"), {**members, "OEBPS/e.xhtml": page("x")})
    document = read(data, "a.epub")
    assert document.text == "It rose.\n\nBent words."
    assert [
        name for name in ("b.xhtml", "c.xhtml", "lost") if not any(name in each for each in document.warnings)
    ] == []
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed_words = packed.compress(page("Bent words.").encode()) + packed.flush()
    broken = data.replace(packed_words, b"\xff" * len(packed_words)).replace(page("Bent words.").encode(), b"?" * 104)
    assert broken != data
    document = read(broken, "a.epub")
    assert document.text == "It rose."
    assert any("d.xhtml is missing or damaged" in each for each in document.warnings)


@pytest.mark.parametrize(
    ("items", "order", "expected"),
    (
        (item("a", "a.xhtml") + item("b", "b.xhtml"), "", "A.\n\nB."),
        (item("b", "b.xhtml", 'media-type="text/x-oeb1-document"'), spine("b"), "B."),
        (item("p", "p.pdf", 'media-type="application/pdf" fallback="a"') + item("a", "a.xhtml"), spine("p"), "A."),
        (item("p", "p.pdf", 'media-type="x/y" fallback="p"') + item("a", "a.xhtml"), spine("p", "a"), "A."),
        (item("s", "s.svg", 'media-type="image/svg+xml"'), spine("s"), "Drawn."),
        (item("a", "a.xhtml") + "<unclosed", spine("a"), "A."),
    ),
)
def test_odd_lists_of_chapters_are_read_as_far_as_they_go(items: str, order: str, expected: str) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><text>Drawn.</text></svg>'
    members = {"OEBPS/a.xhtml": page("A."), "OEBPS/b.xhtml": page("B."), "OEBPS/s.svg": drawing}
    assert read(book(items, order, members), "a.epub").text == expected


def test_package_document_is_found_without_the_container() -> None:
    members = {"OEBPS/a.xhtml": page("A.")}
    for broken in ("<x", "", CONTAINER.format("other.opf")):
        data = book(item("a", "a.xhtml"), spine("a"), members, rest={"META-INF/container.xml": broken})
        assert read(data, "a.epub").text == "A."
    document = read(book("", "", members, rest={"OEBPS/a.opf": ""}), "a.epub")
    assert document.text == "A."
    assert "list of chapters is damaged" in document.warnings[0]


ENCRYPTION = '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#">{}</encryption>'
ENCRYPTED = (
    '<enc:EncryptedData><enc:EncryptionMethod Algorithm="{}"/><enc:CipherData>'
    '<enc:CipherReference URI="{}"/></enc:CipherData></enc:EncryptedData>'
)
AES = "http://www.w3.org/2001/04/xmlenc#aes256-cbc"


def encryption(*entries: tuple[str, str]) -> dict[str, str]:
    return {"META-INF/encryption.xml": ENCRYPTION.format("".join(ENCRYPTED.format(*each) for each in entries))}


def test_copy_protection_is_reported_and_scrambled_fonts_are_none() -> None:
    items, order = item("a", "a.xhtml") + item("b", "b.xhtml"), spine("a", "b")
    members = {"OEBPS/a.xhtml": page("A."), "OEBPS/b.xhtml": "\x00\x01"}
    fonts = encryption(("http://www.idpf.org/2008/embedding", "OEBPS/a.otf"))
    assert read(book(items, order, members | {"OEBPS/b.xhtml": page("B.")}, rest=fonts), "a.epub").text == "A.\n\nB."
    one = encryption((AES, "OEBPS/b.xhtml"))
    document = read(book(items, order, members, rest=one), "a.epub")
    assert document.text == "A."
    assert document.warnings == ("The chapter OEBPS/b.xhtml is copy-protected and was not read.",)
    for rest in ({"META-INF/rights.xml": "<x/>"}, {"META-INF/license.lcpl": "{}"}, {}):
        all_locked = {**encryption((AES, "OEBPS/a.xhtml"), (AES, "OEBPS/b.xhtml")), **rest}
        assert refused(book(items, order, members, rest=all_locked), "a.epub", SourceErrorCode.DOCUMENT_ENCRYPTED)


def test_book_with_much_else_is_counted_by_what_is_read_of_it() -> None:
    picture = {"OEBPS/a.bmp": "\0" * 3_000_000}
    data = book(item("a", "a.xhtml"), spine("a"), {"OEBPS/a.xhtml": page("A.")} | picture)
    assert read(data, "a.epub", archive_bytes=1_000_000).text == "A."
    large = book(item("a", "a.xhtml"), spine("a"), {"OEBPS/a.xhtml": page("A." * 2_000_000)})
    over = SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED
    assert refused(large, "a.epub", over)
    assert refused(large, "a.epub", over, archive_bytes=1_000_000, archive_ratio=10**6)


def test_external_entity_reads_no_local_file() -> None:
    package = b'<!DOCTYPE p [<!ENTITY e SYSTEM "file:///etc/passwd">]><package><metadata><title>&e;</title></metadata></package>'
    evil = samples.replaced(samples.make_epub({"A": "b"}), "book/package.opf", package)
    assert not read(evil, "a.epub").title
