"""Gzip: expands a single text file and reads it in its format."""

import zlib
from dataclasses import replace
from gzip import GzipFile
from io import BytesIO

from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.media_types import detect, is_text_type
from svc_daemon.extract import documents
from svc_daemon.extract.archives import READ_BYTES, check_ratio, too_large
from svc_daemon.extract.formats import Given, find_reader


def read(given: Given) -> Document:
    """Read a gzip file. Raises ExtractionFailed if it is damaged, over the limits or not text."""
    expanded = bytearray()
    try:
        with GzipFile(fileobj=BytesIO(given.data)) as packed:
            while piece := packed.read(READ_BYTES):
                expanded += piece
                if len(expanded) > given.limits.archive_bytes:
                    raise too_large(given.limits)
                check_ratio(len(given.data), len(expanded), given.limits)
    except (zlib.error, EOFError, OSError) as error:
        raise documents.unreadable("The file is damaged: it can't be expanded.") from error
    is_named = given.filename.lower().endswith(".gz")
    data, filename = bytes(expanded), given.filename[: -len(".gz")] if is_named else given.filename
    content_type = detect(data, filename)
    if not is_text_type(content_type):
        raise documents.unsupported(f"The gzip file holds no text but {content_type}; only compressed texts are read.")
    return find_reader(content_type)(replace(given, data=data, filename=filename, content_type=content_type))
