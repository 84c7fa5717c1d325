"""Media types of files, and how they are detected.

The first of these that gives a type decides: a signature in the bytes, a specific declared type, the file name,
heuristics on the text. Types that the bytes contradict are ignored.

By hand, because of nineteen small files without an extension puremagic 1.30 took a PPTX, an XLSX and an ODT for a DOCX
and gave no type for six; of the same files with one, it knew no notebook, CSV or Markdown and no HTML without a head.
"""

import codecs
import re
from contextlib import suppress

from svc_daemon.core.text import container_types, encodings
from svc_daemon.core.text.charsets import find_codec
from svc_daemon.core.text.container_types import main_part_type, zip_type
from svc_daemon.core.text.document_formats import (
    CALENDAR,
    CONTACTS,
    EXCEL,
    FORMATS,
    GZIP,
    MAIL,
    MAILBOX,
    MAN_PAGE,
    PLAIN,
    DocumentFormat,
)

#: The media type of unknown binary data.
UNKNOWN = "application/octet-stream"
ENCRYPTED_OFFICE = container_types.ENCRYPTED

_TYPES = {extension: media_type for format_ in FORMATS for extension, media_type in format_.types.items()}
_FORMATS = {media_type: format_ for format_ in FORMATS for media_type in format_.types.values()}
#: Media types of files that are recognized by their full name.
_NAMES = {"dockerfile": "text/x-dockerfile", "makefile": "text/x-makefile", "cmakelists.txt": "text/x-cmake"}
#: Unusual media types that clients declare, mapped to the usual ones.
_SPELLINGS = {
    "text/x-latex": "text/x-tex",
    "application/x-tex": "text/x-tex",
    "application/x-latex": "text/x-tex",
    "text/prs.fallenstein.rst": "text/x-rst",
    "text/asciidoc": "text/x-asciidoc",
    "application/x-troff-man": MAN_PAGE,
    "text/x-markdown": "text/markdown",
    "application/x-yaml": "text/x-yaml",
    "application/yaml": "text/x-yaml",
    "application/xml": "text/xml",
    "application/javascript": "text/javascript",
    "application/jsonl": "application/x-ndjson",
    "application/csv": "text/csv",
    "text/rtf": "application/rtf",
    "application/ics": CALENDAR,
    "text/x-vcalendar": CALENDAR,
    "text/x-vcard": CONTACTS,
}
#: Formats whose content is text. Only a file's name or declared type shows which of these formats it has.
_TEXT_FORMATS = frozenset(
    {"text", "markdown", "html", "csv", "json", "notebook", "mail", "mailbox", "evernote", "code"}
)
#: Formats whose files may begin with an HTML tag.
_MAY_HOLD_HTML = frozenset({"code", "csv", "json", "notebook", "mail", "mailbox", "evernote"})

