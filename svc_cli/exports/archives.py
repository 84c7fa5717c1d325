"""The archive of an export: an uncompressed tar with the manifest, its checksum, and its members, sorted by name.

It contains plain files only. An archive is refused if one of its headers differs from what `svc` would write.
"""

import hashlib
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from svc_cli.errors import BadAnswer
from svc_cli.exports.manifests import ExportManifest, ExportRefused, parse_manifest

#: The manifest, and its checksum in the format of `sha256sum`.
MANIFEST, CHECKSUM = "manifest.json", "manifest.json.sha256"
#: Maximum size of a manifest, which is read into memory.
MOST_MANIFEST_BYTES = 256 * 1024**2
BLOCK_BYTES = 1024 * 1024


def header_of(name: str, size_bytes: int) -> bytes:
    """Return the tar header of a member: a plain file without owner and time."""
    member = tarfile.TarInfo(name)
    member.size = size_bytes
    return member.tobuf(tarfile.USTAR_FORMAT)


class ArchiveWriter:
    """Writes an archive to an open file."""

    def __init__(self, file: BinaryIO, manifest: ExportManifest) -> None:
        """Write the manifest to the archive. Raises ExportRefused if the manifest is too large."""
        self.manifest = manifest
        self._file = file
        self._digest = hashlib.sha256()
        self.size_bytes = 0
        head = manifest.encode()
        if len(head) > MOST_MANIFEST_BYTES:
            raise ExportRefused(f"{manifest.bucket.slug} has too many sources for one export.")
        for name, data in ((MANIFEST, head), (CHECKSUM, _checksum(head))):
            self.add(name, len(data), [data])

    def add(self, name: str, size_bytes: int, blocks: Iterable[bytes]) -> None:
        """Write a member. Raises BadAnswer if it doesn't have this size."""
        self._write(header_of(name, size_bytes))
        begin_bytes = self.size_bytes
        for block in blocks:
            self._write(block)
        if self.size_bytes - begin_bytes != size_bytes:
            raise BadAnswer(f"The service sent {self.size_bytes - begin_bytes} of {size_bytes} bytes.")
        self._write(bytes(-size_bytes % tarfile.BLOCKSIZE))

    def end(self) -> str:
        """Write the end of the archive; returns the SHA-256 of the whole file."""
        self._write(bytes(_end_bytes(self.size_bytes)))
        return self._digest.hexdigest()

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.size_bytes += len(data)


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was checked."""

    manifest: ExportManifest
    #: The offset of each member's first byte, by name.
    offsets: dict[str, int]


def read_archive(file: BinaryIO, on_read: Callable[[int], None]) -> Archive:
    """Read and check a whole archive. Raises ExportRefused if `svc` would not have written it.

    `on_read` gets the number of bytes read so far.
    """
    header = file.read(tarfile.BLOCKSIZE)
    try:
        size_bytes = tarfile.TarInfo.frombuf(header, "utf-8", "strict").size
    except tarfile.HeaderError as error:
        raise ExportRefused("The file is not an export of a bucket: it is no tar archive.") from error
    if not 0 <= size_bytes <= MOST_MANIFEST_BYTES or header != header_of(MANIFEST, size_bytes):
        raise ExportRefused(f"The file is not an export of a bucket: it does not begin with {MANIFEST}.")
    head = b"".join(_member(file, MANIFEST, size_bytes))
    checksum = _checksum(head)
    is_whole = file.read(tarfile.BLOCKSIZE) == header_of(CHECKSUM, len(checksum))
    if not is_whole or b"".join(_member(file, CHECKSUM, len(checksum))) != checksum:
        raise ExportRefused(f"The export is damaged: {CHECKSUM} does not match {MANIFEST}.")
    manifest, offsets = parse_manifest(head), {}
    for name, member_bytes in sorted(manifest.members.items()):
        if file.read(tarfile.BLOCKSIZE) != header_of(name, member_bytes):
            raise ExportRefused(f"The export is damaged: {name} is missing, or is not the plain file it should be.")
        offsets[name] = file.tell()
        digest = hashlib.sha256()
        for block in _member(file, name, member_bytes):
            digest.update(block)
            on_read(file.tell())
        if name.rpartition("/")[2] != digest.hexdigest():
            raise ExportRefused(f"The export is damaged: the SHA-256 of {name} is {digest.hexdigest()}.")
    rest_bytes = _end_bytes(file.tell())
    # Read one byte more, to detect data after the end.
    if file.read(rest_bytes + 1) != bytes(rest_bytes):
        raise ExportRefused("The export is damaged: it does not end where it should.")
    return Archive(manifest, offsets)


def _member(file: BinaryIO, name: str, size_bytes: int) -> Iterator[bytes]:
    """Yield the bytes of the member at the current position, without its padding."""
    left_bytes = size_bytes
    while left_bytes:
        block = file.read(min(BLOCK_BYTES, left_bytes))
        if not block:
            raise ExportRefused(f"The export is damaged: it ends within {name}.")
        left_bytes -= len(block)
        yield block
    padding = bytes(-size_bytes % tarfile.BLOCKSIZE)
    if file.read(len(padding)) != padding:
        raise ExportRefused(f"The export is damaged after {name}.")


def _checksum(manifest: bytes) -> bytes:
    return f"{hashlib.sha256(manifest).hexdigest()}  {MANIFEST}\n".encode()


def _end_bytes(size_bytes: int) -> int:
    """Return the number of zero bytes at the end of a tar archive.

    The zero bytes fill two blocks, and then the rest of the last record.
    """
    least_bytes = size_bytes + 2 * tarfile.BLOCKSIZE
    return least_bytes - size_bytes + -least_bytes % tarfile.RECORDSIZE
