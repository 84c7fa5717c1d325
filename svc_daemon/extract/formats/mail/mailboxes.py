"""Mailboxes (mbox): one mail after another, each read as a mail under its subject."""

import re
import time
from dataclasses import replace

from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.document_formats import MAIL
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.mail import mails
from svc_daemon.extract.formats.text.texts import read_text

#: The line before each mail: `From`, an address and the time. A blank line is before it; a header or a text follows.
_BEGIN = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From (?=[^\n]*\d\d:\d\d)[^\n]*+\n(?=[!-9;-~]{1,76}:|\r?\n)")
#: A line of a text that would look like it has one more mark of a quotation.
_QUOTED = re.compile(rb"^>(?=>*From )", re.MULTILINE)
#: Thunderbird marks what it has deleted, and removes it later.
_STATUS = re.compile(rb"^X-Mozilla-Status:[ \t]*([0-9A-F]{4})", re.IGNORECASE | re.MULTILINE)
_DELETED, _HEAD_BYTES = 0x0008, 2000
#: The part of the time for a document in which the last mail must be begun.
_TIME_SHARE = 0.4


def read(given: Given) -> Document:
    """Read a mailbox. Mails that can't be read are named."""
    flow, begun = FlowDocument(), time.monotonic()
    limits = given.limits
    most_seconds = min(limits.wall_seconds, limits.cpu_seconds) * _TIME_SHARE
    begins = [*_BEGIN.finditer(given.data)]
    if not begins:
        return read_text(given)
    ends = [*(begin.start() for begin in begins[1:]), len(given.data)]
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True), 1):
        past = time.monotonic() - begun
        if past > most_seconds:
            flow.warn(f"The mails from number {number} on were not read: the mailbox has {len(begins)}. Split it.")
            break
        data = _QUOTED.sub(b"", given.data[begin.end() : end])
        flow.headings.clear()
        try:
            # The attachments of all mails together have the time that those of one mail have.
            left = replace(limits, wall_seconds=max(0.0, limits.wall_seconds - past / mails.TIME_SHARE))
            mail = mails.read(replace(given, data=data, content_type=MAIL, limits=left))
        except ExtractionFailed as failure:
            flow.warn(f"Mail {number} was not read: {failure.message}")
            continue
        status = _STATUS.search(data[:_HEAD_BYTES])
        if status and int(status[1], 16) & _DELETED:
            flow.hide(mail.text, "deleted mail")
            continue
        flow.add_document(mail, name=f"Mail {number}" + (f", {mail.title}" if mail.title else ""))
    return flow.finish()
