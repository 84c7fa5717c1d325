"""Packs: the bytes of all files of a batch, one after another, sent as the body of one request.

A pack has no bytes of its own. The bytes of each file are appended to the file's upload session, as if they had been
sent to the session's own URL. So every session has one of the states in `sessions`, and a client may send some files in
the pack and others to their own URLs:

- The offset of a pack is the end of its contiguous stored range: all files before it are stored completely, or their
  sessions have ended.
- Bytes of a file that are already stored are skipped, however they were sent. So are all bytes of a file whose session
  has ended (finalized, canceled, failed).
- A pack is open as long as one of its sessions is open. After that, it only reports how they ended.

After a crash, the sizes of the sessions' files give the offset: some complete files, and the beginning of the next one.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.uploads import sessions

#: Statuses of ended sessions. If no session of a pack is open, the status of the pack is the first of these that any
#: session has.
_REPORTED = (sessions.FINALIZED, sessions.CANCELED, sessions.EXPIRED)


@dataclass(frozen=True, slots=True)
class PackItem:
    """The position of a file in its pack, and how much of the file is stored."""

    session_id: str
    #: Offset of the file's first byte within the pack.
    offset_bytes: int
    size_bytes: int
    #: Number of leading bytes that need not be sent: those that are stored, or all of them if the session has ended.
    held_bytes: int


def place_items(items: Iterable[tuple[str, int, int]]) -> list[PackItem]:
    """Arrange files one after another in a pack. Each is given as session id, size, and number of stored bytes."""
    placed: list[PackItem] = []
    offset_bytes = 0
    for session_id, size_bytes, held_bytes in items:
        placed.append(PackItem(session_id, offset_bytes, size_bytes, held_bytes))
        offset_bytes += size_bytes
    return placed


def received_bytes(items: Sequence[PackItem]) -> int:
    """Return the end of the pack's contiguous stored range, which begins with its first byte."""
    for item in items:
        if item.held_bytes < item.size_bytes:
            return item.offset_bytes + item.held_bytes
    return items[-1].offset_bytes + items[-1].size_bytes


def state_of(statuses: Collection[str], received: int, size_bytes: int, *, is_expired: bool) -> str:
    """Compute the state of a pack, one of those in `sessions`, from the stored statuses of its sessions."""
    # The index -1 makes `open` the smallest status, since a pack is open while one of its sessions is.
    stored = min(statuses, key=lambda status: _REPORTED.index(status) if status in _REPORTED else -1)
    return sessions.state_of(stored, received, size_bytes, is_expired=is_expired)


def split(items: Sequence[PackItem], first: int, data: memoryview) -> Iterator[tuple[PackItem, memoryview]]:
    """Yield the parts of `data` that the files still lack, file by file.

    `data` begins at the offset `first` of the pack.
    """
    index = bisect_right(items, first, key=lambda item: item.offset_bytes) - 1
    end = first + len(data)
    for item in items[index:]:
        if item.offset_bytes >= end:
            return
        begin = max(first, item.offset_bytes + item.held_bytes) - first
        until = min(end, item.offset_bytes + item.size_bytes) - first
        if begin < until:
            yield item, data[begin:until]
