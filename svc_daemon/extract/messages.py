"""The messages of the cage: requests with their descriptors, outcomes of children, and the lines of a reply.

Requests go to the fork server as a length and JSON, with the descriptors attached to the first byte. Outcomes come
back on the same socket as JSON lines. A reply is JSON lines on the child's own pipe: a head, the text in pieces, the
chunks in groups, an end; or one failure. Pieces are small, so that no line holds up the daemon's event loop.
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

#: Characters of text in one line of a reply, and chunks in one.
PIECE_CHARACTERS = 64 * 1024
GROUP_CHUNKS = 256
#: Longest line of a reply: a group of chunks under the longest headings, or a piece of text.
LINE_BYTES = 4 * 1024**2

#: Exit status of a child that replied; whose parser raised what no reader expects; that ran out of memory; that was
#: refused something by the system or its cage.
REPLIED, FAILED, OUT_OF_MEMORY, REFUSED = 0, 1, 2, 3
#: A higher exit status is this plus an errno: the machine was short of something.
SHORT = 100

_LENGTH_BYTES = 4
#: Room for the two descriptors of a request.
_ANCILLARY_BYTES = socket.CMSG_SPACE(2 * array.array("i").itemsize)
_HEAD_FIELDS = tuple(each.name for each in fields(Document) if each.name not in {"text", "blocks"})
_CHUNK_FIELDS = ("char_start", "char_end", "headings", "page", "line_start", "line_end")


def send_request(control: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one request; the descriptors stay open here. Raises OSError when the other side is gone or does not read."""
    body = json.dumps(message).encode()
    frame = len(body).to_bytes(_LENGTH_BYTES, "big") + body
    socket.send_fds(control, [frame], list(descriptors))


def receive_request(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next request and its descriptors; None when the daemon is gone."""
    try:
        head, ancillary, _, _ = control.recvmsg(_LENGTH_BYTES, _ANCILLARY_BYTES)
    except ConnectionResetError:
        # It closed without reading the last outcomes.
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
    """The lines of a successful reply."""
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
    """A reply as it comes in, line by line."""

    def __init__(self) -> None:
        self.is_complete = False
        self._head: dict[str, Any] = {}
        self._pieces: list[str] = []
        self._text: str | None = None
        self._chunks: list[Chunk] = []

    def feed(self, line: bytes) -> None:
        """Take one line; raises ExtractionFailed for a failure and for a line that is damaged."""
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
        """The finished extraction."""
        return Extraction(text=self._whole_text(), chunks=tuple(self._chunks), **self._head)

    def _whole_text(self) -> str:
        if self._text is None:
            self._text = "".join(self._pieces)
        return self._text
