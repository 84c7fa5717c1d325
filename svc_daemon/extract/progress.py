"""Records which document a child is reading, in memory that the child shares with the fork server.

The child records each document before it reads it. The fork server, which limits the time for each document, reads the
record only when a time limit has passed or the child has ended, so that a new document does not wake it.
"""

import mmap
import struct
import time

#: The time is written before the number. If the child is killed in between, it counts as still reading the previous
#: document.
_NOTE = struct.Struct("=dq")


class ChildProgress:
    def __init__(self) -> None:
        """Create the shared memory, before the child is forked. The first document has the number 0."""
        self._shared = mmap.mmap(-1, _NOTE.size)
        self.note(0)

    def note(self, number: int) -> None:
        """Record that the child begins to read the document with this number now."""
        _NOTE.pack_into(self._shared, 0, time.monotonic(), number)

    def read(self) -> tuple[float, int]:
        """Return when the current document was begun, in seconds of the monotonic clock, and its number."""
        begun, number = _NOTE.unpack_from(self._shared)
        return begun, number
