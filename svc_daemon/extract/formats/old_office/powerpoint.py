"""PPT, the decks of PowerPoint 97 to 2003: each slide is a page headed by its title, with text and speaker notes."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.old_office.ole import CompoundFile

_STREAM = "PowerPoint Document"
#: Kinds of records.
_SLIDE, _NOTES, _NOTES_ATOM, _SLIDE_ATOM, _SHOW_INFO = 1006, 1008, 1009, 1007, 1017
_PERSIST, _HEADER, _CHARACTERS, _BYTES, _LIST = 1011, 3999, 4000, 4008, 4080
_USER_EDIT, _DIRECTORY = 4085, 6002
#: Kinds of text that are a title.
_TITLES = frozenset({0, 6})
_HIDDEN_SLIDE = 4
_ENCRYPTED = 0xF3D1C4DF
#: A deck has at most so many edits.
_EDITS = 10_000
_BREAKS = str.maketrans({"\r": "\n", "\x0b": "\n"})


class DeckRecord(NamedTuple):
    """A record, or a container of records."""

    kind: int
    instance: int
    start: int
    end: int
    is_container: bool


class Deck:
    """The records of a deck."""

    def __init__(self, file: CompoundFile) -> None:
        self.data = file.read(_STREAM)
        user = file.read("Current User")
        token, edit = struct.unpack_from("<II", user, 12)
        if token == _ENCRYPTED:
            raise documents.encrypted()
        #: By its number, where each part is. Newer edits come first.
        self.places: dict[int, int] = {}
        self.document = 0
        for _ in range(_EDITS):
            record = self.record(edit)
            if record is None or record.kind != _USER_EDIT:
                break
            edit, directory, document = struct.unpack_from("<III", self.data, record.start + 8)
            self.document = self.document or document
            self.read_directory(directory)
            if edit == 0:
                break

    def read_directory(self, at: int) -> None:
        record = self.record(at)
        if record is None or record.kind != _DIRECTORY:
            return
        at = record.start
        while at + 4 <= record.end:
            packed = struct.unpack_from("<I", self.data, at)[0]
            first, count = packed & 0xFFFFF, packed >> 20
            for number in range(min(count, (record.end - at - 4) // 4)):
                self.places.setdefault(first + number, struct.unpack_from("<I", self.data, at + 4 + 4 * number)[0])
            at += 4 + 4 * count

    def record(self, at: int) -> DeckRecord | None:
        """Return the record that begins here, or None."""
        if not 0 <= at <= len(self.data) - 8:
            return None
        packed, kind, size = struct.unpack_from("<HHI", self.data, at)
        return DeckRecord(kind, packed >> 4, at + 8, min(at + 8 + size, len(self.data)), packed & 15 == 15)

    def within(self, record: DeckRecord | None) -> Iterator[DeckRecord]:
        """Yield all records within one, to any depth, in their order."""
        at, end = (record.start, record.end) if record else (0, 0)
        while at < end and (each := self.record(at)):
            yield each
            at = each.start if each.is_container else each.end

    def part(self, number: int) -> DeckRecord | None:
        return self.record(self.places.get(number, -1))

    def text(self, record: DeckRecord) -> str:
        """Return the text of a record."""
        stored = self.data[record.start : record.end]
        codec = "utf-16-le" if record.kind == _CHARACTERS else "latin-1"
        return stored.decode(codec, "replace").translate(_BREAKS)

    def number(self, record: DeckRecord, at: int = 0) -> int:
        """Return a number of a record; 0 if the record is too short."""
        packed = self.data[record.start + at : min(record.start + at + 4, record.end)]
        return int.from_bytes(packed, "little")

    def texts(self, record: DeckRecord | None) -> list[tuple[bool, str]]:
        """Return the texts within a record, and whether each is a title."""
        found: list[tuple[bool, str]] = []
        kind = -1
        for each in self.within(record):
            if each.kind == _HEADER:
                kind = self.number(each)
            elif each.kind in (_CHARACTERS, _BYTES):
                found.append((kind in _TITLES, self.text(each)))
                kind = -1
        return found


def read(given: Given) -> Document:
    """Read a PPT file. Raises ExtractionFailed if it is damaged, encrypted or too old."""
    flow = FlowDocument()
    empty: list[int] = []
    try:
        deck = Deck(CompoundFile(given.data))
        document = deck.part(deck.document)
        lists = {each.instance: each for each in deck.within(document) if each.kind == _LIST}
        slides = _slides(deck, lists.get(0))
        notes: dict[int, DeckRecord] = {}
        for number, _, _ in _slides(deck, lists.get(2)):
            part = deck.part(number)
            atom = next((each for each in deck.within(part) if each.kind == _NOTES_ATOM), None)
            if part and atom:
                notes[deck.number(atom)] = part
        for page, (number, name, outlined) in enumerate(slides, 1):
            flow.page, before = page, flow.count
            flow.headings.clear()
            _add_slide(flow, deck, deck.part(number), outlined, notes.get(name))
            if flow.count == before:
                empty.append(page)
    except (struct.error, IndexError) as error:
        raise documents.unreadable("The file is damaged: its slides can't be found.") from error
    if document is None:
        raise documents.unreadable("The file is damaged, or of a version of PowerPoint before 97.")
    return flow.finish(title=flow.headings.first, pages=len(slides), pages_without_text=empty)


def _slides(deck: Deck, listed: DeckRecord | None) -> list[tuple[int, int, list[tuple[bool, str]]]]:
    """Return for each slide of a list the number of its part, its own number, and the texts of its outline."""
    slides: list[tuple[int, int, list[tuple[bool, str]]]] = []
    kind = -1
    for each in deck.within(listed):
        if each.kind == _PERSIST:
            slides.append((deck.number(each), deck.number(each, 12), []))
        elif each.kind == _HEADER:
            kind = deck.number(each)
        elif each.kind in (_CHARACTERS, _BYTES) and slides:
            slides[-1][2].append((kind in _TITLES, deck.text(each)))
    return slides


def _add_slide(
    flow: FlowDocument, deck: Deck, part: DeckRecord | None, outlined: list[tuple[bool, str]], notes: DeckRecord | None
) -> None:
    texts = [*outlined, *deck.texts(part)]
    title = next((text for is_title, text in texts if is_title and text.strip()), "")
    flow.add_heading(1, one_line(title))
    texts.remove((True, title)) if title else None
    for _, text in texts:
        # An asterisk stands for the number of the slide, or for the date.
        flow.add_all("paragraph", () if text.strip() == "*" else (text,))
    noted = [text for _, text in deck.texts(notes) if any(map(str.isalnum, text))]
    if flow.add_all("paragraph", noted):
        flow.note_part("notes")
    shown = next((each for each in deck.within(part) if each.kind == _SHOW_INFO), None)
    if shown and deck.number(shown, 10) & _HIDDEN_SLIDE:
        flow.note_part("hidden_slides")
