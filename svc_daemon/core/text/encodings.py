"""Whether bytes are text, and in which encoding."""

import codecs

#: Byte order marks and their codecs; UTF-32 first, whose mark begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

#: How much of a file is looked at.
_HEAD_BYTES = 64 * 1024
_CONTROLS = bytes(sorted(set(range(32)) - {9, 10, 12, 13, 27}))


def text_encoding(data: bytes) -> str | None:
    """Codec in which `data` is text: by its mark, else UTF-8, else Windows-1252; None where it is binary."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return codec
    head = data[:_HEAD_BYTES]
    if b"\x00" in head:
        return _unmarked_utf16(head)
    if _is_utf8(head, whole=len(head) == len(data)):
        return "utf-8"
    controls = len(head) - len(head.translate(None, _CONTROLS))
    # Compressed or encrypted bytes have a control in ten; text in an old encoding has none.
    return None if controls * 100 > len(head) else "cp1252"


def _unmarked_utf16(head: bytes) -> str | None:
    """Latin text in UTF-16 has a NUL in nearly every second byte and in none of the others."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if len(head) % 2:
        return None
    if odd > half * 0.7 and even == 0:
        return "utf-16-le"
    if even > half * 0.7 and odd == 0:
        return "utf-16-be"
    return None


def _is_utf8(head: bytes, *, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=whole)
    except UnicodeDecodeError as error:
        # One bad byte in otherwise real UTF-8 is a flaw of the file, not another encoding.
        return _mostly_utf8(head[: error.start])
    return True


def _mostly_utf8(valid: bytes) -> bool:
    return len(valid) - len(valid.decode("utf-8")) >= 4
