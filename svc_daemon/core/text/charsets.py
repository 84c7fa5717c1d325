"""Declared encodings: which codec a label means to browsers and mail programs, and text decoded by a declaration."""

import codecs
import re
from contextlib import suppress

#: Labels of which Python knows no codec, or another one.
_LABELS = {
    **dict.fromkeys(("unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8", "utf-8mb4"), "utf-8"),
    **dict.fromkeys(("csisolatin9", "iso_8859-15"), "iso8859-15"),
    **dict.fromkeys(("csiso88596e", "csiso88596i", "asmo-708"), "iso8859-6"),
    **dict.fromkeys(("sun_eu_greek",), "iso8859-7"),
    **dict.fromkeys(("csiso88598e", "csiso88598i", "logical", "visual"), "iso8859-8"),
    **dict.fromkeys(("koi", "koi8", "cskoi8r"), "koi8-r"),
    "koi8-ru": "koi8-u",
    **dict.fromkeys(("mac", "csmacintosh", "x-mac-roman"), "mac-roman"),
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac-cyrillic"),
    **dict.fromkeys(("chinese", "csgb2312", "gb_2312", "gb_2312-80", "x-gbk", "x-euc-cn", "euc-cn"), "gb18030"),
    **dict.fromkeys(("cn-big5", "x-x-big5"), "big5hkscs"),
    **dict.fromkeys(("cseucpkdfmtjapanese", "x-euc-jp"), "euc_jis_2004"),
    **dict.fromkeys(("iso-2022-jp-ms", "cp50220", "cp50221"), "iso2022_jp"),
    **dict.fromkeys(("windows-31j", "cswindows31j", "x-sjis", "x-ms-cp932"), "cp932"),
    **dict.fromkeys(("cseuckr", "csksc56011987", "iso-ir-149", "ks_c_5601-1989", "ksc_5601", "x-windows-949"), "cp949"),
    **dict.fromkeys(("ansi", "x-user-defined"), "cp1252"),
    **dict.fromkeys(("csunicode", "iso-10646-ucs-2", "ucs-2", "unicode"), "utf-16"),
    "unicodefffe": "utf-16-be",
}
#: Older encodings by Python's name, and the larger ones that browsers read in their place.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_jp": "euc_jis_2004",
    "euc_kr": "cp949",
}
_CODE_PAGE = re.compile(r"(?:x-)?(?:windows|win|cp|ms|ibm|dos)[-_]?(\d{3,5})")
_ISO_8859 = re.compile(r"(?:x-)?iso[-_]?8859[-_]?(\d{1,2})\b.*")
#: Codecs of Python that are no encodings of documents.
_NO_ENCODINGS = frozenset(
    {
        *("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"),
        *("base64", "bz2", "hex", "quopri", "rot-13", "uu", "zlib"),
    }
)

#: Browsers look for declarations in the first bytes only. Generators may write long comments before them.
_DECLARATION_BYTES = 4096
_XML = re.compile(rb"""\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']?([A-Za-z0-9._:-]{2,40})""")
_META = re.compile(rb"""<meta\s[^>]*?\bcharset\s*=\s*["']?\s*([A-Za-z0-9._:-]{2,40})""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)

#: The Japanese characters of ISO-2022-JP between two escape sequences.
_ESCAPED_JAPANESE = re.compile(rb"\x1b\$[@B]([^\x1b\r\n]*)")
_ESCAPE = re.compile(rb"\x1b\([BJ]")
_SEVEN_BIT = frozenset({"hz", "utf-7", "iso2022_jp", "iso2022_kr"})
_OF_ANY_BYTES = frozenset({"cp1252", "cp1254"})
#: Text in which more of the characters beyond ASCII are invalid has another encoding.
_INVALID_SHARE = 1 / 10


def find_codec(label: str) -> str | None:
    """Return the name of the codec that browsers use for a declared encoding; None if there is none."""
    label = label.strip().strip("\"'").lower()
    name = _LABELS.get(label)
    if name is None:
        if page := _CODE_PAGE.fullmatch(label):
            label = f"cp{page[1]}"
        elif part := _ISO_8859.fullmatch(label):
            label = f"iso8859-{part[1]}"
        # `ValueError`: the label has a character that no name has.
        with suppress(LookupError, ValueError):
            name = codecs.lookup(label).name
    return None if name in _NO_ENCODINGS else _WIDER.get(name or "", name)


def find_declared(data: bytes) -> str | None:
    """Return the encoding that HTML or XML declares in itself; None if it declares none."""
    head = data[:_DECLARATION_BYTES]
    found = _XML.match(head) or _META.search(_COMMENT.sub(b"", head))
    return found[1].decode("ascii") if found else None


def decode_declared(data: bytes, label: str) -> tuple[str, int] | None:
    """Decode text by its declared encoding, and count the invalid places.

    UTF-8 that was declared to be something else is read as UTF-8. Returns None if the encoding is unknown or obviously
    another one.
    """
    codec = find_codec(label)
    # A declaration that was read as ASCII contradicts UTF-16.
    if codec and codec.startswith("utf-16") and b"\0" not in data[:_DECLARATION_BYTES]:
        codec = "utf-8"
    if codec is None:
        return None
    # Text of another encoding is hardly ever valid UTF-8, but any text is valid in some encodings.
    tried = (codec,) if codec in _SEVEN_BIT else ("utf-8", codec) if codec in _OF_ANY_BYTES else (codec, "utf-8")
    for each in tried:
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8-sig" if each == "utf-8" else each), 0
    if codec == "iso2022_jp":
        # Mail programs also write characters that Python's codec lacks.
        data = _ESCAPED_JAPANESE.sub(lambda run: bytes(byte | 0x80 for byte in run[1]), data)
        codec, data = "euc_jis_2004", _ESCAPE.sub(b"", data)
    text = data.decode(codec, "replace")
    invalid = text.count("\ufffd")
    if invalid > _INVALID_SHARE * sum(character > "\x7f" for character in text):
        return None
    return text, invalid
