"""E-mail: the subject as a heading, the main headers, all text in its order, forwarded mails, and the attachments.

Text is plain or HTML, wrapped and encoded in several ways; of several forms of one text, the better one is read.
"""

import html
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from email import policy
from email.message import Message
from email.parser import BytesParser
from typing import Any, NamedTuple

from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.document_formats import CALENDAR, CONTACTS
from svc_daemon.core.text.media_types import detect, find_format, from_declared, text_encoding
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.formats.html.html import add_markup, decode_markup
from svc_daemon.extract.formats.mail.headers import decode_bytes, decode_header, file_name, header_text, part_bytes

#: HTML is read unless it has less than this share of the words of the plain text, as a stub has.
_HTML_SHARE = 0.6
_ADDRESS = re.compile(r"(?<!\S)\S*://\S*")
_WORD = re.compile(r"\w+")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
#: A file within plain text, as mail programs wrote it before MIME.
_UUENCODED = re.compile(r"^begin [0-7]{3} (\S[^\n]{0,200})\n(?:[ -`]{1,70}\n)*?end[ \t]*$", re.MULTILINE)
_QUOTE = re.compile(r">*")
_ENRICHED = re.compile(r"</?[A-Za-z][\w-]{0,60}>")
#: Forms of a text that stand for each other.
FORMS = frozenset({"text/plain", "text/html", "text/x-amp-html", "text/enriched", "text/richtext"})
_ENRICHED_TYPES = frozenset({"text/enriched", "text/richtext"})


class MailTexts:
    """Adds text parts to a document."""

    def __init__(self, flow: FlowDocument) -> None:
        self._flow = flow

    def add(self, part: "Message[Any, Any]") -> None:
        """Add a text part in its own form."""
        data = part_bytes(part)
        kind, charset = part.get_content_type(), part.get_param("charset") or ""
        if isinstance(charset, tuple):
            charset = charset[2]
        if name := file_name(part):
            self._flow.add("paragraph", f"Attachment: {name}")
        if kind == "text/html":
            text, warnings = decode_markup(data, charset)
            add_markup(self._flow, text)
        else:
            text, warnings = decode_bytes(data, charset)
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            if kind in _ENRICHED_TYPES:
                text = _ENRICHED.sub("", text)
            if part.get_param("format") == "flowed":
                text = unwrap(text, joins_words=part.get_param("delsp") == "yes")
            for file in _UUENCODED.finditer(text):
                self._flow.warn(f"The attachment {file[1]} was not read: it is a part of the mail's text.")
            text = _UUENCODED.sub(r"Attachment: \1", text)
            self._flow.add_all("paragraph", _BLANK_LINES.split(text))
        for warning in warnings:
            self._flow.warn(warning)


def find_shown(alternatives: Sequence["Message[Any, Any]"]) -> "Message[Any, Any]":
    """Return the alternative that is read: HTML, as mail programs show it, unless only the plain text has the words."""
    forms: dict[str, Message[Any, Any]] = {}
    for alternative in alternatives:
        leaves = (leaf.get_content_type() for leaf in alternative.walk() if leaf.get_content_maintype() == "text")
        kind = next(leaves, "")
        if kind not in forms or len(_words(alternative)) >= len(_words(forms[kind])):
            forms[kind] = alternative
    html, plain = forms.get("text/html"), forms.get("text/plain")
    if html is None or plain is None:
        return html or plain or forms.get("text/enriched") or alternatives[-1]
    return html if len(_words(html)) >= len(_words(plain)) * _HTML_SHARE else plain


def _words(part: "Message[Any, Any]") -> set[str]:
    flow = FlowDocument()
    texts = MailTexts(flow)
    for leaf in part.walk():
        if leaf.get_content_type() in {"text/html", "text/plain"}:
            texts.add(leaf)
    return {*_WORD.findall(_ADDRESS.sub(" ", flow.finish().text))}


def unwrap(text: str, *, joins_words: bool) -> str:
    """Join the lines of paragraphs that a mail program has wrapped with a space at the end of each line."""
    lines: list[list[str]] = []
    quote_before, is_open = "", False
    for line in text.split("\n"):
        quote = _QUOTE.match(line)
        marks = quote[0] if quote else ""
        words = line[len(marks) :].removeprefix(" ")
        if is_open and marks == quote_before and words != "-- ":
            lines[-1].append(words)
        else:
            lines.append([f"{marks} {words}" if marks else words])
        is_open, quote_before = words.endswith(" ") and words != "-- ", marks
        if is_open and joins_words:
            lines[-1][-1] = lines[-1][-1][:-1]
    return "\n".join(map("".join, lines))


