"""The extractors: one module for each format, each with `read(given) -> Document`.

`READERS` names them by the keys of `core.media_types.FORMATS`; a module is imported when the first document asks for
it, so that a daemon that never sees a PDF never pays for its parser.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from svc_daemon.core.documents import Document
from svc_daemon.core.media_types import ENCRYPTED_OFFICE, find_format
from svc_daemon.extract import failures
from svc_daemon.extract.limits import CageLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A file to read, and what is known about it."""

    data: bytes
    filename: str
    #: The type that the bytes turned out to have.
    content_type: str
    limits: CageLimits


Reader = Callable[[Given], Document]

#: Format key to the module below this package.
READERS = {
    "text": "texts",
    "markdown": "markdown",
    "html": "html",
    "pdf": "pdf",
    "docx": "docx",
    "pptx": "pptx",
    "sheets": "sheets",
    "csv": "csv_tables",
    "json": "json_lines",
    "notebook": "notebooks",
    "mail": "mails",
    "epub": "epub",
    "gzip": "gzips",
    "code": "code",
    "office": "office",
}


def find_reader(content_type: str) -> Reader:
    """The extractor of a media type; raises ExtractionFailed where there is none."""
    if content_type == ENCRYPTED_OFFICE:
        raise failures.encrypted()
    format_ = find_format(content_type)
    if format_ is None:
        raise failures.unsupported(f"Files of type {content_type} can't be read as text.")
    module = import_module(f"{__name__}.{READERS[format_.key]}")
    return cast("Reader", module.read)
