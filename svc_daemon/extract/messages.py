"""The protocol between the daemon, the fork server and the children.

- The daemon sends requests to the fork server: a length, then JSON. File descriptors come with the first byte.
- The fork server reports how each child ended, in a JSON line on the same socket.
- With a document whose pages were recognised comes a file with their text.
- A child replies through its own pipe. For each document, it sends JSON lines with the text and the chunks, or with the
  reason why there is no text. The lines are short, so that parsing a line doesn't block the event loop.
"""

import array
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, Literal, TypedDict

from svc_daemon.core.text.chunking import Chunk, ChunkingOptions, Document, Extraction, HiddenText, RecognizedPage
from svc_daemon.extract.documents import ExtractionFailed, NeedsOwnChild, NeedsRecognition, StoredDocument, crashed
from svc_daemon.wire.light.error_codes import SourceErrorCode
from svc_daemon.wire.light.parsing import parse_json

#: Maximum number of characters of text per line of a reply.
PIECE_CHARACTERS = 64 * 1024
#: Maximum number of chunks per line of a reply.
GROUP_CHUNKS = 256
#: Maximum length of a line in bytes; a longer line is damaged. The largest group of chunks fits.
LINE_BYTES = 4 * 1024**2

#: Exit statuses of a child process: it has replied, an unexpected error occurred, memory ran out, or the system refused
#: a call.
REPLIED, FAILED, OUT_OF_MEMORY, REFUSED = 0, 1, 2, 3
#: If the machine lacks a resource, a child's exit status is this number plus the errno.
SHORT = 100

_LENGTH_BYTES = 4
#: Room for a request's descriptors.
_ANCILLARY_BYTES = socket.CMSG_SPACE(3 * array.array("i").itemsize)
_HEAD_FIELDS = tuple(each.name for each in fields(Document) if each.name not in {"text", "blocks", "pictured_pages"})
_CHUNK_FIELDS = ("char_start", "char_end", "headings", "page", "line_start", "line_end")
_PARTS = frozenset({"head", "text", "chunks"})
#: Created once, because `json.dumps` with options creates an encoder for each line.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


#: Why the fork server killed a child: its time was up, or the daemon asked.
KillReason = Literal["", "wall", "asked"]


class ChildOutcome(TypedDict):
    """How a child ended, as the fork server reports it."""

    #: Exit status of the child: negative for a signal; None if the fork server died first.
    exit: int | None
    killed: KillReason
    #: Index, from 0, of the document that ended the child; -1 if no document did.
    at: int


