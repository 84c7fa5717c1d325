"""The messages between the daemon and the process that runs the model. Each is a frame: number, kind and content.

The daemon gives each text a number, and the response (a vector or an error message) has the same number. Frames with
number 0 report that the process is ready, or why it could not start.
"""

import socket
import struct
from typing import BinaryIO, NamedTuple

#: Kinds of requests: a query, for which a user is waiting, and a chunk.
URGENT, PATIENT = 1, 2
#: Kinds of responses.
DONE, FAILED = 3, 4
#: The number in frames that are about the process itself, not about a text.
PROCESS = 0

_HEAD = struct.Struct("<QBI")


class Frame(NamedTuple):
    number: int
    kind: int
    content: bytes


def send_frame(control: socket.socket, frame: Frame) -> None:
    """Send a frame; raises OSError if the other side has closed the connection."""
    control.sendall(_HEAD.pack(frame.number, frame.kind, len(frame.content)) + frame.content)


def receive_frame(incoming: BinaryIO) -> Frame | None:
    """Return the next frame; None if the other side has closed the connection, even within a frame."""
    try:
        head = incoming.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        number, kind, size_bytes = _HEAD.unpack(head)
        content = incoming.read(size_bytes)
    except OSError:
        return None
    return Frame(number, kind, content) if len(content) == size_bytes else None
