"""How far a child is: memory that it shares with the fork server, which times each document by it.

The child notes each document before it reads it. The fork server looks only when a limit has expired or the child has
ended, so a document costs neither of them a wake-up.
"""

import mmap
import struct
import time

#: The time is written before the number, so that a child that is killed in between is still at the document before.
_NOTE = struct.Struct("=dq")


class ChildProgress:
    def __init__(self) -> None:
        """Must be made before the fork. A child that has just begun is at its first document."""
        self._shared = mmap.mmap(-1, _NOTE.size)
        self.note(0)

    def note(self, number: int) -> None:
        """Note that the document with this number, from 0, begins now."""
        _NOTE.pack_into(self._shared, 0, time.monotonic(), number)

    def read(self) -> tuple[float, int]:
        """Return when the document at hand began, by the monotonic clock, and its number."""
        begun, number = _NOTE.unpack_from(self._shared)
        return begun, number
