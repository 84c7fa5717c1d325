"""Limits of child processes, and the record of what a child is reading.

The fork server reads the record only when the time limit is reached or the child has ended, not for each document.
"""

import mmap
import struct
import time
from dataclasses import dataclass, replace

from svc_daemon.settings.limits import Limits

#: How much longer than its processor time a page may take.
_WALL_FACTOR = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CageLimits:
    """The limits of a child and of each document it reads."""

    #: Maximum number of children at once; further documents wait.
    children: int = 4
    #: Maximum address space. Malicious files make parsers allocate gigabytes.
    memory_bytes: int = Limits.extract_memory_bytes
    #: Maximum processor time for one document.
    cpu_seconds: int = Limits.extract_cpu_seconds
    #: Maximum elapsed time for one document. Then the child and its descendants are killed.
    wall_seconds: float = Limits.extract_wall_seconds
    #: Maximum size of a temporary file.
    file_bytes: int = 64 * 1024**2
    #: Maximum number of open descriptors.
    descriptors: int = 64
    #: Maximum size of the reply for one document. 25 MB of text fits, with its chunks.
    output_bytes: int = 96 * 1024**2
    #: If the replies about a wave exceed this size, the wave's remaining documents are not read.
    wave_output_bytes: int = 16 * 1024**2
    #: Maximum number of chunks of a document. 25 MB of prose has 30,000.
    chunks: int = 100_000
    #: Added to the child's `nice` value, so that uploads and searches get processor time first.
    nice: int = 10
    #: Maximum number of members of an archive (DOCX, XLSX, PPTX, EPUB, …).
    archive_entries: int = 2000
    #: Maximum expanded size of an archive.
    archive_bytes: int = 200 * 1024**2
    #: Maximum compression ratio of an archive's member.
    archive_ratio: int = 200
    #: The function that recognises text in pictures, as `module:name`; empty if none does.
    recognizer: str = ""
    #: Why none does, and the way out, as a sentence.
    unrecognized: str = ""
    #: Maximum address space for recognising text.
    ocr_memory_bytes: int = Limits.ocr_memory_bytes
    #: Maximum processor time for recognising a page.
    ocr_page_seconds: int = Limits.ocr_page_seconds

    @classmethod
    def from_limits(cls, limits: Limits, recognizer: str, unrecognized: str) -> "CageLimits":
        """Return the limits that the operator has set."""
        return cls(
            children=limits.extract_children + 1,
            memory_bytes=limits.extract_memory_bytes,
            cpu_seconds=limits.extract_cpu_seconds,
            wall_seconds=limits.extract_wall_seconds,
            recognizer=recognizer,
            unrecognized=unrecognized,
            ocr_memory_bytes=limits.ocr_memory_bytes,
            ocr_page_seconds=limits.ocr_page_seconds,
        )

    def for_scans(self) -> "CageLimits":
        """Return the limits of a child that recognises pages, each of which counts as a document."""
        # Recognition has the lowest priority, so a busy machine gives it a part of its time.
        return replace(
            self,
            memory_bytes=self.ocr_memory_bytes,
            cpu_seconds=self.ocr_page_seconds,
            wall_seconds=_WALL_FACTOR * self.ocr_page_seconds,
        )


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
