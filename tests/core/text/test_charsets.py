"""A declared encoding is read as browsers read it, and not believed if the bytes contradict it."""

import pytest

from svc_daemon.core.text.charsets import decode_declared, find_codec, find_declared


@pytest.mark.parametrize(
    ("label", "codec"),
    (
        *(("ISO-8859-1", "cp1252"), ("latin1", "cp1252"), ("us-ascii", "cp1252"), ("l5", "cp1254")),
        *(("gb2312", "gb18030"), ("GBK", "gb18030"), ("cp936", "gb18030"), ("x-gbk", "gb18030")),
        *(("shift_jis", "cp932"), ("x-sjis", "cp932"), ("Windows-31J", "cp932"), ("ks_c_5601-1987", "cp949")),
        *(("euc-kr", "cp949"), ("windows-949", "cp949"), ("big5", "big5hkscs"), ("x-x-big5", "big5hkscs")),
        *(("tis-620", "cp874"), ("windows-874", "cp874"), ("iso-8859-8-i", "iso8859-8"), ("iso88592", "iso8859-2")),
        *(("cp-1252", "cp1252"), ("win-1251", "cp1251"), ('"utf8"', "utf-8"), ("x-mac-cyrillic", "mac-cyrillic")),
        *((label, None) for label in ("unknown-8bit", "base64", "rot13", "idna", "a\0b", "", "x" * 500)),
    ),
)
def test_label_means_what_browsers_take_it_for(label: str, codec: str | None) -> None:
    assert find_codec(label) == codec


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    (
        ("囍宴的会议", "gbk", "gb2312"),
        ("①㈱のテスト", "cp932", "shift_jis"),
        ("①のテスト", "euc_jis_2004", "euc-jp"),
        ("똠방각하", "cp949", "euc-kr"),
        ("“quoted” €", "cp1252", "iso-8859-1"),
        ("Grüße", "utf-8", "iso-8859-1"),
        ("Grüße", "utf-8", "us-ascii"),
        ("Grüße", "utf-8-sig", "utf-8"),
        ("plain", "utf-8", "utf-16"),
        ("日本語", "iso2022_jp", "iso-2022-jp"),
        ("汉字", "hz", "hz-gb-2312"),
    ),
)
def test_text_is_decoded_by_its_declaration(text: str, codec: str, label: str) -> None:
    assert decode_declared(text.encode(codec), label) == (text, 0)


def test_japanese_mail_keeps_the_characters_that_vendors_added() -> None:
    assert decode_declared(b"\x1b$B-!%F%9%H\x1b(B abc\n", "iso-2022-jp") == ("①テスト abc\n", 0)


def test_declaration_that_the_bytes_contradict_is_not_believed() -> None:
    assert decode_declared("Grüße".encode("cp1252"), "utf-8") is None
    assert decode_declared("Grüße".encode("cp1252"), "x-nothing") is None
    text = "ää" * 20
    assert decode_declared(text.encode() + b"\xff", "utf-8") == (text + "\ufffd", 1)


@pytest.mark.parametrize(
    ("head", "label"),
    (
        (b"<meta charset=Shift_JIS>", "Shift_JIS"),
        (b'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=euc-jp">', "euc-jp"),
        (b"<!-- <meta charset=x1> --><meta name=a content=b><meta content='text/html;charset=koi8-r'>", "koi8-r"),
        (b'<?xml version="1.0" encoding="Shift_JIS"?><html>', "Shift_JIS"),
        (b"<p>The charset=gbk of the text</p>", None),
    ),
)
def test_declaration_in_the_document_is_found(head: bytes, label: str | None) -> None:
    assert find_declared(head) == label
