"""Writes the stored bytes of a source to standard output, or to a file that is replaced atomically."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

from svc_cli.console import Console, clean, is_terminal
from svc_cli.errors import BadAnswer, UsageError
from svc_daemon.wire import JsonMapping


def send_content(console: Console, source: JsonMapping, blocks: Iterable[bytes]) -> None:
    """Write the bytes to standard output. Raises UsageError if that is a terminal and the bytes are not text."""
    checked = _checked(source, blocks)
    if not is_terminal(console.out):
        for block in checked:
            console.write_bytes(block)
        return
    try:
        content = b"".join(checked).decode()
    except UnicodeDecodeError:
        content = "\0"
    if "\0" in content:
        raise UsageError(
            f"{source['title']} is not text, and standard output is a terminal.", hint="add -o FILE, or use a pipe."
        )
    console.print("\n".join(clean(line) for line in content.splitlines()))


def save_content(output: str, source: JsonMapping, blocks: Iterable[bytes]) -> None:
    """Write the bytes to a temporary file, and rename it to `output` when all bytes have arrived.

    If `output` is a symbolic link, its target is replaced; a device or pipe is written to directly.
    """
    path = Path(output)
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as device:
            device.writelines(_checked(source, blocks))
        return
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise UsageError(f"{output} is a folder.", hint="name the file to write in it.")
    if not path.parent.is_dir():
        raise UsageError(f"{output}: there is no folder {path.parent}.")
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:40]}.", delete=False) as draft:
        try:
            for block in _checked(source, blocks):
                draft.write(block)
            draft.flush()
            os.fsync(draft.fileno())
            # The umask can be read only by setting it.
            mask = os.umask(0o077)
            os.umask(mask)
            Path(draft.name).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
            Path(draft.name).replace(path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise


def _checked(source: JsonMapping, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks. Raises BadAnswer after the last block if the SHA-256 differs from that of the uploaded file."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        yield block
    if source.get("sha256") not in (None, digest.hexdigest()):
        raise BadAnswer(f"The bytes of {source['id']} are not those that were uploaded: their SHA-256 differs.")
