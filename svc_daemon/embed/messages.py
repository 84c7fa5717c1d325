"""The messages between the daemon and the process that runs the model: frames of a number, a kind and some bytes.

The daemon numbers each text; its vector, or a sentence about what went wrong, comes back with the same number. Number 0
is about the process itself: that it is ready, or why it never will be.
"""

import socket
import struct
from typing import BinaryIO, NamedTuple

#: Kinds of texts: a query that a person waits for, and a chunk.
URGENT, PATIENT = 1, 2
#: Kinds of answers.
DONE, FAILED = 3, 4
#: The number of frames about the process.
PROCESS = 0

_HEAD = struct.Struct("<QBI")


class Frame(NamedTuple):
    number: int
    kind: int
    content: bytes


def send_frame(control: socket.socket, frame: Frame) -> None:
    """Raises OSError where the other side is gone."""
    control.sendall(_HEAD.pack(frame.number, frame.kind, len(frame.content)) + frame.content)


def receive_frame(incoming: BinaryIO) -> Frame | None:
    """The next frame; None where the other side is gone, even in the middle of a frame."""
    try:
        head = incoming.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        number, kind, size_bytes = _HEAD.unpack(head)
        content = incoming.read(size_bytes)
    except OSError:
        return None
    return Frame(number, kind, content) if len(content) == size_bytes else None