#: Signatures of binary files: offset, bytes, media type.
_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"\x1f\x8b", GZIP),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"(\xb5/\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
#: Those that no text begins with, not even in UTF-16: pixels of 16 bits may look like that.
_NO_TEXT = tuple(each for each in _MAGIC if each[0] == 0 and (b"\x00" in each[1] or b"\x1a" in each[1]))
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")
#: An Office file may be one XML file, whose main part begins within so many bytes.
_FLAT_BYTES = 1024 * 1024
_FLAT_OPEN_XML = b"http://schemas.microsoft.com/office/2006/xmlPackage"
_ZIP = "application/zip"
#: The beginning of an OpenDocument that is one XML file, with its type.
_ODF_FILE = re.compile(
    rb"""<office:document\s[^>]*?office:mimetype\s*=\s*["'](application/vnd\.oasis\.opendocument\.[a-z]+)"""
)
#: The beginning of a spreadsheet that Excel 2003 wrote in XML.
_EXCEL_XML = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?\s*<\?xml\s.*?<(?:\w+:)?Workbook\s[^<>]*urn:schemas-microsoft-com:office:spreadsheet",
    re.DOTALL,
)
#: Media types of binary files. A file that contains text never gets one of these types, or one that begins as in
#: `_MEDIA`.
_BINARY = frozenset({UNKNOWN, _ZIP, ENCRYPTED_OFFICE, *(media_type for _, _, media_type in _MAGIC)})
_MEDIA = ("image/", "audio/", "video/", "font/")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}")
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:+-]{2,40})""", re.IGNORECASE | re.ASCII)

#: Byte order marks. UTF-32 is first, since its mark begins with the mark of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_CONTROLS = bytes(sorted(set(range(32)) - {9, 10, 12, 13, 27}))

#: Only this many leading bytes are checked to decide whether data is text.
_HEAD_BYTES = 64 * 1024
# Possessive quantifiers (`*+`) and atomic groups (`(?>…)`) prevent slow backtracking.
_HTML = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?>(?:<!--(?>.*?-->)\s*+)*)<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE | re.DOTALL
)
_XML = re.compile(rb"\s*<\?xml\s")
_CALENDAR, _CONTACTS = re.compile(rb"BEGIN:VCALENDAR\s", re.IGNORECASE), re.compile(rb"BEGIN:VCARD\s", re.IGNORECASE)
_JSON = re.compile(rb'\s*(?:\{\s*"[^"]*"\s*:|\[\s*[\[{"])')
#: The end of a man page's name that also says of what it is, such as `3pm`.
_SECTION = re.compile(r"[1-8][a-z]{1,8}")
#: Requests alone, of which one begins a man page.
_MAN = re.compile(rb"(?>(?:(?![.'](?:TH|Dd)[ \t])[.'\\][^\n]*\n)*)[.'](?:TH|Dd)[ \t]")
#: The first header of a mail.
_HEADER = re.compile(rb"(?:From [^\n\0]*\n|\d+[ \t]*\r?\n)?[!-9;-~]{1,76}:[^\n\0]*\n")
_MAIL = re.compile(
    rb"(?:(?:Received|Return-Path|Delivered-To|From|To|Subject|Date|Message-ID|MIME-Version):[^\n]*+\n"
    rb"(?>(?:[ \t][^\n]*+\n)*)){2}",
    re.IGNORECASE,
)
#: A mailbox: the line before its first mail, with an address and the time, and headers.
_MAILBOX = re.compile(
    rb"From \S+ +[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d[^\n]*\d{4}\r?\n"
    rb"(?:[!-9;-~]{1,76}:[^\n]*+\n(?>(?:[ \t][^\n]*+\n)*)){2}"
)


def from_filename(filename: str) -> str | None:
    """Guess the media type from a file's name; None if the extension is unknown."""
    # Building a path object would be several times as slow.
    name = filename.rstrip("/").rpartition("/")[2].lower()
    stem, _, extension = name.rpartition(".")
    if extension == "gz":
        inner = stem.rpartition(".")[2]
        extension = "1.gz" if _SECTION.fullmatch(inner) else f"{inner}.gz"
    return _NAMES.get(name) or (_TYPES.get(extension) if "." in name else None)


def find_format(content_type: str) -> DocumentFormat | None:
    """Return the format with this media type; None if it is not supported."""
    return _FORMATS.get(content_type.partition(";")[0])


def is_text_type(content_type: str) -> bool:
    """Return whether files of this media type contain text."""
    format_ = find_format(content_type)
    return content_type.startswith("text/") or (format_ is not None and format_.key in _TEXT_FORMATS)


def from_declared(declared: str) -> str:
    """Return the declared media type in its usual spelling, without parameters; empty if invalid."""
    bare = declared.partition(";")[0].strip().lower()
    return _SPELLINGS.get(bare, bare) if _MEDIA_TYPE.fullmatch(bare) else ""


def detect(data: bytes, filename: str = "", declared: str = "") -> str:
    """Detect a file's media type from its bytes (at least 8 KB, or all), name and declared type.

    The type of a text keeps the encoding that was declared with it, unless that is UTF-8.
    """
    media_type = detect_as(data, from_filename(filename), from_declared(declared))
    charset = declared_charset(declared) if is_text_type(media_type) else ""
    return f"{media_type};charset={charset}" if charset else media_type


def declared_charset(declared: str) -> str:
    """Return the encoding that a declared media type names, in small letters; empty if none, UTF-8 or unknown."""
    found = _CHARSET.search(declared)
    return found[1].lower() if found and find_codec(found[1]) not in (None, "utf-8") else ""


