"""The bytes of a file, read so that what is hashed is what is sent, and of one moment."""

import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from svc_cli.errors import SvcError
from svc_cli.exits import Exit
from svc_cli.uploads.selections import Candidate

#: A file that is being written gets this many chances to hold still.
ATTEMPTS = 3
PAUSE_S = 0.25


class FileRefused(SvcError):
    """This file can't be sent; the others can."""

    exit = Exit.FAILED


@dataclass(frozen=True, slots=True)
class Reading:
    """The bytes of one file and their hash."""

    data: bytes
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "Reading":
        return cls(data, hashlib.sha256(data).hexdigest())


def read(candidate: Candidate, max_bytes: int, sleep: Callable[[float], None] = time.sleep) -> Reading:
    """Read a file whole. Raises FileRefused: unreadable, empty, too large, or changing all the time."""
    data = _read_stdin(max_bytes) if candidate.is_stdin else _read_file(candidate, max_bytes, sleep)
    if not data:
        raise FileRefused("the file is empty.", code="empty_file", hint="put something into it, or leave it out.")
    return Reading.of(data)


def _read_file(candidate: Candidate, max_bytes: int, sleep: Callable[[float], None]) -> bytes:
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(PAUSE_S)
        data = _read_once(candidate, max_bytes)
        if data is not None:
            return data
    raise FileRefused(
        "the file changed each time it was read.", code="svc_file_unstable", hint="try again when nobody writes it."
    )


def _read_once(candidate: Candidate, max_bytes: int) -> bytes | None:
    try:
        # Without O_NONBLOCK a pipe that nobody writes to would be waited for here for ever.
        descriptor = os.open(candidate.path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(file.fileno())
            _refuse_unsuitable(before, max_bytes)
            data = file.read(max_bytes + 1)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise FileRefused(f"the file can't be read: {error.strerror}.", code="svc_file_unreadable") from error
    return data if _same_moment(before, after) and len(data) == before.st_size else None


def _refuse_unsuitable(facts: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise FileRefused("this is not a regular file.", code="svc_not_a_file", hint="pipe it in: `svc upload -`.")
    if facts.st_size > max_bytes:
        raise _too_large(facts.st_size, max_bytes)


def _same_moment(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def _read_stdin(max_bytes: int) -> bytes:
    source: BinaryIO = sys.stdin.buffer
    data = source.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise _too_large(None, max_bytes)
    return data


def _too_large(size_bytes: int | None, max_bytes: int) -> FileRefused:
    size = f"it has {size_bytes / 1024**2:.1f} MB, " if size_bytes else ""
    return FileRefused(
        f"the file is too large: {size}the most is {max_bytes / 1024**2:.0f} MB.",
        code="file_too_large",
        hint="split it.",
        details={"max_bytes": max_bytes, "size_bytes": size_bytes},
    )
