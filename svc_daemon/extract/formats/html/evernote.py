"""Evernote's exports: each note under its title, its text read as HTML, with the names of its files."""

import re

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats import Given, xml_files
from svc_daemon.extract.formats.html.html import add_markup

_TASK = re.compile(r"<en-todo\b([^<>]*)>")
_PROLOGUE = re.compile(r"\A\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>]*>)?")
#: Text with a password.
_ENCRYPTED = re.compile(r"<en-crypt\b[^<]*</en-crypt>")


def read(given: Given) -> Document:
    """Read the notes. Raises ExtractionFailed if the XML is damaged."""
    root = xml_files.parse(given.data, "The export is damaged: its XML can't be read.")
    flow = FlowDocument()
    for note in root.iter("note"):
        title = one_line(note.findtext("title") or "")
        flow.headings.clear()
        flow.add_heading(1, title)
        tags = ", ".join(filter(None, (one_line(tag.text or "") for tag in note.iterchildren("tag"))))
        flow.add("paragraph", f"Tags: {tags}" if tags else "")
        markup = _PROLOGUE.sub("", note.findtext("content") or "")
        if _ENCRYPTED.search(markup):
            flow.warn(f"Encrypted text of the note {title} was not read.")
        markup = _TASK.sub(lambda task: "☑ " if "true" in task[1] else "☐ ", _ENCRYPTED.sub("", markup))
        inner = FlowDocument()
        add_markup(inner, markup)
        flow.add_document(inner.finish(), level=1)
        flow.headings.enter(1, title)
        for name in note.iterfind("resource/resource-attributes/file-name"):
            if flow.add("paragraph", f"Attachment: {one_line(name.text or '')}"):
                flow.warn(f"The attachment {one_line(name.text or '')} was not read: upload it as a file.")
    return flow.finish()
