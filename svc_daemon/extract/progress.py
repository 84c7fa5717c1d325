"""The progress of a child, in memory that it shares with the fork server, which limits the time of each document.

The child records each document before it reads it. The fork server reads the record only when a time limit has expired
or the child has ended, so that beginning a document does not wake it.
"""

import mmap
import struct
import time

#: The time is written before the number: a child that is killed in between still counts as reading the previous
#: document.
_NOTE = struct.Struct("=dq")


class ChildProgress:
    def __init__(self) -> None:
        """Create the shared memory, before the child is forked. The child begins with document 0."""
        self._shared = mmap.mmap(-1, _NOTE.size)
        self.note(0)

    def note(self, number: int) -> None:
        """Record that the child now begins the document with this number, from 0."""
        _NOTE.pack_into(self._shared, 0, time.monotonic(), number)

    def read(self) -> tuple[float, int]:
        """Return when the current document was begun, in monotonic seconds, and its number."""
        begun, number = _NOTE.unpack_from(self._shared)
        return begun, number
