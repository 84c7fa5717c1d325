"""The messages between the daemon and the model's process: frames with a number, a kind and a content.

A response has the number of the text that it answers. Frames with number 0 report whether the process has started.
"""

import socket
import struct
from typing import BinaryIO, NamedTuple

#: Kinds of requests: a query (a user waits) and a chunk.
URGENT, PATIENT = 1, 2
#: Kinds of responses.
DONE, FAILED = 3, 4
#: Frames with this number are about the process, not about a text.
PROCESS = 0

_HEAD = struct.Struct("<QBI")


class Frame(NamedTuple):
    number: int
    kind: int
    content: bytes


def send_frame(control: socket.socket, frame: Frame) -> None:
    """Send a frame. Raises OSError if the connection is closed."""
    control.sendall(_HEAD.pack(frame.number, frame.kind, len(frame.content)) + frame.content)


def receive_frame(incoming: BinaryIO) -> Frame | None:
    """Return the next frame; None if the connection is closed, even within a frame."""
    try:
        head = incoming.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        number, kind, size_bytes = _HEAD.unpack(head)
        content = incoming.read(size_bytes)
    except OSError:
        return None
    return Frame(number, kind, content) if len(content) == size_bytes else None
