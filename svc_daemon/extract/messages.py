"""The protocol of the cage: requests with descriptors, outcomes of children, and replies.

A request to the fork server is a length and JSON, with the descriptors attached to the first byte. Outcomes are sent
back on the same socket as JSON lines. A reply consists of JSON lines on the child's own pipe: a head, the text in
pieces, the chunks in groups, and an end line; or a single failure. The pieces are small, so that parsing a line does
not block the daemon's event loop for long.
"""

import array
import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from svc_daemon.core.text.chunking import Chunk, Document, Extraction
from svc_daemon.extract.failures import ExtractionFailed, crashed
from svc_daemon.wire.codes import SourceErrorCode

#: Maximum number of text characters, and of chunks, in one line of a reply.
PIECE_CHARACTERS = 64 * 1024
GROUP_CHUNKS = 256
#: Maximum length of a reply line: a group of chunks with the longest headings, or a piece of text.
LINE_BYTES = 4 * 1024**2

#: Exit statuses of a child: it replied, its parser raised an unexpected exception, it ran out of memory, or the
#: operating system or the cage refused an operation.
REPLIED, FAILED, OUT_OF_MEMORY, REFUSED = 0, 1, 2, 3
#: A higher exit status is this value plus an errno: the machine was out of a resource.
SHORT = 100

_LENGTH_BYTES = 4
#: Room for the two descriptors of a request.
_ANCILLARY_BYTES = socket.CMSG_SPACE(2 * array.array("i").itemsize)
_HEAD_FIELDS = tuple(each.name for each in fields(Document) if each.name not in {"text", "blocks"})
_CHUNK_FIELDS = ("char_start", "char_end", "headings", "page", "line_start", "line_end")


def send_request(control: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a request. The caller still owns the descriptors. Raises OSError if the server is gone or does not read."""
    body = json.dumps(message).encode()
    frame = len(body).to_bytes(_LENGTH_BYTES, "big") + body
    socket.send_fds(control, [frame], list(descriptors))


def receive_request(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive the next request and its descriptors. Returns None if the daemon is gone."""
    try:
        head, ancillary, _, _ = control.recvmsg(_LENGTH_BYTES, _ANCILLARY_BYTES)
    except ConnectionResetError:
        # The daemon closed the socket without reading the last outcomes.
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


def reply_lines(content_type: str, document: Document, chunks: Sequence[Chunk]) -> Iterator[bytes]:
    """Yield the lines of a successful reply."""
    yield _line({"head": {"content_type": content_type, **{name: getattr(document, name) for name in _HEAD_FIELDS}}})
    for start in range(0, len(document.text), PIECE_CHARACTERS):
        yield _line({"text": document.text[start : start + PIECE_CHARACTERS]})
    rest = iter(chunks)
    while group := list(islice(rest, GROUP_CHUNKS)):
        yield _line({"chunks": [[getattr(chunk, name) for name in _CHUNK_FIELDS] for chunk in group]})
    yield _line({"end": True})


def failure_line(failure: ExtractionFailed) -> bytes:
    return _line({"failure": [failure.code, failure.message]})


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class ChildReply:
    """Assembles a reply line by line."""

    def __init__(self) -> None:
        self.is_complete = False
        self._head: dict[str, Any] = {}
        self._pieces: list[str] = []
        self._text: str | None = None
        self._chunks: list[Chunk] = []

    def feed(self, line: bytes) -> None:
        """Process one line. Raises ExtractionFailed if the child reports a failure or the line is invalid."""
        try:
            message = json.loads(line)
            if "failure" in message:
                code, sentence = message["failure"]
                raise ExtractionFailed(SourceErrorCode(code), sentence)
            if "head" in message:
                self._head = {
                    name: tuple(value) if isinstance(value, list) else value for name, value in message["head"].items()
                }
            elif "text" in message:
                self._pieces.append(message["text"])
            elif "chunks" in message:
                text = self._whole_text()
                for ordinal, row in enumerate(message["chunks"], len(self._chunks)):
                    values = dict(zip(_CHUNK_FIELDS, row, strict=True))
                    values["headings"] = tuple(values["headings"])
                    piece = text[values["char_start"] : values["char_end"]]
                    self._chunks.append(Chunk(ordinal=ordinal, text=piece, **values))
            else:
                self.is_complete = bool(message["end"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise crashed("The parser's reply was damaged.") from error

    def extraction(self) -> Extraction:
        """Return the completed extraction."""
        return Extraction(text=self._whole_text(), chunks=tuple(self._chunks), **self._head)

    def _whole_text(self) -> str:
        if self._text is None:
            self._text = "".join(self._pieces)
        return self._text
