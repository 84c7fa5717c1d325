"""Headers of mails and their parts, decoded as mail programs show them."""

import binascii
import re
from email.errors import InvalidBase64LengthDefect
from email.message import Message
from typing import Any

from svc_daemon.extract.builders import one_line
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats.text.texts import decode

#: A word in another encoding than ASCII: charset, `B` or `Q`, and the encoded bytes.
_ENCODED = re.compile(r"=\?([^?*\s]{1,40})(?:\*[^?]{0,40})?\?([bBqQ])\?([^?]*)\?=")
#: Headers in which quotation marks only enclose names.
_ADDRESSES = frozenset({"From", "To", "Cc", "Bcc"})
_ESCAPE = re.compile(rb"=([0-9A-Fa-f]{2})")
_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/]")


def header_text(part: "Message[Any, Any]", name: str) -> str:
    """Return a header's decoded text; empty if there is none."""
    # `raw_items`, because the standard library's own decoding fails for malformed headers.
    raw = next((str(value) for key, value in part.raw_items() if key.lower() == name.lower()), "")
    return decode_header(part, name, raw)


def decode_header(part: "Message[Any, Any]", name: str, raw: str) -> str:
    """Return the decoded text of a header that is written like this."""
    if not raw.isascii():
        # Such headers often have the encoding of the text.
        texts = (leaf.get_param("charset") for leaf in part.walk() if leaf.get_content_maintype() == "text")
        charset = next((label for label in texts if isinstance(label, str)), "")
        raw = decode_bytes(raw.encode("utf-8", "surrogateescape"), charset)[0]
    if name in _ADDRESSES:
        raw = raw.replace('"', "")
    pieces: list[str] = []
    word, end = b"", 0
    charset = ""
    for found in _ENCODED.finditer(raw):
        between = raw[end : found.start()]
        # A character may be split between words, which are one if only white space is between them.
        if charset and (between.strip() or found[1].lower() != charset):
            pieces.append(decode_bytes(word, charset)[0])
            word = b""
        if not charset or between.strip():
            pieces.append(between)
        charset, end = found[1].lower(), found.end()
        word += _decode_word(found[2], found[3])
    pieces += [decode_bytes(word, charset)[0] if charset else "", raw[end:]]
    return one_line("".join(pieces))


def file_name(part: "Message[Any, Any]") -> str:
    """Return the file name of a part; empty if it has none."""
    for parameter, header in (("filename", "content-disposition"), ("name", "content-type")):
        found = part.get_param(parameter, header=header)
        if isinstance(found, tuple):
            charset, _, value = found
            return one_line(decode_bytes(value.encode("latin-1", "replace"), charset or "")[0])
        if found:
            holder: Message[Any, Any] = Message()
            holder["name"] = found
            return header_text(holder, "name")
    return ""


def decode_bytes(data: bytes, charset: str) -> tuple[str, tuple[str, ...]]:
    """Decode text by its declared encoding, or else by a guess, with warnings."""
    try:
        return decode(data, charset)
    except ExtractionFailed:
        return data.decode("utf-8", "replace"), ("The text of a part isn't valid in any known encoding.",)


def part_bytes(part: "Message[Any, Any]") -> bytes:
    """Return the content of a part, decoded as far as it goes; empty if the part has other parts."""
    data: Any = part.get_payload(decode=True) or b""
    if any(isinstance(defect, InvalidBase64LengthDefect) for defect in part.defects):
        # The end is missing.
        return _from_base64(data.decode("ascii", "replace"))
    return bytes(data)


def _decode_word(encoding: str, text: str) -> bytes:
    if encoding in "qQ":
        data = text.replace("_", " ").encode("utf-8", "surrogateescape")
        return _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), data)
    return _from_base64(text)


def _from_base64(text: str) -> bytes:
    digits = _NO_BASE64.sub("", text)
    try:
        return binascii.a2b_base64(digits[: len(digits) - (len(digits) % 4 == 1)] + "=" * (-len(digits) % 4))
    except binascii.Error:
        return b""
