"""E-mail: the headers people know as a heading and a line, the body as text or HTML, and the names of attachments."""

from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import cast

from svc_daemon.core.documents import Document
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html import add_markup

_HEADERS = ("From", "To", "Cc", "Date")


def read(given: Given) -> Document:
    message = BytesParser(policy=policy.default).parsebytes(given.data)
    flow = FlowDocument()
    subject = _header(message, "Subject")
    flow.add_heading(1, subject)
    known = ((name, _header(message, name)) for name in _HEADERS)
    flow.add("paragraph", "\n".join(f"{name}: {value}" for name, value in known if value))
    _add_body(flow, message)
    names = [part.get_filename() for part in message.iter_attachments()] if message.is_multipart() else []
    flow.add("paragraph", "\n".join(f"Attachment: {name}" for name in names if name))
    warnings = ("The mail's attachments were not read; upload them as files.",) if names else ()
    return flow.finish(title=subject, warnings=warnings)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name) or "")
    except (AttributeError, IndexError, TypeError, ValueError):
        # The standard library's parser of addresses trips over malformed ones; as written they can be read.
        return next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")


def _add_body(flow: FlowDocument, message: EmailMessage) -> None:
    body = message.get_body(("plain", "html"))
    if body is None:
        return
    text = _content(cast("EmailMessage", body))
    if body.get_content_type() == "text/html":
        add_markup(flow, text)
        return
    flow.add_all("paragraph", text.replace("\r\n", "\n").split("\n\n"))


def _content(part: EmailMessage) -> str:
    try:
        return str(part.get_content())
    except LookupError:
        # A charset that nobody knows: what is ASCII of it can be read all the same.
        payload = part.get_payload(decode=True)
        return payload.decode("ascii", "replace") if isinstance(payload, bytes) else ""
