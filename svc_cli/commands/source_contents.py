"""Writes the stored bytes of a source to standard output or a file."""

from collections.abc import Iterable
from pathlib import Path

from svc_cli.console import Console, clean, is_terminal
from svc_cli.downloads import checked, replacing
from svc_cli.errors import UsageError
from svc_daemon.wire import JsonMapping


def send_content(console: Console, source: JsonMapping, blocks: Iterable[bytes]) -> None:
    """Write the bytes to standard output. Raises UsageError if that is a terminal, and the bytes are not text."""
    if not is_terminal(console.out):
        for block in checked(source, blocks):
            console.write_bytes(block)
        return
    try:
        content = b"".join(checked(source, blocks)).decode()
    except UnicodeDecodeError:
        content = "\0"
    if "\0" in content:
        raise UsageError(
            f"{source['title']} is not text, and standard output is a terminal.", hint="add -o FILE, or use a pipe."
        )
    console.print("\n".join(clean(line) for line in content.splitlines()))


def save_content(output: str, source: JsonMapping, blocks: Iterable[bytes]) -> None:
    """Write the bytes to a file, which is replaced at the end, or directly to a device or pipe."""
    path = Path(output)
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as device:
            device.writelines(checked(source, blocks))
        return
    with replacing(output) as file:
        file.writelines(checked(source, blocks))
