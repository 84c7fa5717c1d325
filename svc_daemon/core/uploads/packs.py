"""The pack of a batch: the bytes of all its items, one after another, sent as one body.

A pack has no bytes of its own. Each item's bytes are appended to the file of the item's upload session, as if they had
been sent to the session's own URL. So every session has one of the states in `sessions`, and a client may send some
items in the pack and others to their own URLs:

- The offset of the pack is the end of its contiguous stored range: all items before it are stored whole, or have ended.
- Bytes of an item that are already stored are skipped, however they were sent. So are all bytes of an item whose
  session has ended (finalized, canceled, failed).
- A pack is open as long as one of its sessions is open; once all have ended, it only reports how they ended.

After a crash, the sizes of the sessions' files give the offset: whole items, and the beginning of the next one.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.uploads import sessions

#: Statuses of ended sessions, in order of precedence: if no session of a pack is open, the pack has the first of these
#: statuses that any of its sessions has.
_REPORTED = (sessions.FINALIZED, sessions.CANCELED, sessions.EXPIRED)


@dataclass(frozen=True, slots=True)
class PackItem:
    """The position of an item in its pack, and how much of it is stored."""

    session_id: str
    #: Offset of the item's first byte in the pack.
    offset_bytes: int
    size_bytes: int
    #: Number of leading bytes that need not be sent: those already stored, or all if the session has ended.
    held_bytes: int


def place_items(items: Iterable[tuple[str, int, int]]) -> list[PackItem]:
    """Lay out items, each given as session id, size and held bytes, without gaps."""
    placed: list[PackItem] = []
    offset_bytes = 0
    for session_id, size_bytes, held_bytes in items:
        placed.append(PackItem(session_id, offset_bytes, size_bytes, held_bytes))
        offset_bytes += size_bytes
    return placed


def received_bytes(items: Sequence[PackItem]) -> int:
    """Return the end of the pack's contiguous stored range."""
    for item in items:
        if item.held_bytes < item.size_bytes:
            return item.offset_bytes + item.held_bytes
    return items[-1].offset_bytes + items[-1].size_bytes


def state_of(statuses: Collection[str], received: int, size_bytes: int, *, is_expired: bool) -> str:
    """Compute the pack's state, one of those in `sessions`, from the stored statuses of its sessions."""
    # A pack is open while one of its sessions is: -1 puts `open` before all statuses of ended sessions.
    stored = min(statuses, key=lambda status: _REPORTED.index(status) if status in _REPORTED else -1)
    return sessions.state_of(stored, received, size_bytes, is_expired=is_expired)


def split(items: Sequence[PackItem], first: int, data: memoryview) -> Iterator[tuple[PackItem, memoryview]]:
    """Yield the bytes that each item lacks, in order; `first` is the offset in the pack of the data's first byte."""
    index = bisect_right(items, first, key=lambda item: item.offset_bytes) - 1
    end = first + len(data)
    for item in items[index:]:
        if item.offset_bytes >= end:
            return
        begin = max(first, item.offset_bytes + item.held_bytes) - first
        until = min(end, item.offset_bytes + item.size_bytes) - first
        if begin < until:
            yield item, data[begin:until]
