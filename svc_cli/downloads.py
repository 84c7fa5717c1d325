"""Checks downloaded bytes, and replaces a file only when all of them have arrived."""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from svc_cli.errors import BadAnswer, UsageError
from svc_daemon.wire import JsonMapping


def checked(source: JsonMapping, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks. Raises BadAnswer after the last block if their SHA-256 is not that of the source."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        yield block
    if source.get("sha256") not in (None, digest.hexdigest()):
        raise BadAnswer(f"The bytes of {source['id']} are not those that were uploaded: their SHA-256 differs.")


@contextmanager
def replacing(output: str) -> Iterator[BinaryIO]:
    """Open a draft in the folder of `output`, and rename it to `output` at the end of the block.

    Raises UsageError if `output` is not a regular file, its folder does not exist, or another command is writing it.
    """
    path = Path(os.path.realpath(output))
    if output == "-":
        raise UsageError("A file is written, not standard output.", hint="name it, or ./- if that is its name.")
    if path.is_dir():
        raise UsageError(f"{output} is a folder.", hint="name the file to write in it.")
    # Renaming the draft would replace a device such as /dev/null with a regular file.
    if path.exists() and not path.is_file():
        raise UsageError(f"{output} is not a regular file.", hint="name a file that may be replaced.")
    if not path.parent.is_dir():
        raise UsageError(f"{output}: there is no folder {path.parent}.")
    draft = path.with_name(f".{path.name[:40]}.part")
    with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b") as file:
        if not _is_ours(file, draft):
            raise UsageError(f"Another command is writing {output}.", hint=f"wait for it, or remove {draft}.")
        try:
            file.truncate(0)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if path.exists():
                draft.chmod(path.stat().st_mode & 0o777)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _is_ours(file: BinaryIO, draft: Path) -> bool:
    """Lock the open draft. Returns False if it belongs to another command or user."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        facts = os.fstat(file.fileno())
        return facts.st_uid == os.geteuid() and os.path.samestat(facts, draft.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False
