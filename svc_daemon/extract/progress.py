"""Records which document a child process is reading, in memory shared with the fork server.

The fork server reads the record only when the time limit is reached or the child has ended, not for each document.
"""

import mmap
import struct
import time

#: The time is written before the document's index. So a child that is killed in between still counts as reading the
#: previous document.
_NOTE = struct.Struct("=dq")


class ChildProgress:
    def __init__(self) -> None:
        """Create the memory that the child shares. Call this before the child is forked."""
        self._shared = mmap.mmap(-1, _NOTE.size)
        self.note(0)

    def note(self, number: int) -> None:
        """Record that the child begins this document now."""
        _NOTE.pack_into(self._shared, 0, time.monotonic(), number)

    def read(self) -> tuple[float, int]:
        """Return when the child began the current document (monotonic seconds), and the document's index, from 0."""
        begun, number = _NOTE.unpack_from(self._shared)
        return begun, number
