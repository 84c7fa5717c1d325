"""Files that a Word file imports whole, such as a page of HTML: each is read by the reader of its own format."""

import posixpath
from dataclasses import replace
from typing import Any

from svc_daemon.core.text.media_types import detect
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.open_xml.packages import OfficePackage


def add_imported(flow: FlowDocument, package: OfficePackage, part: str, element: Any, given: Given) -> None:
    """Add the blocks of the file that `w:altChunk` names; a warning if it can't be read."""
    target = package.target(part, element)
    data = None if target is None else package.read(target)
    if target is None or data is None:
        return
    name = posixpath.basename(target)
    # A file within a file within this one isn't opened.
    if given.depth:
        flow.warn(f"The imported part {name} was not read, because it is in an imported part.")
        return
    content_type = detect(data, name)
    try:
        document = find_reader(content_type)(
            replace(given, data=data, filename=name, content_type=content_type, depth=given.depth + 1)
        )
    except ExtractionFailed as failure:
        flow.warn(f"The imported part {name} was not read. {failure.message}")
        return
    flow.add_document(document)
