"""Runs the syncs of watchers, reconnects to the service after errors, and reports to it what is watched."""

import secrets
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from svc_cli.client.api import Client
from svc_cli.console import clean
from svc_cli.errors import UNFORESEEN, SvcError
from svc_cli.progress import Progress
from svc_cli.render import counted
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.run_state import SyncOptions, SyncReport
from svc_cli.sync.syncs import Touched, sync, touch
from svc_cli.transfer.reports import ReportItem
from svc_daemon.wire import Json

if TYPE_CHECKING:
    from svc_cli.client.types import WatchedMappingDict

#: Seconds between two reports to the service, which forgets a watcher after a minute; and after a change of state.
REPORT_S, LEAST_REPORT_S = 20.0, 2.0
#: How many troubles of a folder are reported, and how much of each.
MOST_TROUBLES, MOST_CHARACTERS = 20, 1000
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


class Reporter:
    """Reports to the service what this process watches, so that others see it there.

    Reports are sent by a thread over connections of their own, so that no watcher waits for them, and also while a
    watcher's session is closed because of an error. A report that fails is left out, since the next one follows.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[Client]]) -> None:
        self._connect = connect
        self._id = f"watch-{secrets.token_hex(8)}"
        self._sent: list[WatchedMappingDict] = []
        self._sent_s = -REPORT_S
        self._sending = Thread()

    def report(self, states: Iterable[Json], now_s: float) -> None:
        """Report the watchers' states, if they have changed or the last report is old. Returns at once."""
        mappings = [_report_of(state) for state in states]
        is_due = now_s - self._sent_s >= (REPORT_S if mappings == self._sent else LEAST_REPORT_S)
        if not is_due or self._sending.is_alive():
            return
        self._sent, self._sent_s = mappings, now_s

        def send() -> None:
            # An older service lacks the route, or the service is away.
            with suppress(SvcError, *UNFORESEEN), self._connect() as client:
                client.report_watcher(self._id, mappings)

        self._sending = Thread(target=send, name="report", daemon=True)
        self._sending.start()


def _report_of(state: Json) -> "WatchedMappingDict":
    """Return what is reported to the service of a watcher's state: nothing about this machine, such as its folders."""
    troubles = [str(state["error"]["message"])] if state["error"] else []
    troubles += [str(each["message"]) for each in state["withheld"]]
    if state["unwatched"]:
        troubles.append(f"{counted(len(state['unwatched']), 'path')} can't be read.")
    at_s = (state["last"] or {}).get("at")
    at = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if at_s else None
    return {
        "name": state["mapping"],
        "bucket": state["bucket"],
        "state": state["state"],
        "last_look_at": at,
        "troubles": [clean(each)[:MOST_CHARACTERS] for each in troubles[:MOST_TROUBLES]],
    }
