"""The text parts of mails: plain text, its wrapped and encoded forms, and HTML; and which of several forms is read."""

import re
from collections.abc import Sequence
from email.message import Message
from typing import Any

from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats.html.html import add_markup, decode_markup
from svc_daemon.extract.formats.mail.headers import decode_bytes, file_name

#: HTML is read unless it has less than this share of the words of the plain text, as a stub has.
_HTML_SHARE = 0.6
_ADDRESS = re.compile(r"\S*://\S*")
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
        data: Any = part.get_payload(decode=True) or b""
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
    lines: list[str] = []
    quote_before, is_open = "", False
    for line in text.split("\n"):
        quote = _QUOTE.match(line)
        marks = quote[0] if quote else ""
        words = line[len(marks) :].removeprefix(" ")
        if is_open and marks == quote_before and words != "-- ":
            lines[-1] += words
        else:
            lines.append(f"{marks} {words}" if marks else words)
        is_open, quote_before = words.endswith(" ") and words != "-- ", marks
        if is_open and joins_words:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)