_HEADERS = ("From", "To", "Cc", "Bcc", "Date")
_MAIL = frozenset({"message/rfc822", "message/global"})
#: Mails within mails are read to this depth.
_MOST_FORWARDS = 10
_DEEPEST_HEADING = 6
#: Of a page with more, the frames are not read.
_MOST_FRAMES = 50
#: Formats whose files hold files: nothing within an attachment is opened.
_CONTAINERS = frozenset({"gzip"})
_ENCRYPTED = frozenset({"multipart/encrypted", "application/pgp-encrypted"})
_PKCS7 = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_REENCODED = frozenset({"base64", "quoted-printable"})
#: The line before a mail of Apple's program: its number of bytes.
_APPLE_SIZE = re.compile(rb"(\d{1,9})[ \t]*\r?\n")
#: The part of the time for a document in which the attachments must be begun.
TIME_SHARE = 1 / 3


class _Step(NamedTuple):
    """What is to be read next."""

    #: `mail`, `part`, or `end` for the end of a forwarded mail.
    kind: str
    part: "Message[Any, Any]"
    #: How many mails it is forwarded in.
    depth: int


def read(given: Given) -> Document:
    """Read a mail. Raises ExtractionFailed if it is encrypted."""
    return _MailReader(given).read()


class _MailReader:
    """Reads a mail part by part, and its attachments at the end."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._flow = FlowDocument()
        self._texts = MailTexts(self._flow)
        #: The subject of the mail, and of each mail within it that is being read.
        self._subjects: list[str] = []
        self._attachments: list[Message[Any, Any]] = []

    def read(self) -> Document:
        message = _parse(self._given.data)
        if _is_encrypted(message):
            raise documents.encrypted()
        steps = [_Step("mail", message, 0)]
        while steps:
            step = steps.pop()
            if step.kind == "mail":
                self._subjects.append(header_text(step.part, "Subject") or ("Forwarded mail" if step.depth else ""))
                self._flow.add_heading(min(step.depth + 1, _DEEPEST_HEADING), self._subjects[-1])
                known = ((name, header_text(step.part, name)) for name in _HEADERS)
                self._flow.add("paragraph", "\n".join(f"{name}: {value}" for name, value in known if value))
                steps.append(step._replace(kind="part"))
            elif step.kind == "end":
                self._subjects.pop()
                self._flow.headings.enter(step.depth + 1, self._subjects[-1])
            else:
                steps += reversed(self.take(step))
        self.add_attachments()
        return self._flow.finish(title=self._subjects[0])

    def take(self, step: _Step) -> Sequence[_Step]:
        """Read a part, or return the parts that it consists of."""
        part, kind = step.part, step.part.get_content_type()
        inner: Any = part.get_payload() if part.is_multipart() else ()
        if kind in _MAIL and step.depth < _MOST_FORWARDS:
            self._flow.note_part("forwarded_mails")
            return _Step("mail", find_mail(part), step.depth + 1), step._replace(kind="end")
        if kind in _MAIL:
            self._flow.warn(f"Mails within more than {_MOST_FORWARDS} mails were not read.")
        elif kind == "multipart/alternative" and inner:
            shown = find_shown(inner)
            for other in inner:
                leaves = [] if other is shown else [each for each in other.walk() if not each.is_multipart()]
                self._attachments += [leaf for leaf in leaves if leaf.get_content_type() not in FORMS]
            return (_Step("part", shown, step.depth),)
        elif kind == "message/delivery-status":
            for group in inner:
                first = dict(reversed([*group.raw_items()]))
                named = ((name, decode_header(group, name, str(first[name]))) for name in dict.fromkeys(group.keys()))
                self._flow.add("paragraph", "\n".join(f"{name}: {value}" for name, value in named))
        elif inner and _is_encrypted(part):
            self._flow.warn("A part of the mail is encrypted and was not read.")
        elif inner:
            # Other parts show pictures and the like.
            embedded = inner[1:] if kind == "multipart/related" else ()
            shown_elsewhere = {
                id(each)
                for each in embedded
                if (each["content-id"] or each["content-location"])
                and not _is_attached(each)
                and not is_frame(each, inner)
            }
            return [_Step("part", each, step.depth) for each in inner if id(each) not in shown_elsewhere]
        elif _is_attached(part) or part.get_content_maintype() not in {"text", "multipart"} or is_card(kind):
            self._attachments.append(part)
        else:
            self._texts.add(part)
        return ()

    def add_attachments(self) -> None:
        """Add the attachments: what they hold where that can be read, otherwise their names."""
        limits, begun = self._given.limits, time.monotonic()
        bytes_left = limits.archive_bytes
        for number, part in enumerate(distinct(self._attachments), 1):
            name = file_name(part) or part.get_content_type()
            self._flow.headings.enter(1, self._subjects[0])
            data = part_bytes(part)
            bytes_left -= len(data)
            reason = "upload it as a file."
            try:
                has_time = time.monotonic() - begun < limits.wall_seconds * TIME_SHARE
                if not self._given.depth and bytes_left >= 0 and number <= limits.archive_entries and has_time:
                    charset = part.get_param("charset")
                    content_type = detect(data, name, part.get_content_type())
                    if find_format(content_type) is None and part.get_content_maintype() == "text":
                        content_type = detect(data, name)
                    given = replace(
                        self._given,
                        data=data,
                        filename=name,
                        content_type=content_type.partition(";")[0],
                        charset=charset if isinstance(charset, str) else "",
                        depth=self._given.depth + 1,
                    )
                    format_ = find_format(given.content_type)
                    if format_ is not None and format_.key in _CONTAINERS:
                        raise documents.unsupported("Archives in mails are not opened.")
                    document = find_reader(given.content_type)(given)
                    self._flow.note_part("attachments")
                    self._flow.add_heading(2, f"Attachment: {name}")
                    self._flow.add_document(document, level=2, name=name)
                    continue
            except ExtractionFailed as failure:
                reason = failure.message
            except RecursionError:
                reason = "it is nested too deeply."
            self._flow.add("paragraph", f"Attachment: {name}")
            self._flow.warn(f"The attachment {name} was not read: {reason}")


def is_card(kind: str) -> bool:
    """Return whether a type is that of calendars or contacts."""
    return from_declared(kind) in (CALENDAR, CONTACTS)


def distinct(attachments: Iterable["Message[Any, Any]"]) -> Iterator["Message[Any, Any]"]:
    """Yield the attachments without copies of invitations, which are often there under two types."""
    seen = set[bytes]()
    for part in attachments:
        data = part_bytes(part)
        invitation = data.replace(b"\r\n", b"\n") if data.startswith(b"BEGIN:VCALENDAR") else b""
        if not invitation or invitation not in seen:
            yield part
        seen.add(invitation)


def is_frame(part: "Message[Any, Any]", beside: Sequence["Message[Any, Any]"]) -> bool:
    """Return whether a page beside a part shows it in a frame, as in a saved web page."""
    names = (f"cid:{str(part['content-id'] or '').strip('<> ')}", str(part["content-location"] or ""))
    sources = [re.escape(html.escape(name).encode()) for name in names if name not in ("cid:", "")]
    pages = [each for each in beside if each is not part and each.get_content_type() == "text/html"]
    if not sources or part.get_content_type() != "text/html" or len(pages) > _MOST_FRAMES:
        return False
    frame = re.compile(rb"<i?frame\b[^<>]*[\"'=](?:" + b"|".join(sources) + rb")[\"'\s>]", re.IGNORECASE)
    return any(frame.search(part_bytes(page)) for page in pages)


def _parse(data: bytes) -> "Message[Any, Any]":
    if b"\0" in data[:100] and (codec := text_encoding(data)):
        data = data.decode(codec, "replace").encode()
    if size := _APPLE_SIZE.match(data):
        # What follows is Apple's own.
        data = data[size.end() :][: int(size[1])]
    # `compat32`, because the newer policies fail for malformed headers.
    return BytesParser(policy=policy.compat32).parsebytes(data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n"))


def find_mail(part: "Message[Any, Any]") -> "Message[Any, Any]":
    """Return the mail that a part holds, which may be encoded, although it should not."""
    inner: Any = part.get_payload()
    encoding = str(part.get("content-transfer-encoding", "")).strip().lower()
    if isinstance(inner, list) and inner and encoding not in _REENCODED:
        found: Message[Any, Any] = inner[0]
        return found
    holder: Message[Any, Any] = Message()
    holder["content-transfer-encoding"] = encoding
    holder.set_payload(inner[0].as_string() if isinstance(inner, list) and inner else inner)
    data = part_bytes(holder)
    return _parse(data)


def _is_encrypted(part: "Message[Any, Any]") -> bool:
    kind = part.get_content_type()
    return kind in _ENCRYPTED or (kind in _PKCS7 and part.get_param("smime-type") != "signed-data")


def _is_attached(part: "Message[Any, Any]") -> bool:
    return part.get_content_disposition() == "attachment"
