"""The bytes of a file, read so that what is hashed is what is sent, and of one moment.

A file is hashed first, to know whether it has to be sent at all. Small ones are kept from then on; larger ones are read
again when they are sent, and one that has changed in between is noticed: by its stamp here, by its hash at the service.
"""

import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from svc_cli.errors import FileRefused
from svc_cli.uploads.selections import Candidate

#: A file that is being written gets this many chances to hold still.
ATTEMPTS = 3
PAUSE_S = 0.25
#: Files up to this size stay in memory between hashing and sending: a few hundred wait at a time.
KEPT_BYTES = 64 * 1024
#: Larger ones are read in blocks of this size.
BLOCK_BYTES = 1024 * 1024

#: Device, inode, size and time of change: another one is another file, or other bytes.
Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """One file as it was hashed."""

    sha256: str
    size_bytes: int
    #: The bytes, where the file is small or standard input.
    data: bytes | None
    #: What the file was then; None for standard input.
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a reading, for sending: kept ones, or those of the file if it is still the same."""

    candidate: Candidate
    reading: Reading

    @property
    def size_bytes(self) -> int:
        return self.reading.size_bytes

    def whole(self) -> bytes:
        """All bytes. Raises FileRefused when the file has changed since it was hashed."""
        return b"".join(self.blocks(0))

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` on. Raises FileRefused when the file has changed since it was hashed."""
        if self.reading.data is not None:
            yield self.reading.data[offset:]
            return
        with _opened(self.candidate) as file:
            if _stamp(os.fstat(file.fileno())) != self.reading.stamp:
                raise changed()
            file.seek(offset)
            left_bytes = self.size_bytes - offset
            while left_bytes:
                block = file.read(min(BLOCK_BYTES, left_bytes))
                if not block:
                    raise changed()
                left_bytes -= len(block)
                yield block


def read(candidate: Candidate, max_bytes: int, sleep: Callable[[float], None] = time.sleep) -> Reading:
    """Read and hash a file. Raises FileRefused: unreadable, empty, too large, or changing all the time."""
    reading = _read_stdin(max_bytes) if candidate.is_stdin else _read_file(candidate, max_bytes, sleep)
    if not reading.size_bytes:
        raise FileRefused("the file is empty.", code="empty_file", hint="put something into it, or leave it out.")
    return reading


def changed() -> FileRefused:
    """What to say of a file that is another than the one that was hashed; nothing of it was kept."""
    return FileRefused(
        "the file changed while it was sent; nothing of it was kept.",
        code="svc_file_unstable",
        hint="run the same command again when nobody writes it.",
    )


def _read_file(candidate: Candidate, max_bytes: int, sleep: Callable[[float], None]) -> Reading:
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(PAUSE_S)
        reading = _read_once(candidate, max_bytes)
        if reading is not None:
            return reading
    raise FileRefused(
        "the file changed each time it was read.", code="svc_file_unstable", hint="try again when nobody writes it."
    )


def _read_once(candidate: Candidate, max_bytes: int) -> Reading | None:
    with _opened(candidate) as file:
        before = os.fstat(file.fileno())
        _refuse_unsuitable(before, max_bytes)
        sha256, size_bytes, data = _hash(file, max_bytes)
        after = os.fstat(file.fileno())
    if not _same_moment(before, after) or size_bytes != before.st_size:
        return None
    return Reading(sha256, size_bytes, data, _stamp(after))


@contextmanager
def _opened(candidate: Candidate) -> Iterator[BinaryIO]:
    """The file, open for reading. Raises FileRefused where the system refuses it, also later."""
    try:
        # Without O_NONBLOCK a pipe that nobody writes to would be waited for here for ever.
        descriptor = os.open(candidate.path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            yield file
    except OSError as error:
        raise FileRefused(f"the file can't be read: {error.strerror}.", code="svc_file_unreadable") from error


def _hash(file: BinaryIO, max_bytes: int) -> tuple[str, int, bytes | None]:
    """Hash and number of the bytes, and the bytes where they are few; no more than one byte over the limit is read."""
    digest, size_bytes, first = hashlib.sha256(), 0, b""
    while size_bytes <= max_bytes and (block := file.read(min(BLOCK_BYTES, max_bytes + 1 - size_bytes))):
        digest.update(block)
        size_bytes += len(block)
        first = first or block
    return digest.hexdigest(), size_bytes, first if size_bytes == len(first) <= KEPT_BYTES else None


def _refuse_unsuitable(facts: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise FileRefused("this is not a regular file.", code="svc_not_a_file", hint="pipe it in: `svc upload -`.")
    if facts.st_size > max_bytes:
        raise _too_large(facts.st_size, max_bytes)


def _same_moment(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def _stamp(facts: os.stat_result) -> Stamp:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def _read_stdin(max_bytes: int) -> Reading:
    source: BinaryIO = sys.stdin.buffer
    data = source.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise _too_large(None, max_bytes)
    return Reading(hashlib.sha256(data).hexdigest(), len(data), data)


def _too_large(size_bytes: int | None, max_bytes: int) -> FileRefused:
    size = f"it has {size_bytes / 1024**2:.1f} MB, " if size_bytes else ""
    return FileRefused(
        f"the file is too large: {size}the most is {max_bytes / 1024**2:.0f} MB.",
        code="file_too_large",
        hint="split it.",
        details={"max_bytes": max_bytes, "size_bytes": size_bytes},
    )
