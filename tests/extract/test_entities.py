"""XML that declares entities is refused: no parser expands them, and half of the text would be missing in silence."""

from itertools import product

import pytest

from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.wire.codes import SourceErrorCode
from tests import samples
from tests.extract.readings import read

#: Half of the words are in an entity; each archive with a member whose text they are.
_DECLARED = '<!DOCTYPE x [<!ENTITY half "turquoise">]>'
_STRICT = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "xhtml1-strict.dtd">'
_SPELLINGS = [
    _DECLARED,
    f"<?xml version='1.0'?><!-- {' '.join(map(str, range(100_000)))} -->{_DECLARED}",
    '<!DOCTYPE x SYSTEM "elsewhere.dtd">',
    '<!DOCTYPE x [<!ENTITY half SYSTEM "file:///etc/hostname">]>',
    '<!DOCTYPE x [<!ENTITY % outside SYSTEM "elsewhere.dtd">%outside;]>',
]


def test_a_word_file_whose_xml_uses_entities_is_refused() -> None:
    whole = samples.make_docx({"Lamp": "It is QQ."})
    content = samples.member(whole, "word/document.xml").decode().partition("?>")[2].replace("QQ", "painted &half;")
    for doctype, encoding in product(_SPELLINGS, ("utf-8", "utf-16", "utf-32", "gb2312")):
        body = doctype + content
        if doctype.startswith("<?xml"):
            body = body.replace("?>", f" encoding='{encoding}'?>", 1)
        data = samples.replaced(whole, "word/document.xml", body.encode(encoding))
        with pytest.raises(ExtractionFailed, match="declares entities") as failed:
            read(data, "a.docx")
        assert (failed.value.code, failed.value.retryable) == (SourceErrorCode.DOCUMENT_UNREADABLE, False)


@pytest.mark.parametrize(
    ("data", "filename", "name"),
    [
        (samples.make_pptx([("Lamp", "It is QQ.")]), "a.pptx", "ppt/slides/slide1.xml"),
        (samples.make_xlsx({"Lamp": [["It is QQ."]]}), "a.xlsx", "xl/sharedStrings.xml"),
        (samples.make_epub({"Lamp": "It is QQ."}), "a.epub", "book/c0.xhtml"),
    ],
)
def test_slides_sheets_and_books_whose_xml_declares_entities_are_refused(data: bytes, filename: str, name: str) -> None:
    text = samples.member(data, name).decode()
    assert "QQ" in text
    text = _DECLARED.replace("x", "html", 1) + text.rpartition("?>")[2].replace("QQ", "painted &half;")
    with pytest.raises(ExtractionFailed, match="declares entities"):
        read(samples.replaced(data, name, text.encode()), filename)


def test_a_page_that_declares_entities_is_refused_and_one_that_uses_those_of_html_is_read() -> None:
    page = b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>It is painted&nbsp;&half;.</p></body></html>'
    with pytest.raises(ExtractionFailed, match="declares entities"):
        read(_DECLARED.replace("x", "html", 1).encode() + page, "a.xhtml")
    assert "painted\xa0" in read(_STRICT.encode() + page, "a.xhtml").text.replace(" ", "\xa0")


@pytest.mark.parametrize("encoding", ["Shift_JIS", "GB2312", "Big5", "EUC-KR", "windows-1251"])
def test_a_page_that_declares_an_encoding_of_its_region_is_read(encoding: str) -> None:
    page = f'<?xml version="1.0" encoding="{encoding}"?>{_STRICT}<html><body><p>The umber quay.</p></body></html>'
    assert "The umber quay." in read(page.encode(encoding), "a.xhtml").text
    with pytest.raises(ExtractionFailed, match="declares entities"):
        read(page.replace(_STRICT, _DECLARED.replace("x", "html", 1)).encode(encoding), "a.xhtml")


def test_a_page_of_an_unknown_encoding_is_read() -> None:
    page = f'<?xml version="1.0" encoding="x-unknown"?>{_STRICT}<html><body><p>The umber quay.</p></body></html>'
    assert "The umber quay." in read(page.encode(), "a.xhtml").text


def test_a_book_whose_chapters_use_the_characters_of_html_is_read() -> None:
    strict = b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "xhtml11.dtd">'
    chapter = strict + b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Caf&eacute; by the quay.</p></body></html>'
    book = samples.replaced(samples.make_epub({"A": "b"}), "book/c0.xhtml", chapter)
    assert "Café by the quay." in read(book, "a.epub").text
