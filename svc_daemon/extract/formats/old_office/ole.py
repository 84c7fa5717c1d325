"""Compound files, in which old office programs and Outlook keep the parts of a document."""

import struct
from collections.abc import Iterator

from svc_daemon.extract import documents

_END = 0xFFFFFFFA
_ENTRY_BYTES = 128
_STORAGE, _STREAM, _ROOT = 1, 2, 5


class CompoundFile:
    """The streams of a file, by their paths, such as `WordDocument` or `__attach_version1.0_#00000000/name`."""

    def __init__(self, data: bytes) -> None:
        """Read the directory. Raises ExtractionFailed if there is none."""
        self._data = data
        try:
            self.read_head()
        except (struct.error, ValueError, IndexError) as error:
            raise documents.unreadable("The file is damaged: its parts can't be found.") from error

    def read_head(self) -> None:
        shift, mini_shift = struct.unpack_from("<HH", self._data, 30)
        first_directory, self._cutoff, first_mini, minis, first_difat, _ = struct.unpack_from(
            "<I4xIIIII", self._data, 48
        )
        if not (7 <= shift <= 16 and mini_shift <= shift):
            raise ValueError(shift)
        self._size, self._mini_size = 1 << shift, 1 << mini_shift
        #: Sectors that the file can have at most; no chain is longer.
        self._most = len(self._data) // self._size + 1
        fat_sectors = list(struct.unpack_from("<109I", self._data, 76))
        while first_difat < _END and len(fat_sectors) <= self._most:
            numbers = self._numbers(first_difat)
            fat_sectors += numbers[:-1]
            first_difat = numbers[-1]
        self._fat = [number for sector in fat_sectors if sector < _END for number in self._numbers(sector)]
        self._mini_fat = (
            struct.unpack(f"<{len(mini := self._chain(first_mini)) // 4}I", mini[: len(mini) // 4 * 4]) if minis else ()
        )
        self._directory = self._chain(first_directory)
        self._mini_stream = b""
        #: By its path: the first sector and the size of a stream.
        self._streams = {path: place for path, place in self.walk() if path}
        # Names are the same whatever their capitals, which some programs change.
        self._lower_names = {path.lower(): path for path in self._streams}
        root = struct.unpack_from("<I", self._directory, 116)[0]
        self._mini_stream = self._chain(root)

    def _numbers(self, sector: int) -> list[int]:
        piece = self._data[(sector + 1) * self._size : (sector + 2) * self._size]
        return list(struct.unpack(f"<{len(piece) // 4}I", piece[: len(piece) // 4 * 4]))

    def _chain(self, sector: int) -> bytes:
        """Return the bytes of sectors that follow each other. What a damaged file lacks is missing."""
        pieces: list[bytes] = []
        while sector < len(self._fat) and len(pieces) <= self._most:
            pieces.append(self._data[(sector + 1) * self._size : (sector + 2) * self._size])
            sector = self._fat[sector]
        return b"".join(pieces)

    def walk(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the paths of all streams, with their places."""
        waiting, seen = [(0, "")], set[int]()
        while waiting:
            number, folder = waiting.pop()
            at = number * _ENTRY_BYTES
            if number in seen or at + _ENTRY_BYTES > len(self._directory):
                continue
            seen.add(number)
            length, kind = struct.unpack_from("<HB", self._directory, at + 64)
            left, right, child = struct.unpack_from("<III", self._directory, at + 68)
            start, size = struct.unpack_from("<II", self._directory, at + 116)
            name = self._directory[at : at + max(0, min(length, 64) - 2)].decode("utf-16-le", "replace")
            waiting += [(left, folder), (right, folder)]
            if kind == _ROOT:
                waiting.append((child, ""))
            elif kind == _STORAGE:
                waiting.append((child, f"{folder}{name}/"))
            elif kind == _STREAM:
                yield f"{folder}{name}", (start, size)

    def names(self) -> list[str]:
        """Return the paths of all streams."""
        return sorted(self._streams)

    def read(self, path: str) -> bytes:
        """Return the bytes of a stream; none if there is no such stream."""
        start, size = self._streams.get(self._lower_names.get(path.lower(), path), (_END, 0))
        if size >= self._cutoff:
            return self._chain(start)[:size]
        pieces: list[bytes] = []
        while start < len(self._mini_fat) and len(pieces) * self._mini_size < size:
            pieces.append(self._mini_stream[start * self._mini_size : (start + 1) * self._mini_size])
            start = self._mini_fat[start]
        return b"".join(pieces)[:size]
