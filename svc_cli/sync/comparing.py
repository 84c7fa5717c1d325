"""The folder held against the index: walks, reads what may have changed, and tells each file's change as it is met.

New files whose bytes the index knows are told last: they may have moved. What is gone is known when the walk is over.
"""

import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from svc_cli.errors import FileRefused, SvcError
from svc_cli.sync.index import Row, State
from svc_cli.sync.plan import Verb, judge, match_moves
from svc_cli.sync.snapshots import Entry, Fingerprint, Snapshot
from svc_cli.uploads.contents import FileContent, read
from svc_cli.uploads.skips import UNREADABLE_TYPE, can_extract


class Change(NamedTuple):
    """What is to be done about one file."""

    verb: Verb
    path: str
    #: What is known of the file: of the one that moved here, for MOVE.
    row: Row | None
    #: What the file's row is to be, with no source yet; None where it could not be read.
    now: Row | None = None
    #: Its bytes, where they are to be sent.
    content: FileContent | None = None
    #: Why it could not be read, and how large it was when it was met.
    error: SvcError | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPolicy:
    """How files are read."""

    max_bytes: int
    #: Extensions that the service can read, lower case with their dot.
    extensions: frozenset[str]
    #: Read every file, whatever its fingerprint says.
    is_thorough: bool = False
    now_ns: Callable[[], int] = time.time_ns


@dataclass(slots=True)
class Comparison:
    """One comparison, to be iterated once; the rest is known at its end."""

    root: Path
    snapshot: Snapshot
    rows: Mapping[str, Row]
    policy: ReadPolicy
    #: Rows whose file is not there any more.
    gone: list[Row] = field(default_factory=list)
    #: Rows whose file is there and left out now.
    left_out: list[Row] = field(default_factory=list)
    #: Rows of files that are the same bytes with another fingerprint.
    refreshed: list[Row] = field(default_factory=list)
    #: Files that the walk met.
    met: int = 0
    _unmet: dict[str, Row] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Change]:
        """Raises OSError where the root can't be listed."""
        self._unmet = dict(self.rows)
        hashes = {row.sha256 for row in self.rows.values() if row.source_id}
        newcomers: list[Change] = []
        for entry in self.snapshot:
            self.met += 1
            change = self._examine(entry)
            if change is None:
                continue
            self._unmet.pop(entry.path, None)
            if change.verb is Verb.CREATE and change.now is not None and change.now.sha256 in hashes:
                newcomers.append(change)
            else:
                yield change
        self._settle_unmet()
        yield from self._settle(newcomers)

    def _examine(self, entry: Entry) -> Change | None:
        """The change of one file; None for one that is gone since it was met."""
        row = self.rows.get(entry.path)
        if row is not None and not self.policy.is_thorough and row.is_same(entry.fingerprint):
            return Change(judge(row, row.sha256), entry.path, row, row)
        hashed_ns = self.policy.now_ns()
        try:
            found = read(self.root / entry.raw, self.policy.max_bytes)
        except FileRefused as error:
            is_gone = isinstance(error.__cause__, FileNotFoundError)
            size_bytes = entry.fingerprint.size_bytes
            return None if is_gone else Change(Verb.FAIL, entry.path, row, error=error, size_bytes=size_bytes)
        now = _row(entry, found.sha256, hashed_ns)
        return self._judge(Change(judge(row, found.sha256), entry.path, row, now, found))

    def _judge(self, change: Change) -> Change:
        """The same, unless the file is of a kind that the service can't read; a row with these bytes is refreshed."""
        row, now = change.row, change.now
        if row is not None and now is not None and row.sha256 == now.sha256:
            same = row._replace(**Fingerprint._make(now[:5])._asdict(), hashed_ns=now.hashed_ns, raw=now.raw)
            self.refreshed.append(same)
            return change._replace(row=same, now=same, content=None)
        is_new = change.verb is Verb.CREATE and change.content is not None
        if is_new and now is not None and not can_extract(self.root / now.raw, self.policy.extensions):
            skipped = now._replace(state=State.SKIPPED, reason=UNREADABLE_TYPE)
            self.refreshed.append(skipped)
            return Change(Verb.SKIP, change.path, skipped, skipped)
        return change

    def _settle_unmet(self) -> None:
        for row in self._unmet.values():
            (self.left_out if _is_there(self.root / row.raw) else self.gone).append(row)

    def _settle(self, newcomers: list[Change]) -> Iterator[Change]:
        """New files with known bytes: those that moved here, then the rest."""
        by_path = {change.path: change for change in newcomers}
        # Where a folder could not be listed, nobody knows that a file has left it.
        gone = self.gone if self.snapshot.is_complete else []
        moves, rest = match_moves([change.now for change in newcomers if change.now], gone)
        moved = {was.path for _, was in moves}
        self.gone = [row for row in self.gone if row.path not in moved]
        for to, was in moves:
            yield by_path[to.path]._replace(verb=Verb.MOVE, row=was)
        yield from (by_path[row.path] for row in rest)


def _is_there(path: Path) -> bool:
    """Whether there is something that may be left out; a folder that took a file's place is not that file.

    What the system does not let us look at is not known to be gone.
    """
    try:
        return not stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _row(entry: Entry, sha256: str, hashed_ns: int) -> Row:
    return Row(*entry.fingerprint, hashed_ns, entry.path, entry.raw, sha256, None, None, State.SENT, None)
