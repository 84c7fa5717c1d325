"""Checks downloaded bytes, and replaces a file only when all of them have arrived."""

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from svc_cli.errors import BadAnswer, UsageError
from svc_cli.transfer.rooted_files import find_way_out, refuse_way_out
from svc_daemon.wire import JsonMapping

#: The folders of links such as /dev/stdout, which lead to where the user has sent the output.
STREAMS = ("/dev", "/dev/fd", "/proc/self/fd")


def checked(source: JsonMapping, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks. Raises BadAnswer after the last block if their SHA-256 is not that of the source."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        yield block
    if source.get("sha256") not in (None, digest.hexdigest()):
        raise BadAnswer(f"The bytes of {source['id']} are not those that were uploaded: their SHA-256 differs.")


def find_target(output: str) -> Path:
    """Return the file to write for `output`. A link is followed within its folder, and no further.

    Whoever has made the folder, such as the author of a repository, may have put a link there to a file of the user.
    For the same reason, a folder on the way to it may not be a link out of its repository. Raises UsageError.
    """
    path = Path(output)
    refuse_way_out(path.parent, find_way_out(path.parent), "written")
    target = Path(os.path.realpath(path))
    is_within = target.is_relative_to(os.path.realpath(path.parent)) or str(path.absolute().parent) in STREAMS
    if path.is_symlink() and not is_within:
        hint = f"to write that file, name {target}."
        raise UsageError(f"{output} is a link that leads out of its folder.", hint=hint)
    return target


@contextmanager
def replacing(output: str) -> Iterator[BinaryIO]:
    """Open a draft in the folder of `output`, and rename it to `output` at the end of the block.

    Raises UsageError if `output` is not a regular file, its folder does not exist, or another command is writing it.
    """
    path = find_target(output)
    if output == "-":
        raise UsageError("A file is written, not standard output.", hint="name it, or ./- if that is its name.")
    if path.is_dir():
        raise UsageError(f"{output} is a folder.", hint="name the file to write in it.")
    # Renaming the draft would replace a device such as /dev/null with a regular file.
    if path.exists() and not path.is_file():
        raise UsageError(f"{output} is not a regular file.", hint="name a file that may be replaced.")
    if not path.parent.is_dir():
        raise UsageError(f"{output}: there is no folder {path.parent}.")
    draft = f".{path.name[:40]}.part"
    with ExitStack() as stack:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, folder)
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666, dir_fd=folder)
        if not _is_ours(descriptor, draft, folder):
            os.close(descriptor)
            hint = f"wait for it, or remove {path.parent / draft}."
            raise UsageError(f"Another command is writing {output}.", hint=hint)
        file = stack.enter_context(os.fdopen(descriptor, "r+b"))
        try:
            file.truncate(0)
            yield file
            file.flush()
            os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777)
            os.replace(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise


def _is_ours(descriptor: int, draft: str, folder: int) -> bool:
    """Lock the open draft. Returns False if it belongs to another command or user, or is another file's second name."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        facts = os.fstat(descriptor)
        is_plain = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and facts.st_uid == os.geteuid()
        return is_plain and os.path.samestat(facts, os.stat(draft, dir_fd=folder, follow_symlinks=False))
    except (BlockingIOError, FileNotFoundError):
        return False