def send_request(control: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a request. The caller closes `descriptors`. Raises OSError if the server has ended or is stuck."""
    body = json.dumps(message).encode()
    frame = len(body).to_bytes(_LENGTH_BYTES, "big") + body
    socket.send_fds(control, [frame], list(descriptors))


def receive_request(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next request and its descriptors; None if the daemon has ended."""
    try:
        head, ancillary, _, _ = control.recvmsg(_LENGTH_BYTES, _ANCILLARY_BYTES)
    except ConnectionResetError:
        # The daemon has ended without reading the last outcomes.
        return None
    if not head:
        return None
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    length = int.from_bytes(head + _receive(control, _LENGTH_BYTES - len(head)), "big")
    return parse_json(_receive(control, length)), list(descriptors)


def _receive(control: socket.socket, length: int) -> bytes:
    return control.recv(length, socket.MSG_WAITALL) if length else b""


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """The parameters for reading one document."""

    filename: str
    #: The declared media type.
    content_type: str
    chunking: ChunkingOptions
    #: Size in bytes; -1 means the whole file.
    size: int
    #: Whether it is a page from the web.
    is_page: bool = False
    #: Whether to reply which pages must be recognised, if any.
    awaits_recognition: bool = False
    #: The pages that were recognised, by their numbers.
    recognized: Mapping[int, RecognizedPage] = field(default_factory=dict)


def document_message(document: StoredDocument, size: int = -1) -> list[Any]:
    """Encode a document's parameters for `parse_document`."""
    sizes = document.chunking
    numbers = [sizes.target, sizes.min, sizes.max, sizes.overlap]
    return [document.filename, document.content_type, numbers, size, document.is_page, document.awaits_recognition]


def parse_document(message: list[Any]) -> DocumentRequest:
    filename, content_type, (target, least, most, overlap), size, is_page, awaits = message
    sizes = ChunkingOptions(target=target, min=least, max=most, overlap=overlap)
    return DocumentRequest(filename, content_type, sizes, size, is_page, awaits)


def pack_pages(pages: Mapping[int, RecognizedPage]) -> bytes:
    """Encode recognised pages for `parse_pages`."""
    return _encode(list(pages.values())).encode()


def parse_pages(packed: bytes) -> dict[int, RecognizedPage]:
    pages = [RecognizedPage(*each) for each in parse_json(packed)]
    return {each.page: each for each in pages}


def count_documents(request: dict[str, Any]) -> int | None:
    """Return how many documents or pages a child reads one after another; None if it reads a single document."""
    return len(request["recognize"]) if "recognize" in request else request.get("documents")


def pack_wave(documents: Sequence[tuple[StoredDocument, bytes]]) -> bytes:
    """Encode a wave (documents for one child): a line with all parameters, then each document's bytes."""
    requests = [document_message(document, len(data)) for document, data in documents]
    return b"".join((json.dumps(requests).encode(), b"\n", *(data for _, data in documents)))


def reply_lines(content_type: str, document: Document, chunks: Sequence[Chunk]) -> Iterator[bytes]:
    """Yield the lines of a reply with a document."""
    head = {"head": {"content_type": content_type, **{name: getattr(document, name) for name in _HEAD_FIELDS}}}
    rows = ([getattr(chunk, name) for name in _CHUNK_FIELDS] for chunk in chunks)
    if len(document.text) <= PIECE_CHARACTERS and len(chunks) <= GROUP_CHUNKS:
        yield _line({**head, "text": document.text, "chunks": list(rows), "end": True})
        return
    yield _line(head)
    for start in range(0, len(document.text), PIECE_CHARACTERS):
        yield _line({"text": document.text[start : start + PIECE_CHARACTERS]})
    while group := list(islice(rows, GROUP_CHUNKS)):
        yield _line({"chunks": group})
    yield _line({"end": True})


def failure_line(failure: ExtractionFailed) -> bytes:
    return _line({"failure": [failure.code, failure.message]})


def own_child_line() -> bytes:
    """Encode the reply that documents of this format need a child process of their own."""
    return _line({"own_child": True})


def recognition_line(pages: Sequence[int]) -> bytes:
    """Encode the reply that the text of these pages must be recognised first."""
    return _line({"recognize": pages})


def page_line(page: RecognizedPage) -> bytes:
    """Encode the reply about a page that was recognised."""
    return _line({"page": page})


def parse_page(line: bytes) -> RecognizedPage:
    """Decode a line of `page_line`. Raises ExtractionFailed if it is invalid."""
    try:
        page, text, confidence, problem = parse_json(line)["page"]
        return RecognizedPage(int(page), str(text), float(confidence), str(problem))
    except (ValueError, TypeError, KeyError) as error:
        raise crashed("The parser's reply was damaged.") from error


def _line(message: dict[str, Any]) -> bytes:
    return _encode(message).encode() + b"\n"


class ChildReply:
    """Assembles the reply about one document."""

    def __init__(self) -> None:
        #: The extraction or exception, once the reply is complete.
        self.result: Extraction | Exception | None = None
        self._head: dict[str, Any] = {}
        self._pieces: list[str] = []
        self._text: str | None = None
        self._chunks: list[Chunk] = []

    def feed(self, line: bytes) -> None:
        """Process a line. Raises ExtractionFailed if it is invalid."""
        try:
            message = parse_json(line)
            if "failure" in message:
                code, sentence = message["failure"]
                self.result = ExtractionFailed(SourceErrorCode(code), sentence)
                return
            if "own_child" in message:
                self.result = NeedsOwnChild()
                return
            if "recognize" in message:
                self.result = NeedsRecognition([int(page) for page in message["recognize"]])
                return
            if "head" in message:
                self._head = {
                    name: tuple(value) if isinstance(value, list) else value for name, value in message["head"].items()
                }
                self._head["hidden"] = tuple(HiddenText(*each) for each in self._head["hidden"])
            if "text" in message:
                self._pieces.append(message["text"])
            if "chunks" in message:
                self._add_chunks(message["chunks"])
            # A line without any part of the document must be the end of the reply.
            if ("end" in message or message.keys().isdisjoint(_PARTS)) and message["end"]:
                self.result = Extraction(text=self._whole_text(), chunks=tuple(self._chunks), **self._head)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise crashed("The parser's reply was damaged.") from error

    def _add_chunks(self, rows: Sequence[Sequence[Any]]) -> None:
        text = self._whole_text()
        for ordinal, (start, end, headings, page, line_start, line_end) in enumerate(rows, len(self._chunks)):
            chunk = Chunk(
                ordinal=ordinal,
                text=text[start:end],
                char_start=start,
                char_end=end,
                headings=tuple(headings),
                page=page,
                line_start=line_start,
                line_end=line_end,
            )
            self._chunks.append(chunk)

    def _whole_text(self) -> str:
        if self._text is None:
            self._text = "".join(self._pieces)
        return self._text
