"""The layout of packs: several files of a batch, sent one after another as one body.

Each file's bytes are appended to its upload session, as if sent to the session's own URL:

- A pack's offset is how many of its bytes are stored without a gap. The sizes of the sessions determine it.
- Bytes of a file that are stored, or whose session has ended, are skipped.
- A pack is open as long as one of its sessions is open.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.uploads import sessions

#: If none of a pack's sessions is open, the pack has the first of these statuses that any of its sessions has.
_REPORTED = (sessions.FINALIZED, sessions.CANCELED, sessions.FAILED, sessions.EXPIRED)


@dataclass(frozen=True, slots=True)
class PackItem:
    """A file's position in its pack, and how much of it is stored."""

    session_id: str
    #: Offset of the file's first byte within the pack.
    offset_bytes: int
    size_bytes: int
    #: How many of the file's first bytes need not be sent: those already stored, or all if the session has ended.
    held_bytes: int


def place_items(items: Iterable[tuple[str, int, int]]) -> list[PackItem]:
    """Compute where each file begins in the pack. An item is a session's id, size and `held_bytes`."""
    placed: list[PackItem] = []
    offset_bytes = 0
    for session_id, size_bytes, held_bytes in items:
        placed.append(PackItem(session_id, offset_bytes, size_bytes, held_bytes))
        offset_bytes += size_bytes
    return placed


def received_bytes(items: Sequence[PackItem]) -> int:
    """Return how many bytes of the pack are stored without a gap."""
    for item in items:
        if item.held_bytes < item.size_bytes:
            return item.offset_bytes + item.held_bytes
    return items[-1].offset_bytes + items[-1].size_bytes


def state_of(statuses: Collection[str], received: int, size_bytes: int, *, is_expired: bool) -> str:
    """Compute the state of a pack from the stored statuses of its sessions."""
    # -1 puts `open` first, since a pack is open while one of its sessions is.
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
