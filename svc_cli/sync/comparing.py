"""Compares the folder with the index, and yields what to do about each file, moved ones included.

A new file with a known hash may be a moved file. Such files come last, because only the complete walk shows which files
are gone.
"""

import itertools
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple

from svc_cli.errors import UNFORESEEN, FileRefused, SvcError, understood
from svc_cli.sync.index import FileRow, State
from svc_cli.sync.plan import Verb, judge
from svc_cli.transfer.contents import FileContent, read
from svc_cli.transfer.skips import (
    PICTURE,
    PLACEHOLDER,
    UNREADABLE_TYPE,
    has_placeholder,
    is_pointer,
    reason_by_type,
)
from svc_cli.transfer.snapshots import Entry, Snapshot


def match_moves(
    newcomers: Iterable[FileRow], gone: Iterable[FileRow]
) -> tuple[list[tuple[FileRow, FileRow]], list[FileRow]]:
    """Pair each new file with a deleted file of the same hash, preferably of the same name.

    Returns the pairs (new, deleted), and the new files without a match.
    """
    by_hash: defaultdict[str, list[FileRow]] = defaultdict(list)
    for row in sorted(gone, key=lambda row: row.path):
        if row.source_id and row.state in (State.READY, State.SENT):
            by_hash[row.sha256].append(row)
    moves, rest = [], []
    for new in sorted(newcomers, key=lambda new: new.path):
        known = by_hash[new.sha256]
        if not known:
            rest.append(new)
            continue
        named_so = [row for row in known if _name(row.path) == _name(new.path)]
        best = (named_so or known)[0]
        known.remove(best)
        moves.append((new, best))
    return moves, rest


def _name(path: str) -> str:
    return path.rpartition("/")[2]


class Change(NamedTuple):
    """What a sync has to do about one file."""

    verb: Verb
    path: str
    #: The file's row in the index; for MOVE, the row of its old path.
    row: FileRow | None
    #: The file's new row; None if the file could not be read.
    now: FileRow | None = None
    #: The file's content, if it is to be sent.
    content: FileContent | None = None
    #: Why the file could not be read.
    error: SvcError | None = None
    size_bytes: int | None = None


