"""Footnotes, endnotes and comments of a Word file."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from svc_daemon.extract.builders import one_line
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, qname

_IDENTITY, _TYPE, _AUTHOR = qname("w:id"), qname("w:type"), qname("w:author")
#: The part of each kind, and its elements.
_PARTS = {"footnote": "footnotes", "endnote": "endnotes", "comment": "comments"}


class Note(NamedTuple):
    #: The part that it is from.
    part: str
    element: Any
    #: What it is, with its author if it has one.
    label: str


class WordNotes:
    """Finds notes by their ids. Each is taken once."""

    def __init__(self, package: OfficePackage, main: str) -> None:
        self._notes: dict[tuple[str, str], Note] = {}
        for kind, plural in _PARTS.items():
            for part in package.related(main, plural):
                root = package.parse(part)
                for element in () if root is None else root.iter(qname(f"w:{kind}")):
                    # Lines between the text and its notes are written as notes, too.
                    if element.get(_TYPE) in {None, "normal"}:
                        author = one_line(element.get(_AUTHOR) or "")
                        label = f"{kind.capitalize()} by {author}" if author else kind.capitalize()
                        self._notes[kind, element.get(_IDENTITY) or ""] = Note(part, element, label)

    def take(self, kind: str, identity: str) -> Note | None:
        return self._notes.pop((kind, identity), None)

    def unused_comments(self) -> Iterator[str]:
        """Yield the ids of the comments that weren't taken."""
        yield from [identity for kind, identity in self._notes if kind == "comment"]
