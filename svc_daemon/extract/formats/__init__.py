"""Readers that turn a file into a Document, one for each format.

Each module is imported on first use.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from svc_daemon.core.text.chunking import Document
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


Reader = Callable[[Given], Document]

#: The module and the function that read a format, by the format's key.
READERS = {
    "text": ("texts", "read_text"),
    "markdown": ("markdown", "read"),
    "rst": ("markups", "read_rst"),
    "asciidoc": ("markups", "read_asciidoc"),
    "org": ("markups", "read_org"),
    "latex": ("latex", "read"),
    "man": ("man_pages", "read"),
    "html": ("html", "read"),
    "pdf": ("pdf", "read"),
    "docx": ("docx", "read"),
    "pptx": ("pptx", "read"),
    "xlsx": ("xlsx", "read"),
    "sheets": ("sheets", "read"),
    "rtf": ("rtf", "read"),
    "opendocument": ("opendocument", "read"),
    "csv": ("delimited", "read"),
    "json": ("texts", "read_json"),
    "notebook": ("notebooks", "read"),
    "mail": ("mails", "read"),
    "epub": ("epub", "read"),
    "gzip": ("gzips", "read"),
    "code": ("texts", "read_code"),
    "msg": ("outlook", "read"),
    "doc": ("old_word", "read"),
    "ppt": ("old_powerpoint", "read"),
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
