"""MSG, the mails of Outlook: the subject as a heading, the main headers, the body, and the names of attachments."""

import re
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.formats.old_office.ole import CompoundFile
from svc_daemon.extract.formats.old_office.rtf import RtfWalk
from svc_daemon.extract.formats.old_office.rtf_words import code_page

#: Numbers of properties.
_SUBJECT, _BODY, _RTF, _HTML, _SENT, _RECEIVED = "0037", "1000", "1009", "1013", 0x0039, 0x0E06
_SENDER, _ADDRESSES, _TO, _CC = "0C1A", ("5D01", "0C1F"), "0E04", "0E03"
_CODE_PAGES = (0x3FFD, 0x3FDE)
_NAMES = ("3707", "3704", "3001")
_BLANK_LINE = re.compile(r"\n\s*\n")
#: What packed RTF begins with, as far as its text may refer to it.
_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
#: Longest RTF that is unpacked.
_RTF_BYTES = 25 * 1024**2


class Mail:
    """The properties of a mail."""

    def __init__(self, file: CompoundFile) -> None:
        self.file = file
        self.numbers: dict[int, int] = {}
        packed = file.read("__properties_version1.0")
        for at in range(32, len(packed) - 15, 16):
            tag, value = struct.unpack_from("<I4xQ", packed, at)
            self.numbers[tag >> 16] = value
        pages = [self.numbers[each] & 0xFFFFFFFF for each in _CODE_PAGES if each in self.numbers]
        self.codec = code_page(pages[0] if pages else 1252)

    def text(self, number: str, folder: str = "") -> str:
        """Return a property that is text; empty if there is none."""
        wide = self.file.read(f"{folder}__substg1.0_{number}001F")
        narrow = self.file.read(f"{folder}__substg1.0_{number}001E")
        text = wide.decode("utf-16-le", "replace") if wide else narrow.decode(self.codec, "replace")
        return text.rstrip("\0").replace("\r\n", "\n")

    def date(self) -> str:
        """Return when the mail was sent; empty if it doesn't say."""
        ticks = self.numbers.get(_SENT) or self.numbers.get(_RECEIVED) or 0
        if not 0 < ticks < 2**57:
            return ""
        sent = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
        return sent.strftime("%Y-%m-%d %H:%M UTC")

    def attachments(self) -> list[str]:
        """Return the names of attached files."""
        paths = self.file.names()
        folders = dict.fromkeys(path.partition("/")[0] for path in paths if path.startswith("__attach"))
        names = ((self.text(number, f"{folder}/") for number in _NAMES) for folder in folders)
        return [next(filter(None, each), "(no name)") for each in names]


def read(given: Given) -> Document:
    """Read a mail. Raises ExtractionFailed if it is damaged."""
    mail, flow = Mail(CompoundFile(given.data)), FlowDocument()
    subject = mail.text(_SUBJECT)
    flow.add_heading(1, subject)
    address = next(filter(None, map(mail.text, _ADDRESSES)), "")
    sender = f"{mail.text(_SENDER)} <{address}>" if "@" in address else mail.text(_SENDER)
    known = (("From", sender), ("To", mail.text(_TO)), ("Cc", mail.text(_CC)), ("Date", mail.date()))
    flow.add("paragraph", "\n".join(f"{name}: {value}" for name, value in known if value.strip()))
    _add_body(flow, mail, given)
    names = mail.attachments()
    if names:
        flow.note_part("attachments", len(names))
        flow.warn("The mail's attachments were not read; upload them as files.")
    flow.add("paragraph", "\n".join(f"Attachment: {name}" for name in names))
    return flow.finish(title=subject)


def _add_body(flow: FlowDocument, mail: Mail, given: Given) -> None:
    """Add the body, which may be plain text, HTML or RTF."""
    body = mail.text(_BODY)
    page = mail.file.read(f"__substg1.0_{_HTML}0102") or mail.text(_HTML).encode()
    if body.strip():
        flow.add_all("paragraph", _BLANK_LINE.split(body))
    elif page:
        html = replace(given, data=page, filename="body.html", content_type="text/html")
        for block in find_reader("text/html")(html).blocks:
            flow.add("paragraph" if block.kind == "heading" else block.kind, block.text)
    elif rich := unpack_rtf(mail.file.read(f"__substg1.0_{_RTF}0102")):
        RtfWalk(rich, flow).walk()


def unpack_rtf(packed: bytes) -> bytes:
    """Return RTF as Outlook packs it. What is damaged is missing."""
    if len(packed) < 16:
        return b""
    size, kind = struct.unpack_from("<I4s", packed, 4)
    if kind == b"MELA":
        return packed[16 : 16 + size]
    known = bytearray(_DICTIONARY)
    at, most = 16, len(_DICTIONARY) + min(size, _RTF_BYTES)
    while at < len(packed) and len(known) < most:
        flags = packed[at]
        at += 1
        for bit in range(8):
            if not flags >> bit & 1:
                known += packed[at : at + 1]
                at += 1
                continue
            pair = int.from_bytes(packed[at : at + 2], "big")
            at += 2
            # The places are those of a ring of 4096 bytes.
            back = (len(known) - (pair >> 4)) % 4096
            if back == 0 or back > len(known):
                return bytes(known[len(_DICTIONARY) :])
            for _ in range((pair & 15) + 2):
                known.append(known[-back])
    return bytes(known[len(_DICTIONARY) : most])
