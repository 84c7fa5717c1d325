"""Reads and hashes files, and sends only bytes that were hashed.

The bytes of small files are kept in memory. Larger files are read again when they are sent, and are refused if they
have changed.
"""

import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from svc_cli.errors import FileRefused, FileUnstable
from svc_cli.transfer.rooted_files import Root, open_named

#: The path argument that means standard input.
STDIN = "-"
#: Maximum attempts to read a file that changes while it is read.
ATTEMPTS = 3
PAUSE_S = 0.25
#: Files up to this size are kept in memory until they are sent.
KEPT_BYTES = 64 * 1024
#: At least this much is read at a time.
LEAST_BYTES = 4096
#: Size of the blocks in which larger files are read.
BLOCK_BYTES = 1024 * 1024

#: Device, inode, size and modification time, to detect that a file has changed.
Stamp = tuple[int, int, int, int]
#: Reads all fields of a fingerprint in one call, for speed.
_FACTS = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_dev")
#: The largest integer that SQLite stores.
_MOST = 2**63 - 1


class Fingerprint(NamedTuple):
    """A file's metadata. If it is unchanged, the bytes are assumed to be unchanged."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, facts: os.stat_result) -> Self:
        """Return the fingerprint. Dates after 2262 and large inodes, which can't be stored, become others that can."""
        found = cls._make(_FACTS(facts))
        if min(found) >= -_MOST and max(found) <= _MOST:
            return found
        # A date far ahead stays ahead, so that such a file is read again in each run.
        mtime_ns, ctime_ns = (max(-_MOST, min(_MOST, each_ns)) for each_ns in (found.mtime_ns, found.ctime_ns))
        return cls(found.size_bytes, mtime_ns, ctime_ns, found.inode & _MOST, found.device & _MOST)


@dataclass(frozen=True, slots=True)
class FileContent:
    """The hash and size of a file, and where its bytes can be read."""

    #: If there is a `root`, relative to it.
    path: Path
    sha256: str
    size_bytes: int
    #: The bytes of a small file or of standard input.
    data: bytes | None = None
    #: Device, inode, size and modification time when the file was hashed; None for standard input.
    stamp: Stamp | None = None
    #: Offset of the first byte, if the content is part of an archive.
    start: int = 0
    #: The folder that the file must be in; None if the user named the file.
    root: Root | None = None

    def whole(self) -> bytes:
        """Return all bytes. Raises FileRefused if the file has changed since it was hashed."""
        return b"".join(self.blocks(0))

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` on. Raises FileRefused if the file has changed since it was hashed."""
        if self.data is not None:
            yield self.data[offset:]
            return
        with opened(self.path, self.root) as file:
            if stamp_of(os.fstat(file.fileno())) != self.stamp:
                raise changed()
            file.seek(self.start + offset)
            left_bytes = self.size_bytes - offset
            while left_bytes:
                block = file.read(min(BLOCK_BYTES, left_bytes))
                if not block:
                    raise changed()
                left_bytes -= len(block)
                yield block


def read(
    path: Path, max_bytes: int, sleep: Callable[[float], None] = time.sleep, *, root: Root | None = None
) -> FileContent:
    """Read and hash a file, or standard input for `-`. With `root`, `path` is a place inside that folder.

    Raises FileRefused if the file is unreadable, empty or too large, or changes while it is read.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(PAUSE_S)
        content = _read_once(path, max_bytes, root)
        if content is None:
            continue
        if not content.size_bytes:
            raise FileRefused("the file is empty.", code="empty_file", hint="add content to it, or leave it out.")
        return content
    raise FileUnstable("the file changed each time it was read.", hint="try again when it is no longer being written.")


def changed() -> FileUnstable:
    """Return the error for a file that has changed since it was hashed."""
    return FileUnstable(
        "the file changed while it was being sent; nothing was stored.",
        hint="run the same command again when the file is no longer being written.",
    )


def _read_once(path: Path, max_bytes: int, root: Root | None) -> FileContent | None:
    """Read and hash the file; None if it changed during the read."""
    if root is None and str(path) == STDIN:
        data = sys.stdin.buffer.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise _too_large(None, max_bytes)
        return FileContent(path, hashlib.sha256(data).hexdigest(), len(data), data)
    digest, size_bytes, first = hashlib.sha256(), 0, b""
    with opened(path, root) as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise FileRefused("this is not a regular file.", code="svc_not_a_file", hint="pipe it in: `svc upload -`.")
        if before.st_size > max_bytes:
            raise _too_large(before.st_size, max_bytes)
        # What is read counts: files as those in /proc have a size of 0, or one that is not theirs.
        while block := file.read(min(BLOCK_BYTES, max(LEAST_BYTES, before.st_size - size_bytes + 1))):
            digest.update(block)
            size_bytes += len(block)
            if size_bytes > max_bytes:
                raise _too_large(None, max_bytes)
            first = first + block if size_bytes <= KEPT_BYTES else b""
        after = os.fstat(file.fileno())
    if stamp_of(before) != stamp_of(after):
        return None
    kept = first if size_bytes <= KEPT_BYTES else None
    return FileContent(path, digest.hexdigest(), size_bytes, kept, stamp_of(after), root=root)


@contextmanager
def opened(path: Path, root: Root | None = None) -> Iterator[BinaryIO]:
    """Open the file for reading. Raises FileRefused if opening or a read in the `with` block fails."""
    try:
        descriptor = open_named(path) if root is None else root.open(str(path))
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            yield file
    except OSError as error:
        raise FileRefused(f"the file can't be read: {error.strerror}.", code="svc_file_unreadable") from error


def stamp_of(facts: os.stat_result) -> Stamp:
    """Return the stamp of a file with this metadata."""
    size_bytes, mtime_ns, _, inode, device = Fingerprint.of(facts)
    return device, inode, size_bytes, mtime_ns


def _too_large(size_bytes: int | None, max_bytes: int) -> FileRefused:
    size, limit = f"it has {(size_bytes or 0) / 1024**2:.1f} MB", f"{max_bytes / 1024**2:.0f} MB"
    if size_bytes and (size_bytes - max_bytes) < 1024**2:  # rounded, both may be the same
        size, limit = f"it has {size_bytes:,} bytes", f"{max_bytes:,}"
    return FileRefused(
        f"the file is too large: {f'{size}, ' if size_bytes else ''}the limit is {limit}.",
        code="file_too_large",
        hint="split it.",
        details={"max_bytes": max_bytes, "size_bytes": size_bytes},
    )
