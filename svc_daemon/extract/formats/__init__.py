"""Readers that turn a file into a Document, one for each format, in a folder for each family of formats.

Each module is imported on first use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast

from svc_daemon.core.text.chunking import Document, RecognizedPage
from svc_daemon.core.text.media_types import ENCRYPTED_OFFICE, find_format
from svc_daemon.extract import documents
from svc_daemon.extract.child_limits import CageLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A file to read."""

    data: bytes
    filename: str
    #: The media type detected from the bytes.
    content_type: str
    limits: CageLimits
    #: The label of the encoding that was declared with the type; empty if none, or UTF-8.
    charset: str = ""
    #: How many files contain this one, as a mail contains an attachment.
    depth: int = 0
    #: Whether it is a page from the web, with menus and other text around its main part.
    is_page: bool = False
    #: The pages that were recognised, by their numbers.
    recognized: Mapping[int, RecognizedPage] = field(default_factory=dict)


Reader = Callable[[Given], Document]

#: The module and the function that read a format, by the format's key.
READERS = {
    "text": ("text.texts", "read_text"),
    "markdown": ("text.markdown", "read"),
    "rst": ("text.markups", "read_rst"),
    "asciidoc": ("text.markups", "read_asciidoc"),
    "org": ("text.markups", "read_org"),
    "latex": ("text.latex", "read"),
    "man": ("text.man_pages", "read"),
    "html": ("html.html", "read"),
    "pdf": ("pdf.pdf", "read"),
    "docx": ("open_xml.word.docx", "read"),
    "pptx": ("open_xml.slides.pptx", "read"),
    "xlsx": ("open_xml.sheets.xlsx", "read"),
    "sheets": ("open_xml.sheets.xls", "read"),
    "rtf": ("old_office.rtf", "read"),
    "opendocument": ("odf.opendocument", "read"),
    "csv": ("text.delimited", "read"),
    "json": ("text.texts", "read_json"),
    "notebook": ("html.notebooks", "read"),
    "mail": ("mail.mails", "read"),
    "mailbox": ("mail.mailboxes", "read"),
    "calendar": ("mail.calendars", "read"),
    "evernote": ("html.evernote", "read"),
    "epub": ("html.epub", "read"),
    "gzip": ("gzips", "read"),
    "code": ("text.texts", "read_code"),
    "msg": ("mail.outlook", "read"),
    "doc": ("old_office.word", "read"),
    "ppt": ("old_office.powerpoint", "read"),
    "picture": ("pictures", "read"),
}


def find_reader(content_type: str) -> Reader:
    """Return the reader for a media type. Raises ExtractionFailed."""
    if content_type == ENCRYPTED_OFFICE:
        raise documents.encrypted()
    format_ = find_format(content_type)
    if format_ is None:
        raise documents.unsupported(f"Files of type {content_type} can't be read as text.")
    module, name = READERS[format_.key]
    return cast("Reader", getattr(import_module(f"{__name__}.{module}"), name))
