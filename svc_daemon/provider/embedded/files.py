"""The folder of indexes: a file and a folder of postings for each team, opened on first use."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from svc_daemon.core import ids
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.paths import sync_folder
from svc_daemon.provider.embedded.indexes import TeamIndex
from svc_daemon.provider.embedded.schema import from_sqlite, prepare, translated
from svc_daemon.provider.errors import IndexDamaged, ProviderError, ProviderFailed

#: The files of an SQLite database.
_SUFFIXES = (".db", ".db-wal", ".db-shm")


def list_teams(folder: Path) -> list[str]:
    """List the teams with an index file; other files in the folder are ignored."""
    return sorted(path.stem for path in folder.glob("*.db") if is_index_name(path.name))


def is_index_name(name: str) -> bool:
    """Whether this can be the name of a team's index file."""
    return name.endswith(".db") and ids.FILE_NAME.fullmatch(name.removesuffix(".db")) is not None


def index_path(folder: Path, team_id: str, suffix: str = ".db") -> Path:
    """Return the path of a team's index file. Raises StorageError if the id can't be the name of a file."""
    return folder / f"{ids.file_name(team_id, row='The id of a team')}{suffix}"


class IndexFiles:
    """Opens index files, keeps them open, and removes them. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        *,
        on_broken: Callable[[ProviderError], None],
        on_damaged: Callable[[str], None],
        on_building: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._on_broken = on_broken
        self._on_damaged = on_damaged
        self._on_building = on_building
        #: Teams whose damaged index has been reported.
        self._damaged: set[str] = set()
        #: Number of index removals. If it changes during a call, damage found by the call is not reported, because the
        #: damaged file may be gone.
        self._removals = 0
        self._lock = threading.Lock()
        self._open: dict[str, TeamIndex] = {}
        self._closed = False

    def list_teams(self) -> list[str]:
        return list_teams(self._folder)

    def find(self, team_id: str) -> TeamIndex | None:
        """Return the team's index; None if it has no file. Raises ProviderError."""
        index = self._open.get(team_id)
        if index is not None:
            return index
        with self.translated(team_id):
            return self.get(team_id) if self._path(team_id, ".db").exists() else None

    def get(self, team_id: str) -> TeamIndex:
        """Return the team's index, creating it if necessary. Raises ProviderError."""
        index = self._open.get(team_id)
        if index is not None:
            return index
        with self.translated(team_id), self._lock:
            # Another thread may have opened the index meanwhile.
            index = self._open.get(team_id)
            if index is not None:
                return index
            if self._closed:
                raise ProviderFailed("The search index is closed: the service is stopping.", retryable=True)
            path = self._path(team_id, ".db")
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with ExitStack() as stack:
                database = SqliteDatabase(path, prepare=prepare, on_broken=lambda error: self._report(team_id, error))
                stack.callback(database.close)
                index = TeamIndex(team_id, database, self._folder, self._on_building)
                stack.callback(index.close)
                index.open()
                stack.pop_all()
            self._damaged.discard(team_id)
            self._open[team_id] = index
            return index

    def delete(self, team_id: str) -> None:
        """Close and durably remove the team's files. Raises ProviderError."""
        with self.translated(team_id), self._lock:
            index = self._open.pop(team_id, None)
            if index is not None:
                index.close()
                index.database.close()
            for path in self._folder.glob(f"{self._path(team_id, '').name}.postings-*"):
                shutil.rmtree(path)
            for suffix in _SUFFIXES:
                self._path(team_id, suffix).unlink(missing_ok=True)
            if self._folder.exists():
                # Otherwise, a power failure could bring the old file back in place of a new one.
                sync_folder(self._folder)
            self._damaged.discard(team_id)
            self._removals += 1

    @contextmanager
    def translated(self, team_id: str) -> Iterator[None]:
        """Within the block, convert the index's exceptions to ProviderError.

        `on_damaged` is called once for each damaged index.
        """
        removals = self._removals
        try:
            with translated(team_id):
                yield
        except IndexDamaged:
            with self._lock:
                if removals == self._removals and team_id not in self._damaged:
                    self._damaged.add(team_id)
                    self._on_damaged(team_id)
            raise

    def close(self) -> None:
        """Finish the current writes and close all files."""
        with self._lock:
            self._closed = True
            for index in self._open.values():
                index.close()
                index.database.close()
            self._open.clear()

    def _report(self, team_id: str, error: sqlite3.Error) -> None:
        """Call `on_broken`, unless the error only shows that this team's index is damaged."""
        failure = from_sqlite(team_id, error)
        if not isinstance(failure, IndexDamaged):
            self._on_broken(failure)

    def _path(self, team_id: str, suffix: str) -> Path:
        return index_path(self._folder, team_id, suffix)