@dataclass(slots=True)
class Comparison:
    """A comparison of the folder with the index. Iterate it once; then its lists and `met` are complete."""

    snapshot: Snapshot
    rows: Mapping[str, FileRow]
    #: Called with the path of each file that is ready and unchanged. Such files are not yielded.
    on_kept: Callable[[str], None]
    #: Whether the mapping may update, move and retry the sources of a row.
    owns: Callable[[FileRow], bool]
    #: Whether to read and hash files even if their metadata is unchanged.
    is_thorough: bool = False
    #: Rows of files that no longer exist.
    gone: list[FileRow] = field(default_factory=list)
    #: Rows of files that exist but are now left out.
    left_out: list[FileRow] = field(default_factory=list)
    #: Rows of files of which the folder has only a placeholder.
    absent: list[FileRow] = field(default_factory=list)
    #: Number of files in the folder.
    met: int = 0
    _refreshed: list[FileRow] = field(default_factory=list)
    _walk: Iterator[Entry] = field(init=False)

    def __post_init__(self) -> None:
        self._walk = iter(self.snapshot)

    def __iter__(self) -> Iterator[Change]:
        """Yield the changes. Raises OSError if the root can't be listed."""
        unmet, ready = dict(self.rows), str(State.READY)
        # Computed only if there are new files.
        known_hashes = cache(lambda: {row.sha256 for row in self.rows.values() if row.source_id})
        newcomers: dict[str, tuple[Change, FileRow]] = {}
        for entry in self._walk:
            self.met += 1
            row = self.rows.get(entry.path)
            if row is not None and row.state == ready and not self.is_thorough and row.is_same(entry.fingerprint):
                unmet.pop(entry.path, None)
                self.on_kept(entry.path)
                continue
            try:
                change = self._examine(entry, row)
            except UNFORESEEN as error:  # one odd file must not end the run
                refused, size_bytes = understood(error), entry.fingerprint.size_bytes
                change = Change(Verb.FAIL, entry.path, row, error=refused, size_bytes=size_bytes)
            if change is None:
                continue
            unmet.pop(entry.path, None)
            if change.verb is Verb.CREATE and change.now is not None and change.now.sha256 in known_hashes():
                newcomers[entry.path] = change, change.now
            else:
                yield change
        for row in unmet.values():
            self._place_of(row).append(row)
        # Missing files may still exist in a folder that could not be listed.
        gone = self.gone if self.snapshot.is_complete else []
        moves, rest = match_moves([now for _, now in newcomers.values()], filter(self.owns, gone))
        moved = {was.path for _, was in moves}
        self.gone = [row for row in self.gone if row.path not in moved]
        yield from (newcomers[to.path][0]._replace(verb=Verb.MOVE, row=was) for to, was in moves)
        taken, rest = match_moves(rest, itertools.filterfalse(self.owns, gone))
        yield from (newcomers[to.path][0]._replace(verb=Verb.CONFLICT, row=was) for to, was in taken)
        yield from (newcomers[row.path][0] for row in rest)

    def count_rest(self, done: int) -> int:
        """Return how many files differ from the index and have no outcome, after an iteration that was broken off.

        `done` is the number of files that have one. The rest of the folder is walked, but no file is read.
        """
        rest = 0
        for entry in self._walk:
            row = self.rows.get(entry.path)
            if row is not None and row.state == State.READY and row.is_same(entry.fingerprint):
                self.on_kept(entry.path)
            else:
                rest += 1
        return max(0, self.met - done) + rest

    def take_refreshed(self, at_least: int = 0) -> list[FileRow]:
        """Return and clear the new rows of files that are not sent. If there are fewer than `at_least`, return none."""
        if len(self._refreshed) < at_least:
            return []
        taken, self._refreshed = self._refreshed, []
        return taken

    def _place_of(self, row: FileRow) -> list[FileRow]:
        """Return the list for the row of a file that the walk has not met."""
        path = self.snapshot.root.path / row.raw
        try:
            is_there = not stat.S_ISDIR(path.lstat().st_mode)
        except OSError as error:  # in case of doubt, it is there
            is_there = not isinstance(error, FileNotFoundError | NotADirectoryError)
        if is_there:
            return self.left_out
        return self.absent if has_placeholder(path) else self.gone

    def _examine(self, entry: Entry, row: FileRow | None) -> Change | None:
        """Return the change of one file; None if it was deleted during the walk."""
        filters = self.snapshot.filters
        is_of_type = row is not None and row.state == State.SKIPPED and row.reason in (PICTURE, UNREADABLE_TYPE)
        if is_of_type and PurePath(entry.path).suffix.lower() in filters.extensions - filters.pictures:
            # Files of this type are read now.
            row = None
        if row is not None and not self.is_thorough and row.is_same(entry.fingerprint):
            return Change(judge(row, row.sha256, self.owns), entry.path, row, row)
        root, hashed_ns = self.snapshot.root, time.time_ns()
        try:
            content = read(Path(entry.place), filters.max_bytes, root=root)
        except FileRefused as error:
            is_gone = isinstance(error.__cause__, FileNotFoundError)
            size_bytes = entry.fingerprint.size_bytes
            return None if is_gone else Change(Verb.FAIL, entry.path, row, error=error, size_bytes=size_bytes)
        # The size that was read. If it is not that of the metadata, as in /proc, the file is read in each run.
        fingerprint = entry.fingerprint._replace(size_bytes=content.size_bytes)
        if row is not None and row.sha256 == content.sha256:
            same = row._replace(**fingerprint._asdict(), hashed_ns=hashed_ns, raw=entry.raw)
            self._refreshed.append(same)
            return Change(judge(same, same.sha256, self.owns), entry.path, same, same)
        verb = judge(row, content.sha256, self.owns)
        now = FileRow(*fingerprint, hashed_ns, entry.path, entry.raw, content.sha256, None, None, State.SENT, None)
        reason = PLACEHOLDER if is_pointer(content.data) else None
        if reason is not None and row is not None and row.source_id is not None:
            self.absent.append(row)
            kept = row._replace(reason=reason)
            return Change(Verb.SKIP, entry.path, kept, kept)
        if reason is None and verb is Verb.CREATE:
            reason = reason_by_type(entry.path, filters.extensions, filters.pictures, root, entry.place)
        if reason is not None:
            skipped = now._replace(state=State.SKIPPED, reason=reason)
            self._refreshed.append(skipped)
            return Change(Verb.SKIP, entry.path, skipped, skipped)
        return Change(verb, entry.path, row, now, content)
