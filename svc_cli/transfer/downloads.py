"""Checks downloaded bytes, and replaces a file only when all of them have arrived."""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from svc_cli.errors import BadAnswer, UsageError
from svc_cli.given_files import is_stream
from svc_cli.private_files import lock as lock_file
from svc_cli.private_files import rename
from svc_cli.transfer.rooted_files import LIST, EnteredFolder, Root, refuse_way_out
from svc_daemon.paths import AS_IT_IS, NO_LINK, opens_folders
from svc_daemon.wire import JsonMapping

#: Names that are none of a file on Windows: those of devices, those with a character that means something else, such
#: as the colon in front of a stream, and those whose end the system cuts off.
_NO_NAME_ON_WINDOWS = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9\u00b9\u00b2\u00b3]) *(?:\..*)?"
    r'|.*[<>:"|?*\x00-\x1f].*|.*[^. ][. ]+',
    re.IGNORECASE | re.DOTALL,
).fullmatch


def checked(source: JsonMapping, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks. Raises BadAnswer after the last block if their SHA-256 is not that of the source."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        yield block
    if source.get("sha256") not in (None, digest.hexdigest()):
        raise BadAnswer(f"The bytes of {source['id']} are not those that were uploaded: their SHA-256 differs.")


def open_target(output: str) -> tuple[Root, Path]:
    """Open the folder of a file to write, and return it with the file's place in it. Raises UsageError.

    The maker of the folder, such as the author of a repository, may have put a link there to a file of the user. So
    the file may be a link within its folder, and a folder on the way to it a link within its repository. What is
    checked is what is open, since a link can take the place of a folder at any time.
    """
    path = Path(os.path.realpath(output)) if is_stream(Path(output)) else Path(output)
    try:
        root = Root(path.parent)
    except OSError as error:
        raise UsageError(f"{output}: there is no folder {path.parent}.") from error
    refuse_way_out(path.parent, root.way_out, "written")
    place = root.find(path.name) if (root.path / path.name).is_symlink() else path.name
    if place is None:
        hint = f"to write that file, name {os.path.realpath(path)}."
        raise UsageError(f"{output} is a link that leads out of its folder.", hint=hint)
    return root, Path(place)


@contextmanager
def writing(output: str) -> Iterator[BinaryIO]:
    """Open a file to write, which is replaced at the end of the block as by `replacing`, or a device or pipe."""
    mode = _find_mode(output)
    if mode and not stat.S_ISREG(mode):
        with Path(output).open("wb") as device:
            yield device
        return
    with replacing(output) as file:
        yield file


def _find_mode(output: str) -> int:
    """Return the mode of a file to write, 0 if there is none. Raises UsageError if it can't be one."""
    name = Path(output).name
    if not opens_folders() and _NO_NAME_ON_WINDOWS(name):
        raise UsageError(f"{name!r} can't be the name of a file on Windows.", hint="give the file another name.")
    try:
        mode = os.stat(output).st_mode  # noqa: PTH116 - also `-` is a name
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}.") from error
    if stat.S_ISDIR(mode):
        raise UsageError(f"{output} is a folder.", hint="name the file to write in it.")
    return mode


@contextmanager
def replacing(output: str) -> Iterator[BinaryIO]:
    """Open a draft in the folder of `output`, and rename it to `output` at the end of the block.

    Raises UsageError if `output` is not a regular file, its folder does not exist, or another command is writing it.
    """
    if output == "-":
        raise UsageError("A file is written, not standard output.", hint="name it, or ./- if that is its name.")
    mode = _find_mode(output)
    # Renaming the draft would replace a device such as /dev/null with a regular file.
    if mode and not stat.S_ISREG(mode):
        raise UsageError(f"{output} is not a regular file.", hint="name a file that may be replaced.")
    root, path = open_target(output)
    draft = f".{path.name[:40]}.part"
    with ExitStack() as stack:
        folder = stack.enter_context(root.enter(str(path.parent), LIST))
        descriptor = _open_draft(draft, folder)
        if descriptor is None:
            hint = f"wait for the command that writes it, or remove {Path(output).parent / draft}."
            raise UsageError(f"The draft of {output} is in use, or is not ours.", hint=hint)
        file = stack.enter_context(os.fdopen(descriptor, "r+b"))
        try:
            file.truncate(0)
            yield file
            file.flush()
            os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                mode = os.stat(folder.at(path.name), dir_fd=folder.descriptor, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode) and hasattr(os, "fchmod"):  # a link has the mode 0777
                    os.fchmod(file.fileno(), mode & 0o777)
            if folder.descriptor is None:  # Windows renames no open file
                file.close()
            rename(folder.at(draft), folder.at(path.name), folder.descriptor)
            if folder.descriptor is not None:
                os.fsync(folder.descriptor)
        except BaseException:
            if folder.descriptor is None:  # nor removes one
                file.close()
            with suppress(OSError):
                os.unlink(folder.at(draft), dir_fd=folder.descriptor)
            raise


def _open_draft(draft: str, folder: EnteredFolder) -> int | None:
    """Open and lock the draft. Returns None if it belongs to another command or user, or is no file of its own."""
    try:
        flags = os.O_RDWR | os.O_CREAT | AS_IT_IS | NO_LINK
        descriptor = os.open(folder.at(draft), flags, 0o666, dir_fd=folder.descriptor)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            return None
        raise
    try:
        lock_file(descriptor)
        facts = os.fstat(descriptor)
        is_ours = not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()
        there = os.stat(folder.at(draft), dir_fd=folder.descriptor, follow_symlinks=False)
        if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and is_ours and os.path.samestat(facts, there):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
