"""Staging: the bytes of uploads that are being received, first in memory, then in files of this machine."""

import asyncio
import hashlib
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from svc_daemon.data_directory import list_own
from svc_daemon.errors import StorageError

log = logging.getLogger(__name__)

T = TypeVar("T")

#: From this size on, uploads are written to a file as they arrive.
SPILL_BYTES = 1024 * 1024
#: The names of staging files.
STAGED_NAME = re.compile("[0-9a-f]{32}")
#: Number of first bytes kept for guessing the media type.
HEAD_BYTES = 8192


def clear_away(path: Path) -> None:
    """Delete a file, if it exists. An error is logged, not raised."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s could not be removed: %s", path.name, error.strerror)


class Staging:
    """The folder of staging files. Blocking work runs in `executor`."""

    def __init__(self, folder: Path, executor: Executor, random_name: Callable[[], str]) -> None:
        self.folder = folder
        self._executor = executor
        self._random_name = random_name

    def new_path(self) -> Path:
        """Choose the path of a new staging file."""
        return self.folder / self._random_name()

    def list_staged(self) -> list[str]:
        """List the names of staging files. If no upload is running, a killed process left these files."""
        return list_own(self.folder, STAGED_NAME)

    def delete_staged(self, name: str) -> None:
        """Delete a staging file, or a symbolic link but not its target. A missing file is ignored."""
        if not self.folder.is_symlink():
            (self.folder / name).unlink(missing_ok=True)

    def clear_staging(self) -> int:
        """Delete the staging files of a killed process, at startup. Returns their number."""
        leftovers = [] if self.folder.is_symlink() else self.list_staged()
        for leftover in leftovers:
            self.delete_staged(leftover)
        return len(leftovers)

    def try_room(self, size_bytes: int) -> None:
        """Check that the disk has this much room by writing a temporary file. Raises OSError."""
        path = self.new_path()
        try:
            with path.open("xb", buffering=0) as file:
                _write_all(file, bytearray(size_bytes))
        finally:
            path.unlink(missing_ok=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run disk work in a thread. Raises StorageError for OSError.

        A cancelled call still waits for the work, so that no file is deleted while it is written.
        """
        running = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise
        except OSError as error:
            raise StorageError("The disk refused the file; nothing was stored.", errno=error.errno) from error


class StagedFile(ABC):
    """The bytes of an upload, hashed as they arrive, then kept as a blob or discarded."""

    def __init__(self, staging: Staging) -> None:
        self.size_bytes = 0
        self.head = b""
        self._staging = staging
        self._path = staging.new_path()
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._file: BinaryIO | None = None

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    async def append(self, data: bytes) -> None:
        """Append bytes. Raises StorageError."""
        if len(self.head) < HEAD_BYTES:
            self.head += data[: HEAD_BYTES - len(self.head)]
        self.size_bytes += len(data)
        self._hash.update(data)
        self._buffer += data
        if len(self._buffer) >= SPILL_BYTES:
            await self._staging.run(self._spill)

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` of the received bytes, starting at `offset_bytes`. Raises StorageError."""
        if self._file is None:
            return bytes(self._buffer[offset_bytes : offset_bytes + most_bytes])
        return await self._staging.run(lambda: self._read(offset_bytes, most_bytes))

    @abstractmethod
    async def keep(self, name: str) -> None:
        """Make the bytes durable as the blob of this name. If this fails, the bytes are deleted."""

    async def discard(self) -> None:
        """Discard the bytes and the staging file. Idempotent; disk errors are not raised."""
        # Replace the buffer: it can't be cleared while the traceback of a failed write still refers to it.
        self._buffer = bytearray()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
            clear_away(self._path)

    def _spill(self) -> BinaryIO:
        """Write the buffered bytes to the staging file, and return this file."""
        if self._file is None:
            self._file = self._path.open("xb", buffering=0)
        _write_all(self._file, self._buffer)
        self._buffer.clear()
        return self._file

    def _read(self, offset_bytes: int, most_bytes: int) -> bytes:
        self._spill()
        with self._path.open("rb") as file:
            file.seek(offset_bytes)
            return file.read(most_bytes)


def _write_all(file: BinaryIO, data: bytearray) -> None:
    """Write all bytes. One write may be partial, because the file isn't buffered."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
