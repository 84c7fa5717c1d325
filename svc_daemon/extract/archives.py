"""Checks zip archives (DOCX, XLSX, PPTX, EPUB, …) for zip bombs before they are parsed.

First the declared sizes are checked, then every member is expanded and counted. Archives within archives are never
opened.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from svc_daemon.extract import failures
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.xml_entities import check_entities

_ENCRYPTED_FLAG = 1
#: Maximum number of bytes expanded in one step.
READ_BYTES = 256 * 1024
#: The compression ratio is checked only for members that are larger than this.
_RATIO_FROM_BYTES = 1024**2


@contextmanager
def open_archive(data: bytes, limits: CageLimits) -> Iterator[ZipFile]:
    """Open a zip archive. Raises ExtractionFailed if it is damaged, encrypted or over the limits."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            _check_members(archive, limits)
            yield archive
    except (BadZipFile, zlib.error, EOFError, KeyError, ValueError, NotImplementedError, OSError) as error:
        raise failures.unreadable("The file is damaged: its archive can't be expanded.") from error


def check_archive(data: bytes, limits: CageLimits) -> None:
    """Raise ExtractionFailed if `open_archive` would, or if XML in the archive declares entities."""
    with open_archive(data, limits) as archive:
        for member in archive.infolist():
            with archive.open(member) as content:
                check_entities(iter(partial(content.read, READ_BYTES), b""))


def _check_members(archive: ZipFile, limits: CageLimits) -> None:
    members = archive.infolist()
    if len(members) > limits.archive_entries:
        raise failures.over_limit(f"The file is an archive of more than {limits.archive_entries} members.")
    if any(member.flag_bits & _ENCRYPTED_FLAG for member in members):
        raise failures.encrypted()
    if sum(member.file_size for member in members) > limits.archive_bytes:
        raise too_large(limits)
    for member in members:
        check_ratio(member.compress_size, member.file_size, limits)
    # Declared sizes may be false, so count what is produced.
    total = 0
    for member in members:
        size = 0
        with archive.open(member) as content:
            while piece := content.read(READ_BYTES):
                size += len(piece)
                if total + size > limits.archive_bytes:
                    raise too_large(limits)
        check_ratio(member.compress_size, size, limits)
        total += size


def check_ratio(packed_bytes: int, size: int, limits: CageLimits) -> None:
    """Raise ExtractionFailed if the compression ratio is over the limit."""
    if size > _RATIO_FROM_BYTES and size > limits.archive_ratio * max(packed_bytes, 1):
        raise failures.over_limit(f"The file expands to more than {limits.archive_ratio} times its size.")


def too_large(limits: CageLimits) -> failures.ExtractionFailed:
    """Return the error for a file that expands beyond the limit."""
    return failures.over_limit(f"The file expands to more than {limits.archive_bytes // 1024**2} MB.")
