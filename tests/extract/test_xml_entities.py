"""XML that declares entities is refused, because the parsers don't expand them and text would be missing."""

from itertools import product

import pytest

from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.readings import read, refused

#: Declarations of an entity that contains a part of the text.
_DECLARED = '<!DOCTYPE x [<!ENTITY half "turquoise">]>'
_OF_HTML = _DECLARED.replace("x", "html", 1)
_STRICT = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "xhtml1-strict.dtd">'
_SPELLINGS = [
    *(_DECLARED, f"<?xml version='1.0'?><!-- {' '.join(map(str, range(100_000)))} -->{_DECLARED}"),
    *('<!DOCTYPE x SYSTEM "elsewhere.dtd">', '<!DOCTYPE x [<!ENTITY half SYSTEM "file:///etc/hostname">]>'),
    '<!DOCTYPE x [<!ENTITY % outside SYSTEM "elsewhere.dtd">%outside;]>',
]


def is_refused(data: bytes, filename: str) -> bool:
    return "declares entities" in refused(data, filename, SourceErrorCode.DOCUMENT_UNREADABLE)


@pytest.mark.parametrize(("doctype", "encoding"), [*product(_SPELLINGS, ("utf-8", "utf-16", "utf-32", "gb2312"))])
def test_docx_that_declares_entities_is_refused_in_every_encoding(doctype: str, encoding: str) -> None:
    whole = samples.make_docx({"Lamp": "It is QQ."})
    content = samples.member(whole, "word/document.xml").decode().partition("?>")[2].replace("QQ", "painted &half;")
    body = doctype + content
    if doctype.startswith("<?xml"):
        body = body.replace("?>", f" encoding='{encoding}'?>", 1)
    data = samples.replaced(whole, "word/document.xml", body.encode(encoding))
    assert is_refused(data, "a.docx"), (doctype[-60:], encoding)


@pytest.mark.parametrize(
    ("encoding", "codec"), {"csHPRoman8": "hp_roman8", "utf_16": "utf_16", "utf_16_le": "utf_16_le"}.items()
)
def test_docx_with_entities_is_refused_in_encodings_unknown_to_expat_or_python(encoding: str, codec: str) -> None:
    whole = samples.make_docx({"Lamp": "It is QQ."})
    content = samples.member(whole, "word/document.xml").decode().partition("?>")[2].replace("QQ", "painted &half;")
    body = f'<?xml version="1.0" encoding="{encoding}"?>{_DECLARED}{content}'
    data = samples.replaced(whole, "word/document.xml", body.encode(codec))
    assert is_refused(data, "a.docx")


@pytest.mark.parametrize(
    ("data", "filename", "name"),
    (
        (samples.make_pptx([("Lamp", "It is QQ.")]), "a.pptx", "ppt/slides/slide1.xml"),
        (samples.make_xlsx({"Lamp": [["It is QQ."]]}), "a.xlsx", "xl/sharedStrings.xml"),
        (samples.make_epub({"Lamp": "It is QQ."}), "a.epub", "book/c0.xhtml"),
    ),
)
def test_pptx_xlsx_and_epub_that_declare_entities_are_refused(data: bytes, filename: str, name: str) -> None:
    text = samples.member(data, name).decode()
    assert "QQ" in text
    text = _OF_HTML + text.rpartition("?>")[2].replace("QQ", "painted &half;")
    assert is_refused(samples.replaced(data, name, text.encode()), filename)


def test_xhtml_that_declares_entities_is_refused_and_html_entities_are_read() -> None:
    page = b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>It is painted&nbsp;&half;.</p></body></html>'
    assert is_refused(_OF_HTML.encode() + page, "a.xhtml")
    assert "painted\xa0" in read(_STRICT.encode() + page, "a.xhtml").text.replace(" ", "\xa0")


def test_xhtml_with_a_regional_or_unknown_encoding_is_read_unless_it_declares_entities() -> None:
    # The last four are names of Python codecs, but not of encodings of text.
    wrong = ("x-unknown", "utf-32", "hex", "rot13", "idna", "undefined")
    for encoding in ("Shift_JIS", "GB2312", "Big5", "EUC-KR", "windows-1251", *wrong):
        codec = "utf-8" if encoding in wrong else encoding
        page = f'<?xml version="1.0" encoding="{encoding}"?>{_STRICT}<html><body><p>The umber quay.</p></body></html>'
        assert "The umber quay." in read(page.encode(codec), "a.xhtml").text, encoding
        assert is_refused(page.replace(_STRICT, _OF_HTML).encode(codec), "a.xhtml"), encoding


def test_epub_chapter_with_html_entities_is_read() -> None:
    strict = b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "xhtml11.dtd">'
    chapter = strict + b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Caf&eacute; by the quay.</p></body></html>'
    book = samples.replaced(samples.make_epub({"A": "b"}), "book/c0.xhtml", chapter)
    assert "Café by the quay." in read(book, "a.epub").text
