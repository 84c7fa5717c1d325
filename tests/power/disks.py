"""What a disk may contain after a power cut.

A file has the content of its last sync that ended, and a folder the names of its own last sync. Changes since then are
open: a file system may have written any of them, or only some sectors of a write.
"""

import os
import random
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.power.histories import Event, History, Naming, Node, Resize, Sync, Write

#: Devices write this many bytes at once, or none of them.
SECTOR_BYTES = 512
#: How many random choices of the open changes are made at each moment.
SUBSETS = 20

#: The bytes of each file, and None for each folder, by path below the root.
Disk = dict[str, bytes | None]
#: The open changes that the disk has, by the number of their events; with the sectors of a write that is torn.
Kept = Mapping[int, Collection[int] | None]


class Model(StrEnum):
    """Which of the open changes a disk can have."""

    #: Any of them, each as a whole.
    ANY = "any"
    #: Any of them, and any sectors of each write.
    TORN = "torn"
    #: All names, as if each rename came before the content; any of the writes.
    NAMES_FIRST = "names first"


@dataclass(frozen=True, slots=True)
class State:
    """A disk as a power cut after the first `count` events may leave it."""

    count: int
    kept: Kept
    how: str


class Replay:
    """Lays out the disks of a history."""

    def __init__(self, history: History, ignores: Callable[[Sync], bool] = lambda _: False) -> None:
        """`ignores` selects syncs that have no effect, to see that their loss is found."""
        self.history = history
        self._synced_by = _find_syncs(history.events, ignores)

    def list_open(self, count: int) -> list[int]:
        """Return the numbers of the changes that no sync has made durable within the first `count` events."""
        return [number for number, sync in self._synced_by.items() if number < count <= sync]

    def find_lost(self, state: State) -> set[int]:
        """Return the numbers of the changes that the disk lacks."""
        lost = {number for number in self.list_open(state.count) if number not in state.kept}
        # A rename may have come, or not; but no file system takes the old name and gives no new one, unless the old
        # name's folder was synced and the new one's was not.
        halves = self.history.old_names.intersection(self.list_open(state.count))
        return lost | {number for number in halves if number - 1 in lost}

    def make_disk(self, state: State) -> Disk:
        lost = self.find_lost(state)
        contents: dict[Node, bytearray] = {}
        names: dict[Node, dict[str, Node]] = {}
        for number, event in enumerate(self.history.events[: state.count]):
            did = event.did
            if number in lost or isinstance(did, Sync):
                continue
            if isinstance(did, Naming):
                for folder, name, node in did.names:
                    entries = names.setdefault(folder, dict(folder.first))
                    entries.pop(name, None)
                    if node is not None:
                        entries[name] = node
                continue
            content = contents.setdefault(did.node, bytearray(did.node.content))
            if isinstance(did, Resize):
                content[did.size :] = bytes(max(0, did.size - len(content)))
            else:
                for offset, data in _pieces(did, state.kept.get(number)):
                    content.extend(bytes(max(0, offset - len(content))))
                    content[offset : offset + len(data)] = data
        return dict(_list(self.history.top, "", contents, names))

    def choose(self, count: int, model: Model) -> Iterator[State]:
        """Yield what the model chooses to keep of the open changes after `count` events."""
        events, found = self.history.events, self.list_open(count)
        names = [number for number in found if isinstance(events[number].did, Naming)]
        always = names if model is Model.NAMES_FIRST else []
        free = [number for number in found if number not in always]
        draw = random.Random(f"{model} {count}")

        def state(how: str, *chosen: int, torn: Collection[int] = ()) -> State:
            kept: dict[int, Collection[int] | None] = dict.fromkeys([*always, *chosen])
            for number in torn:
                did = events[number].did
                if isinstance(did, Write) and len(sectors := _sectors(did)) > 1:
                    kept[number] = frozenset(draw.sample(sectors, draw.randrange(1, len(sectors))))
            return State(count, kept, f"{model}: {how}")

        yield state("nothing unsynced")
        yield state("everything", *free)
        for number in free:
            others = [each for each in free if each != number]
            torn = [number] if model is Model.TORN else []
            yield state(f"only {number}", number, torn=torn)
            yield state(f"all but {number}", *(free if torn else others), torn=torn)
        for subset in range(SUBSETS if len(free) > 1 else 0):
            chosen = [number for number in free if draw.random() < draw.choice((0.2, 0.5, 0.8))]
            yield state(f"subset {subset}", *chosen, torn=chosen if model is Model.TORN else [])


def write_disk(disk: Disk, root: Path) -> None:
    """Make this the folder's only content."""
    if root.exists():
        shutil.rmtree(root)
    root.mkdir(mode=0o700, parents=True)
    for path, data in sorted(disk.items()):
        if data is None:
            (root / path).mkdir(mode=0o700)
            continue
        descriptor = os.open(root / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)


def _find_syncs(events: list[Event], ignores: Callable[[Sync], bool]) -> dict[int, int]:
    """Return the number of the sync that has made each change durable; the number of all events if none has."""
    found: dict[int, int] = {}
    waiting: dict[int, Node] = {}
    for number, event in enumerate(events):
        did = event.did
        if not isinstance(did, Sync):
            waiting[number] = did.folder if isinstance(did, Naming) else did.node
            continue
        if ignores(did):
            continue
        for change, node in list(waiting.items()):
            if did.node in (None, node) and events[change].ended_s <= event.began_s:
                found[change] = number
                del waiting[change]
    return dict(sorted((found | dict.fromkeys(waiting, len(events))).items()))


def _sectors(write: Write) -> range:
    return range(write.offset // SECTOR_BYTES, (write.offset + len(write.data) - 1) // SECTOR_BYTES + 1)


def _pieces(write: Write, sectors: Collection[int] | None) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of a write that are in these sectors; None is all of it."""
    if sectors is None:
        yield write.offset, write.data
        return
    for sector in sorted(sectors):
        first = max(sector * SECTOR_BYTES, write.offset)
        yield first, write.data[first - write.offset : (sector + 1) * SECTOR_BYTES - write.offset]


def _list(
    folder: Node, path: str, contents: Mapping[Node, bytearray], names: Mapping[Node, Mapping[str, Node]]
) -> Iterator[tuple[str, bytes | None]]:
    """Yield each path below a folder, with the file's content."""
    for name, node in names.get(folder, folder.first).items():
        place = f"{path}{name}"
        if node.is_folder:
            yield place, None
            yield from _list(node, f"{place}/", contents, names)
        else:
            yield place, bytes(contents.get(node, node.content))
