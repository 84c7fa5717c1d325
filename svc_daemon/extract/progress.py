"""Records which document a child is reading, in memory shared with the fork server.

The fork server reads it only when time is up or the child has ended, so that a new document doesn't wake it.
"""

import mmap
import struct
import time

#: The time comes first, so that a child killed between the two writes counts as reading the previous document.
_NOTE = struct.Struct("=dq")


class ChildProgress:
    def __init__(self) -> None:
        """Create the shared memory before the fork. Documents are numbered from 0."""
        self._shared = mmap.mmap(-1, _NOTE.size)
        self.note(0)

    def note(self, number: int) -> None:
        """Record that the child begins this document now."""
        _NOTE.pack_into(self._shared, 0, time.monotonic(), number)

    def read(self) -> tuple[float, int]:
        """Return when the current document began (monotonic seconds), and its number."""
        begun, number = _NOTE.unpack_from(self._shared)
        return begun, number
