"""E-mail: the subject as a heading, the main headers, the body, and the names of attachments."""

from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import cast

from svc_daemon.core.text.chunking import Document
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
    body = message.get_body(("plain", "html"))
    if body is not None:
        try:
            text = str(cast("EmailMessage", body).get_content())
        except LookupError:
            # Python lacks the charset, so keep the ASCII characters.
            payload = body.get_payload(decode=True)
            text = payload.decode("ascii", "replace") if isinstance(payload, bytes) else ""
        if body.get_content_type() == "text/html":
            add_markup(flow, text)
        else:
            flow.add_all("paragraph", text.replace("\r\n", "\n").split("\n\n"))
    names = [part.get_filename() for part in message.iter_attachments()] if message.is_multipart() else []
    flow.add("paragraph", "\n".join(f"Attachment: {name}" for name in names if name))
    warnings = ("The mail's attachments were not read; upload them as files.",) if names else ()
    return flow.finish(title=subject, warnings=warnings)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name) or "")
    except (AttributeError, IndexError, TypeError, ValueError):
        # The standard library fails on malformed addresses.
        return next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
