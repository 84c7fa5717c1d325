"""Reads small files that the user names, such as a key file: whole, but never endlessly.

The name may be that of a file in a stranger's repository, which may be a pipe without a writer, or a link to /dev/zero.
"""

import errno
import os
import stat
from pathlib import Path

#: The folders of streams that the shell opens, such as /dev/stdin, or /dev/fd/63 for `<(command)`.
STREAMS = ("/dev", "/dev/fd", "/proc/self/fd")
#: Maximum size of a file with a key or secret.
KEY_BYTES = 64 * 1024
#: Maximum size of any other file, such as an answer whose quotes are checked.
MOST_BYTES = 64 * 1024 * 1024


def is_stream(path: Path) -> bool:
    """Whether this is a stream that the shell has opened, and not a file in a folder."""
    return str(path.absolute().parent) in STREAMS


def read_given(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file. Raises OSError, also if it is larger than `most_bytes`, or is a pipe or device."""
    may_wait = is_stream(path)
    with os.fdopen(os.open(path, os.O_RDONLY | (0 if may_wait else os.O_NONBLOCK)), "rb") as file:
        if not may_wait and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes")
    return data
