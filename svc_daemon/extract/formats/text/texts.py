"""Plain text, source code and JSON, with the line numbers of the file."""

import re
from contextlib import suppress

from svc_daemon.core.text import encodings
from svc_daemon.core.text.charsets import decode_declared, find_declared
from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.media_types import holds_text, marked_encoding
from svc_daemon.extract import documents
from svc_daemon.extract.builders import LineDocument, find_header_title
from svc_daemon.extract.formats import Given

#: Only this many leading bytes show whether text has two bytes for each character.
_HEAD_BYTES = 64 * 1024
#: Codecs that know a few more characters than the one that is guessed.
_SIBLINGS = {"cp950": ("big5hkscs",), "cp932": ("shift_jis_2004",), "euc_jp": ("euc_jis_2004",)}
#: A guess that costs no more is certain: UTF-16 with Latin letters, or UTF-8 with few broken bytes.
_CERTAIN_COST = 3.5
#: How encodings are named in warnings.
_NAMES = {
    **dict.fromkeys(("cp950", "big5hkscs"), "Big5"),
    **dict.fromkeys(("euc_jp", "euc_jis_2004"), "EUC-JP"),
    **{f"cp{page}": f"Windows-{page}" for page in (874, *range(1250, 1259))},
    **{f"cp{page}": f"code page {page}" for page in (437, 850, 852, 855, 866)},
    **{f"iso8859_{part}": f"ISO-8859-{part}" for part in (2, 5, 6, 7)},
    **{f"utf-{size}-{order.lower()}": f"UTF-{size}{order}" for size in (16, 32) for order in ("LE", "BE")},
    "gb18030": "GBK",
    "cp932": "Shift_JIS",
    "cp949": "EUC-KR",
    "iso2022_jp": "ISO-2022-JP",
    "koi8_r": "KOI8-R",
    "koi8_u": "KOI8-U",
    "mac_roman": "Mac Roman",
    "mac_cyrillic": "Mac Cyrillic",
    "johab": "Johab",
}

_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))")
#: Letters of escape sequences that stand for control characters. Others stand for themselves, as in JSON5.
_CONTROL_LETTERS = frozenset("bfnrtv0")


def decode(data: bytes, declared: str = "") -> tuple[str, tuple[str, ...]]:
    """Decode text, with warnings if the encoding was guessed, or some bytes are invalid.

    `declared` is the label of an encoding, which counts unless the bytes contradict it; XML may declare one itself.
    Raises ExtractionFailed for binary data.
    """
    declared = declared or (data.startswith(b"<?xml") and find_declared(data)) or ""
    if marked := marked_encoding(data):
        text = data.decode(marked, "replace")
        return text, _lost(text.count("\ufffd"), marked.removesuffix("-sig"))
    # Only text with two or four bytes for each character has NUL.
    is_wide = data.find(0, 0, _HEAD_BYTES) >= 0
    if declared and (not is_wide or "utf" in declared) and (found := decode_declared(data, declared)) is not None:
        return found[0], _lost(found[1], declared)
    if not is_wide:
        with suppress(UnicodeDecodeError):
            text = data.decode()
            is_japanese = text.isascii() and "\x1b$" in text
            found = decode_declared(data, "iso-2022-jp") if is_japanese else None
            return (found[0], (_guessed("iso2022_jp"),)) if found else (text, ())
    return _decode_guessed(data)


def _decode_guessed(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode text by the encoding that explains it best. Raises ExtractionFailed for binary data."""
    if not holds_text(data):
        raise documents.unsupported("The file is binary, not text.")
    guess = encodings.guess(data)
    tries = [data.decode(codec, "replace") for codec in (guess.codec, *_SIBLINGS.get(guess.codec, ()))]
    text = min(tries, key=lambda text: text.count("\ufffd"))
    lost = _lost(text.count("\ufffd"), _NAMES.get(guess.codec, guess.codec))
    is_certain = guess.codec.startswith("utf") and guess.cost <= _CERTAIN_COST
    return text, lost if is_certain else (_guessed(guess.codec), *lost)


def _guessed(codec: str) -> str:
    return f"The text is not UTF-8; it was read as {_NAMES.get(codec, codec)}."


def _lost(places: int, encoding: str) -> tuple[str, ...]:
    if places == 1:
        return (f"1 place of the text is not valid {encoding} and was replaced.",)
    return (f"{places} places of the text are not valid {encoding} and were replaced.",) if places else ()


def read_text(given: Given) -> Document:
    """Read plain text. Blank lines separate paragraphs."""
    text, warnings = decode(given.data, given.charset)
    document = LineDocument(text)
    document.add_paragraphs("paragraph", 0, len(document.lines) - 1)
    return document.finish(title=find_header_title(document.lines), warnings=warnings)


def read_code(given: Given) -> Document:
    """Read source code. Blank lines separate blocks."""
    text, warnings = decode(given.data, given.charset)
    document = LineDocument(text)
    document.add_paragraphs("code", 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def read_json(given: Given) -> Document:
    r"""Read JSON or NDJSON, with escape sequences replaced by their characters.

    Otherwise, searches would miss words with `\u00e9`, and the `n` of `\n` would become part of the next word. The JSON
    is not parsed, so line numbers stay correct, and comments are allowed.
    """
    text, warnings = decode(given.data, given.charset)
    document = LineDocument(_ESCAPE.sub(_unescape, text))
    kind = "row" if given.content_type == "application/x-ndjson" else "code"
    document.add(kind, 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def _unescape(escape: re.Match[str]) -> str:
    high, low, single, plain = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if single:
        # Replace control characters, since a line break would change the numbers of later lines.
        return chr(int(single, 16)) if int(single, 16) >= ord(" ") else " "
    return " " if plain in _CONTROL_LETTERS else plain
