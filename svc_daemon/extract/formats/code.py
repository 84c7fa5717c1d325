"""Source code and the like: runs of lines between blank ones, line for line as they are."""

from svc_daemon.core.documents import Document
from svc_daemon.extract.builders import LineDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.texts import decode


def read(given: Given) -> Document:
    text, warnings = decode(given.data)
    document = LineDocument(text)
    document.add_paragraphs("code", 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)
