"""Runs the syncs of watchers, and reconnects to the service after errors."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from svc_cli.client.api import Client
from svc_cli.progress import Progress
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.run_state import SyncOptions, SyncReport
from svc_cli.sync.syncs import Touched, sync, touch
from svc_cli.transfer.reports import ReportItem

#: Seconds that a sync waits for its sources. Meanwhile no other folder is synced.
WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class WatchSession:
    """An open client, and a function that returns the sync options of a mapping."""

    client: Client
    options_for: Callable[[Mapping], SyncOptions]


Connect = Callable[[], AbstractContextManager[WatchSession]]


class Engine:
    """Runs syncs. Connects to the service when needed, also after `close`."""

    def __init__(self, connect: Connect, state_dir: Path) -> None:
        self._connect = connect
        self._state_dir = state_dir
        self._open = ExitStack()
        self._session: WatchSession | None = None

    def session(self) -> WatchSession:
        """Return the open session, or connect. Raises SvcError."""
        if self._session is None:
            self._session = self._open.enter_context(self._connect())
        return self._session

    def close(self) -> None:
        """Disconnect. The next call connects again."""
        self._session = None
        self._open.close()

    def prunes(self, mapping: Mapping) -> bool:
        """Whether the sources of deleted files are removed from the bucket."""
        return self.session().options_for(mapping).prune != "none"

    def sync(
        self,
        mapping: Mapping,
        progress: Progress,
        on_item: Callable[[ReportItem], None],
        *,
        is_restless: bool,
        accepts_root: bool,
    ) -> SyncReport:
        """Sync the whole folder. Raises SvcError."""
        session, options = self.session(), self._options(mapping)
        options = replace(options, is_restless=is_restless, accepts_root=accepts_root)
        return sync(session.client, mapping, options, self._index_path(mapping), progress, on_item)

    def touch(self, mapping: Mapping, paths: Iterable[str], on_item: Callable[[ReportItem], None]) -> Touched:
        """Sync these paths and everything below them. Raises SvcError."""
        options = self._options(mapping)
        return touch(self.session().client, mapping, options, self._index_path(mapping), paths, on_item)

    def _options(self, mapping: Mapping) -> SyncOptions:
        return replace(self.session().options_for(mapping), wait="ready", timeout_s=WAIT_S)

    def _index_path(self, mapping: Mapping) -> Path:
        return mapping.index_path(self._state_dir, self.session().client.service)
