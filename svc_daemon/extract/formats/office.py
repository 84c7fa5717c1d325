"""RTF, OpenDocument text, Outlook messages and legacy Office files. Needs the extra `formats`."""

import re
from importlib import import_module

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_archive
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.wire.versions import install_command

_BLANK_LINE = re.compile(r"\n\s*\n")


def read(given: Given) -> Document:
    """Read the file. Raises ExtractionFailed if it is damaged, over the limits, or the extra is missing."""
    if given.data.startswith(b"PK"):
        check_archive(given.data, given.limits)
    try:
        kreuzberg = import_module("kreuzberg")
    except ImportError as error:
        raise documents.unsupported(
            f"Files of type {given.content_type} need the extra 'formats'. Run {install_command('formats')} in the"
            " environment in which svc is installed, then retry the source."
        ) from error
    try:
        result = kreuzberg.extract_bytes_sync(given.data, given.content_type)
    except kreuzberg.KreuzbergError as error:
        raise documents.unreadable("The file is damaged, or not of the type that it seems to be.") from error
    flow = FlowDocument()
    flow.add_all("paragraph", _BLANK_LINE.split(result.content))
    return flow.finish()
