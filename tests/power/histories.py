"""What happened to the files below a folder: changes and syncs, in the order of recorded system calls."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.power.system_calls import Call, encode

#: What nothing is promised about: the log, the folders of extractions, and the memory that SQLite's connections share,
#: which is a memory map.
NOT_PROMISED = (b"/log/", b"/scratch/", b"-shm")
_IGNORED = tuple(map(encode, NOT_PROMISED))


@dataclass(eq=False, slots=True)
class Node:
    """A file or folder, whatever its names are."""

    is_folder: bool
    #: What was there before the recording: a file's bytes, or a folder's entries.
    content: bytes = b""
    first: "dict[str, Node]" = field(default_factory=dict)
    #: A folder's entries, and a file's size, after all calls so far.
    entries: "dict[str, Node]" = field(default_factory=dict)
    size: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    node: Node
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Resize:
    node: Node
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Naming:
    """Names that are added to folders, or removed (None), all at once. A sync of `folder` makes that durable."""

    folder: Node
    names: tuple[tuple[Node, str, Node | None], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sync:
    #: What was synced; None is the whole file system.
    node: Node | None
    path: str


Change = Write | Resize | Naming


@dataclass(frozen=True, slots=True)
class Event:
    """A change or a sync that has ended."""

    began_s: float
    ended_s: float
    did: Change | Sync
    text: str


@dataclass(slots=True)
class _Opened:
    position: int
    appends: bool


class History:
    """The events below `root`, whose contents at the beginning count as durable."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[Event] = []
        #: The events that remove the old name of a renamed file; the event before each has added the new one.
        self.old_names: set[int] = set()
        self.top = _load(root, {})
        self._mark = encode(os.fsencode(root))
        #: By the number of the descriptor and its file, since several processes have the same numbers.
        self._opened: dict[tuple[int, Node], _Opened] = {}
        self._handlers: dict[str, Callable[[Call], None]] = {
            **dict.fromkeys(("open", "openat", "creat"), self._open),
            **dict.fromkeys(("write", "writev"), self._write),
            **dict.fromkeys(("pwrite64", "pwritev"), self._write_at),
            "lseek": self._seek,
            **dict.fromkeys(("ftruncate", "truncate"), self._resize),
            **dict.fromkeys(("rename", "renameat", "renameat2"), self._rename),
            **dict.fromkeys(("link", "linkat"), self._link),
            **dict.fromkeys(("mkdir", "mkdirat"), self._make_folder),
            **dict.fromkeys(("unlink", "unlinkat", "rmdir"), self._unlink),
            **dict.fromkeys(("fsync", "fdatasync", "syncfs"), self._sync),
            "mmap": self._map,
        }

    def add(self, calls: Sequence[Call]) -> None:
        """Add calls in the order in which they ended. Raises ValueError for one that is not modelled."""
        for call in sorted(calls, key=lambda call: call.ended_s):
            places = call.arguments[:1] if "write" in call.name else call.arguments
            ours = [place for place in places if self._mark in place]
            ignored = [place for place in ours if any(part in place for part in _IGNORED)]
            if ignored and any(place not in ignored for place in ours if not place.startswith(b"AT_FDCWD")):
                raise ValueError(f"a file comes from where nothing is promised, or goes there: {call}")
            if ignored or not ours:
                continue
            if call.name not in self._handlers:
                raise ValueError(f"{call.name} is not modelled: {call}")
            self._handlers[call.name](call)

    def find(self, path: str) -> Node | None:
        """Return what has this path after all calls so far."""
        node: Node | None = self.top
        for name in Path(path).relative_to(self.root).parts:
            node = node.entries.get(name) if node else None
        return node

    def _get(self, path: str) -> Node:
        if (node := self.find(path)) is None:
            raise ValueError(f"it used what was never created: {path}")
        return node

    def _open(self, call: Call) -> None:
        flags, path = call.flags(2 if call.name == "openat" else 1), call.opened
        if not Path(path).is_relative_to(self.root) or b"O_TMPFILE" in flags:
            # Only the current folder of the process is below the root, or the file never has a name.
            return
        node = self.find(path)
        if node is None:
            if b"O_CREAT" not in flags:
                raise ValueError(f"it opened what was never created: {path}")
            node = Node(is_folder=False)
            self._name(call, self._entry(path, node), path)
        if b"O_TRUNC" in flags and node.size:
            self._record(call, Resize(node, 0), path)
        self._opened[call.result, node] = _Opened(0, b"O_APPEND" in flags)

    def _write(self, call: Call) -> None:
        number, path = call.descriptor()
        if not path:
            return
        node, data = self._get(path), call.data(1)[: call.result]
        if (opened := self._opened.get((number, node))) is None:
            raise ValueError(f"another file is open: {call}")
        offset = node.size if opened.appends else opened.position
        opened.position = offset + len(data)
        self._record(call, Write(node, offset, data), path)

    def _write_at(self, call: Call) -> None:
        path = call.descriptor()[1]
        if path:
            self._record(call, Write(self._get(path), int(call.arguments[-1]), call.data(1)[: call.result]), path)

    def _seek(self, call: Call) -> None:
        number, path = call.descriptor()
        node = self.find(path) if path else None
        if node is not None and (opened := self._opened.get((number, node))) is not None:
            opened.position = call.result

    def _resize(self, call: Call) -> None:
        path = call.path(0) if call.name == "truncate" else call.descriptor()[1]
        if path:
            self._record(call, Resize(self._get(path), int(call.arguments[1])), path)

    def _rename(self, call: Call) -> None:
        if call.arguments[4:] not in ([], [b"0"], [b"RENAME_NOREPLACE"]):
            raise ValueError(f"this kind of rename is not modelled: {call}")
        old, new = _two_paths(call)
        node = self._get(old)
        removed, added = self._entry(old, None), self._entry(new, node)
        text = f"{old} -> {new}"
        if node.is_folder or removed[0] is added[0]:
            self._name(call, removed, text, added)
        else:
            self._name(call, added, f"{text} (its new name)")
            self.old_names.add(len(self.events))
            self._name(call, removed, f"{text} (its old name)")

    def _link(self, call: Call) -> None:
        old, new = _two_paths(call)
        self._name(call, self._entry(new, self._get(old)), f"{old} -> {new}")

    def _make_folder(self, call: Call) -> None:
        path = call.path(1, 0) if call.name == "mkdirat" else call.path(0)
        self._name(call, self._entry(path, Node(is_folder=True)), path)

    def _unlink(self, call: Call) -> None:
        path = call.path(1, 0) if call.name == "unlinkat" else call.path(0)
        self._name(call, self._entry(path, None), path)

    def _sync(self, call: Call) -> None:
        path = call.descriptor()[1]
        node = self.find(path) if path else None
        if node is not None:
            self._record(call, Sync(None if call.name == "syncfs" else node, path), path)

    def _map(self, call: Call) -> None:
        if b"PROT_WRITE" in call.flags(2) and b"MAP_SHARED" in call.flags(3):
            raise ValueError(f"strace doesn't see what is written through this memory map: {call}")

    def _entry(self, path: str, node: Node | None) -> tuple[Node, str, Node | None]:
        folder = self.find(os.path.dirname(path))  # noqa: PTH120 - a str
        if folder is None:
            raise ValueError(f"its folder was never created: {path}")
        return folder, Path(path).name, node

    def _name(
        self,
        call: Call,
        name: tuple[Node, str, Node | None],
        text: str,
        *more: tuple[Node, str, Node | None],
    ) -> None:
        for folder, each, node in (name, *more):
            folder.entries.pop(each, None)
            if node is not None:
                folder.entries[each] = node
        self._record(call, Naming((name, *more)[-1][0], (name, *more)), text)

    def _record(self, call: Call, did: Change | Sync, text: str) -> None:
        if isinstance(did, Write):
            did.node.size = max(did.node.size, did.offset + len(did.data))
            text += f" [{did.offset}:{did.offset + len(did.data)}]"
        elif isinstance(did, Resize):
            did.node.size = did.size
            text += f" to {did.size} bytes"
        shown = f"{call.name} {text}".replace(f"{self.root}{os.sep}", "")
        self.events.append(Event(call.began_s, call.ended_s, did, shown))


def _two_paths(call: Call) -> tuple[str, str]:
    return (call.path(0), call.path(1)) if len(call.arguments) == 2 else (call.path(1, 0), call.path(3, 2))


def _load(path: Path, seen: dict[tuple[int, int], Node]) -> Node:
    """Return what is there now; two names of one file are one node."""
    found = path.stat()
    key = found.st_dev, found.st_ino
    if key not in seen:
        node = seen[key] = Node(is_folder=path.is_dir(), size=found.st_size)
        if node.is_folder:
            node.first = {each.name: _load(each, seen) for each in path.iterdir()}
            node.entries = dict(node.first)
        else:
            node.content = path.read_bytes()
    return seen[key]
