"""The protocol between the daemon, the fork server and the children: requests, outcomes and replies.

A request to the fork server is a length followed by JSON, with the descriptors attached to the first byte. The fork
server reports the outcome of each child on the same socket, as a JSON line. A child replies with JSON lines on its own
pipe, one document after another. A reply is a head, the text in pieces, the chunks in groups, and an end; all of these
are in one line if the document is small. If there is no text, the reply is one line with the reason. The pieces are
small, so that parsing a line does not block the daemon's event loop for long.
"""

import array
import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Literal, TypedDict

from svc_daemon.core.text.chunking import Chunk, ChunkingOptions, Document, Extraction
from svc_daemon.extract.documents import StoredDocument
from svc_daemon.extract.failures import ExtractionFailed, crashed
from svc_daemon.extract.waves import NeedsOwnChild
from svc_daemon.wire.codes import SourceErrorCode

#: Maximum number of characters of text in one line of a reply; a longer text is sent in several lines.
PIECE_CHARACTERS = 64 * 1024
#: Maximum number of chunks in one line of a reply; more chunks are sent in several lines.
GROUP_CHUNKS = 256
#: Maximum length of a line of a reply. A group of chunks with the longest headings fits, and so does a piece of text. A
#: longer line is treated as damaged.
LINE_BYTES = 4 * 1024**2

#: Exit statuses of a child: it has replied, its parser raised an unexpected exception, it ran out of memory, or an
#: operation was refused by the operating system or by the child's limits.
REPLIED, FAILED, OUT_OF_MEMORY, REFUSED = 0, 1, 2, 3
#: If the machine was out of a resource, the exit status is this plus the errno.
SHORT = 100

_LENGTH_BYTES = 4
#: Size of the buffer for the two descriptors of a request.
_ANCILLARY_BYTES = socket.CMSG_SPACE(2 * array.array("i").itemsize)
_HEAD_FIELDS = tuple(each.name for each in fields(Document) if each.name not in {"text", "blocks"})
_CHUNK_FIELDS = ("char_start", "char_end", "headings", "page", "line_start", "line_end")
_PARTS = frozenset({"head", "text", "chunks"})
#: Create the encoder once, because `json.dumps` with options would create one for each line.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


#: Why the fork server killed a child: it exceeded its time (`wall`), or the daemon asked for it. Empty if it was not
#: killed.
KillReason = Literal["", "wall", "asked"]


class ChildOutcome(TypedDict):
    """How a child ended, as the fork server reports it to the daemon."""

    #: The exit status; negative if a signal ended the child, None if the fork server died before the child.
    exit: int | None
    killed: KillReason
    #: The number, from 0, of the document because of which the child ended; -1 if it had already begun another one.
    at: int


def send_request(control: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a request.

    The caller must close its descriptors. Raises OSError if the server has ended or does not read.
    """
    body = json.dumps(message).encode()
    frame = len(body).to_bytes(_LENGTH_BYTES, "big") + body
    socket.send_fds(control, [frame], list(descriptors))


def receive_request(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next request and its descriptors, or None if the daemon has ended."""
    try:
        head, ancillary, _, _ = control.recvmsg(_LENGTH_BYTES, _ANCILLARY_BYTES)
    except ConnectionResetError:
        # The daemon has ended: it closed the socket before it had read the last outcomes.
        return None
    if not head:
        return None
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    length = int.from_bytes(head + _receive(control, _LENGTH_BYTES - len(head)), "big")
    return json.loads(_receive(control, length)), list(descriptors)


def _receive(control: socket.socket, length: int) -> bytes:
    return control.recv(length, socket.MSG_WAITALL) if length else b""


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """The parameters for reading one document."""

    filename: str
    #: The declared media type.
    content_type: str
    chunking: ChunkingOptions
    #: The size of the document in bytes; -1 if the document is the whole file.
    size: int


def document_message(document: StoredDocument, size: int = -1) -> list[Any]:
    """Encode the parameters for reading a document as JSON. `parse_document` decodes them."""
    sizes = document.chunking
    return [document.filename, document.content_type, [sizes.target, sizes.min, sizes.max, sizes.overlap], size]


def parse_document(message: list[Any]) -> DocumentRequest:
    filename, content_type, (target, least, most, overlap), size = message
    return DocumentRequest(
        filename, content_type, ChunkingOptions(target=target, min=least, max=most, overlap=overlap), size
    )


def pack_wave(documents: Sequence[tuple[StoredDocument, bytes]]) -> bytes:
    """Encode a wave for its child: first a line with the parameters of all documents, then the bytes of each."""
    requests = [document_message(document, len(data)) for document, data in documents]
    return b"".join((json.dumps(requests).encode(), b"\n", *(data for _, data in documents)))


def reply_lines(content_type: str, document: Document, chunks: Sequence[Chunk]) -> Iterator[bytes]:
    """Yield the lines of a reply with an extracted document."""
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
    """Encode the reply that this document must be read by a child of its own, because of its format."""
    return _line({"own_child": True})


def _line(message: dict[str, Any]) -> bytes:
    return _encode(message).encode() + b"\n"


class ChildReply:
    """Puts the reply about one document together, line by line."""

    def __init__(self) -> None:
        #: The result, once the reply is complete: the extraction, or an exception that explains why there is none.
        self.result: Extraction | Exception | None = None
        self._head: dict[str, Any] = {}
        self._pieces: list[str] = []
        self._text: str | None = None
        self._chunks: list[Chunk] = []

    def feed(self, line: bytes) -> None:
        """Process a line of the reply. Raises ExtractionFailed if it is invalid."""
        try:
            message = json.loads(line)
            if "failure" in message:
                code, sentence = message["failure"]
                self.result = ExtractionFailed(SourceErrorCode(code), sentence)
                return
            if "own_child" in message:
                self.result = NeedsOwnChild()
                return
            if "head" in message:
                self._head = {
                    name: tuple(value) if isinstance(value, list) else value for name, value in message["head"].items()
                }
            if "text" in message:
                self._pieces.append(message["text"])
            if "chunks" in message:
                self._add_chunks(message["chunks"])
            # A message that contains no part of a document must be the end of the reply; otherwise it is damaged.
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