def detect_as(data: bytes, named: str | None, announced: str) -> str:
    """Detect the media type, given the results of `from_filename` and `from_declared`."""
    # First what no text begins like, because to look for an encoding takes long.
    if certain := _certain_type(data):
        return certain
    # Parts of a mail may be binary.
    is_mail = not {MAIL, MAILBOX}.isdisjoint((named, announced))
    is_text = holds_text(data) or (is_mail and bool(_HEADER.match(data)))
    if signed := _signed_type(data, is_text=is_text):
        return signed
    if _HTML.match(data[:4096]) and not _may_hold_html(named) and not _may_hold_html(announced):
        return "application/xhtml+xml" if "application/xhtml+xml" in (named, announced) else "text/html"
    if is_text and _FLAT_OPEN_XML in data[:4096] and (flat := main_part_type(data[:_FLAT_BYTES], _FORMATS)):
        return flat
    is_vague = announced == UNKNOWN or (announced == PLAIN and named not in (None, PLAIN))
    for media_type in filter(None, ("" if is_vague else announced, named, announced)):
        is_textual = is_text_type(media_type)
        is_known = media_type in _FORMATS or media_type in _BINARY or media_type.startswith(_MEDIA)
        if (is_textual or not is_known) if is_text else not is_textual:
            return media_type
    looks = (
        (_CALENDAR, CALENDAR),
        (_CONTACTS, CONTACTS),
        (_JSON, "application/json"),
        (_XML, "text/xml"),
        (_MAILBOX, MAILBOX),
        (_MAIL, MAIL),
        (_MAN, MAN_PAGE),
    )
    found = (media_type for pattern, media_type in looks if pattern.match(data[:_HEAD_BYTES]))
    return next(found, PLAIN) if is_text else UNKNOWN


def _certain_type(data: bytes) -> str | None:
    """Return the media type that a signature shows, even if all bytes could be text; or None."""
    if data.startswith(_ARCHIVES):
        return zip_type(data, _FORMATS)
    if data.startswith(container_types.MAGIC):
        return container_types.ole_type(data)
    for _, magic, media_type in _NO_TEXT:
        if data.startswith(magic):
            return media_type
    start = data[:1024].lstrip(b"\xef\xbb\xbf\r\n\t ")
    starts = ((b"%PDF-", "application/pdf"), (b"{\\rtf", "application/rtf"))
    return next((media_type for magic, media_type in starts if start.startswith(magic)), None)


def _signed_type(data: bytes, *, is_text: bool) -> str | None:
    """Return the media type that another signature in the bytes shows, or None."""
    if is_text:
        flat = _ODF_FILE.search(data[:8192])
        if _EXCEL_XML.match(data[:8192]):
            return EXCEL
        return f"{flat[1].decode('ascii')}-flat-xml" if flat else None
    # Another program may have written a header before the PDF.
    if b"%PDF-" in data[:1024]:
        return "application/pdf"
    return next((media_type for offset, magic, media_type in _MAGIC if data.startswith(magic, offset)), None)


def _may_hold_html(media_type: str | None) -> bool:
    format_ = _FORMATS.get(media_type or "")
    return format_ is not None and format_.key in _MAY_HOLD_HTML


def text_encoding(data: bytes) -> str | None:
    """Return the encoding of text: by its byte order mark, UTF-8, or else a guess; None for binary data."""
    if marked := marked_encoding(data):
        return marked
    return encodings.guess(data).codec if holds_text(data) else None


def marked_encoding(data: bytes) -> str | None:
    """Return the encoding that a byte order mark shows, or None."""
    return next((codec for mark, codec in _MARKS if data.startswith(mark)), None)


def holds_text(data: bytes) -> bool:
    """Return whether data is text, judged by its beginning."""
    head = data[:_HEAD_BYTES]
    if marked_encoding(head):
        return True
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(head)
        if b"\x00" not in head:
            return True
    # Compressed or encrypted data has many control characters. Text in most encodings has none, or few by a fault.
    controls = len(head) - len(head.translate(None, _CONTROLS))
    is_plain, has_nul = controls * 100 <= len(head), b"\x00" in head
    is_utf8 = is_plain == has_nul and encodings.is_mostly_utf8(head)
    return (is_plain and not has_nul) or is_utf8 or encodings.guess_wide(head) is not None
