"""Watches one mapping: makes a full sync, then syncs each path that has settled."""

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from svc_cli.errors import (
    UNFORESEEN,
    Interrupted,
    PathMissing,
    SvcError,
    SyncRunning,
    WaitTimedOut,
    refused_by_system,
    understood,
)
from svc_cli.progress import Silent
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.run_state import SyncReport
from svc_cli.sync.safety import Cause, Withheld
from svc_cli.sync.watch import observers
from svc_cli.sync.watch.engines import WAIT_S, Engine
from svc_cli.sync.watch.observers import EVERYTHING, UNREADABLE, Inbox, Kind, Unread, hints_through
from svc_cli.sync.watch.records import ACCEPTING, Record
from svc_cli.sync.watch.settling import REST_S, Agenda, Facts, Settler
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.rooted_files import identify_root
from svc_daemon.wire import Json

if TYPE_CHECKING:
    from svc_cli.sync.watch.observers import Observer

#: Seconds until the next attempt if another process is syncing the folder.
BUSY_PAUSE_S = 1.0
#: Seconds until sources that were not ready in time are checked again.
LATE_PAUSE_S = 3 * WAIT_S
#: Seconds in which a deleted file may reappear.
CALM_S = REST_S[Kind.GONE]
#: Seconds from a change to the next full sync, if the last full sync left sources of deleted files in the bucket.
WITHHELD_PAUSE_S = 15.0
#: If sources stay in the bucket for one of these causes, only the watcher's state says so. There is no line in the log
#: and no callback, because the cause ends soon or is also reported as an error.
SHOWN_ONLY = frozenset({Cause.JUST_DELETED, Cause.TOO_MANY, Cause.ENDED_EARLY})


@dataclass(frozen=True, slots=True)
class WatchCallbacks:
    """The callbacks of a watcher, called in the thread of the watch loop."""

    #: Called with the result for a file.
    item: Callable[[Mapping, ReportItem], None]
    #: Called with a message for the user, and whether it is a warning.
    note: Callable[[Mapping, str, bool], None]
    #: Called with the deleted files whose sources stay in the bucket, each time the list changes.
    withheld: Callable[[Mapping, Sequence[Withheld]], None]
    #: Called when the watcher's state may have changed.
    state: Callable[[], None]


@dataclass(slots=True)
class Watcher:
    """Watches one mapping. Only its inbox is used from several threads."""

    mapping: Mapping
    engine: Engine
    record: Record
    callbacks: WatchCallbacks
    #: Observers put an entry into this queue to wake the loop.
    bell: SimpleQueue[None]
    settler: Settler = field(default_factory=Settler)
    agenda: Agenda = field(default_factory=Agenda)
    state: str = "starting"
    error: Json | None = None
    #: Why the folder is polled; None if it is not.
    polling: str | None = None
    last: Json | None = None
    #: Deleted files whose sources the last full sync left in the bucket.
    withheld: list[Withheld] = field(default_factory=list)
    flushed: str | None = None
    _inbox: Inbox = field(init=False)
    _observer: "Observer | None" = None
    #: The observed folder with links resolved.
    _base: Path = Path()
    _root: str | None = None
    _is_missing: bool = False
    #: Whether the last attempt to write the record failed.
    _is_unwritable: bool = False
    _reported: list[Withheld] = field(default_factory=list)
    #: The followed links, and the places to which they lead.
    _links: dict[str, str] = field(default_factory=dict)
    _unread: Unread = field(init=False)
    #: What the last full sync said of patterns and folders without an effect.
    _said: list[str] = field(default_factory=list)
    _written: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._inbox, self._unread = Inbox(self.bell), Unread(self.mapping.folder)

    def look_after(self, now_s: float, *, has_slept: bool) -> None:
        """Handle events and requests, and run the sync that is due, if any."""
        self._check_root(now_s)
        if has_slept:
            self.agenda.call("resume", now_s)
        while self._inbox.losses:
            self._make_good(self._inbox.losses.popleft(), now_s)
        while self._inbox.events:
            event = self._inbox.events.popleft()
            for hint in hints_through(event, self._base.as_posix(), self._links, self.settler.is_fresh):
                self.settler.add(hint, now_s, self._look)
        settled = self.settler.take(now_s, self._look)
        if EVERYTHING in settled:
            self.agenda.call("burst", now_s)
        elif settled and self.error is not None:
            self.agenda.call("change", now_s)  # an error may have left other changes unsynced, so sync the whole folder
        elif settled and self.agenda.due_s > now_s:
            self._touch(settled, now_s)
        token = self.record.find_ask()
        if token is not None:
            self.agenda.call("flush", now_s)
        reason = self.agenda.take(now_s)
        accepts_root = token is not None and token.startswith(ACCEPTING)
        has_synced = reason is not None and self._sync(reason, now_s, accepts_root=accepts_root)
        if token is not None and has_synced:
            self.flushed = token
            self._rest()
            self.record.end_ask(token)
        self._rest()

    def stumble(self, error: Exception) -> None:
        """Go on after an unexpected error in `look_after`, with a pause."""
        self.agenda.take(time.monotonic())
        self._end_in_trouble(understood(error))
        self._change_state("troubled")

    def due_s(self) -> float:
        """Return when to call `look_after` next, unless events arrive earlier."""
        settles_s = self.settler.due_s()
        return self.agenda.due_s if settles_s is None else min(self.agenda.due_s, settles_s)

    def close(self) -> None:
        """Stop observing, and record the state `stopped`."""
        self._disarm()
        self.state = "stopped"
        self._save()

    def facts(self) -> Json:
        """Return the state that is written for other processes."""
        return {
            "mapping": self.mapping.name,
            "bucket": self.mapping.bucket,
            "dir": str(self.mapping.folder),
            "pid": os.getpid(),
            "state": self.state,
            "polling": self.polling,
            "pending": "many" if self.settler.burst else len(self.settler.waiting) + len(self._inbox.events),
            "busy": self.settler.busy(time.monotonic()),
            "syncs": dict(self.agenda.counts),
            "last": self.last,
            "error": self.error,
            "withheld": [each.as_json() for each in self.withheld],
            "unwatched": sorted(self._unread.paths),
            "flushed": self.flushed,
        }

    def _check_root(self, now_s: float) -> None:
        """Restart the observer if the folder was replaced, a part can be read again, or the observer's threads died."""
        if self._unread.has_opened(now_s):
            self.agenda.call("readable", now_s)
            self._disarm()
        root = identify_root(self.mapping.folder)
        if self._observer is not None and root == self._root and self._observer.is_alive:
            return
        if self._observer is not None:
            self.agenda.call("replaced" if root != self._root else "dead", now_s)
            self._disarm()
        self._is_missing = root is None
        if root is not None and self._arm(now_s):
            self._root = root
            self.agenda.call("armed", now_s)

    def _arm(self, now_s: float) -> bool:
        """Start to observe the folder; returns False if that fails. The caller must schedule a full sync."""
        from svc_cli.sync.watch.observers import LimitReached, Observer

        silence = observers.find_silence(self.mapping.folder)
        if silence is not None and self.polling is None:
            self._poll_because(f"{silence} does not report changes")
        polls = self.polling is not None
        try:
            # If the folder is a link, events contain the path of the link's target.
            self._base = self.mapping.folder.resolve()
            self._observer = Observer(self._base, self._inbox.add, self._inbox.lose, polls=polls)
        except LimitReached:
            self._make_good("limit", now_s)
            return self._arm(now_s) if not polls else False
        except OSError:
            return False  # the folder was deleted in the meantime; the next `_check_root` notices it
        return True

    def _disarm(self) -> None:
        if self._observer is not None:
            self._observer.close()
        self._observer, self._root = None, None

    def _make_good(self, loss: str, now_s: float) -> None:
        """Schedule a full sync after lost events. Poll from now on if there are too many folders to watch."""
        self.agenda.call(loss, now_s)
        if loss != "limit" or self.polling is not None:
            return
        count = observers.count_folders(self.mapping.folder)
        self._poll_because(
            f"the system allows too few watches for the {count} folders: "
            f"`sudo sysctl fs.inotify.max_user_watches={max(2 * count, 524_288)}`, then start the watcher again"
        )
        self._disarm()

    def _poll_because(self, reason: str) -> None:
        self.polling = reason
        self.callbacks.note(self.mapping, f"polls the folder every 5 s: {reason}.", True)

    def _look(self, path: str) -> Facts:
        try:
            facts = os.lstat(self.mapping.folder / path)
        except OSError:
            return None
        return facts.st_size, facts.st_mtime_ns, facts.st_ino

    def _touch(self, paths: set[str], now_s: float) -> None:
        def work() -> SyncReport:
            touched = self.engine.touch(self.mapping, paths, self._report_settled)
            if any(each.cause is not Cause.NOT_TRUSTED for each in self.withheld):
                self.agenda.call("withheld", now_s, WITHHELD_PAUSE_S)
            if touched.needs_sync:
                self.agenda.call("doubt", now_s)
            return touched.report

        self._run("change", now_s, work)

    def _sync(self, reason: str, now_s: float, *, accepts_root: bool) -> bool:
        """Sync the whole folder; returns False if another process is syncing it.

        If a file was deleted a moment ago and may reappear, its source is removed only by a later sync.
        """
        self._change_state("syncing")

        def work() -> SyncReport:
            is_calm = self.settler.is_calm(now_s)
            if not is_calm and self.engine.prunes(self.mapping):
                self.agenda.call("calm", now_s, CALM_S)
            report = self.engine.sync(
                self.mapping, Silent(), self._report_settled, is_restless=not is_calm, accepts_root=accepts_root
            )
            self._withhold([each for each in report.withheld if each.cause is not Cause.PRUNE_NOT_ASKED])
            self._links = report.links
            if self._said != report.no_effect:
                self._said = report.no_effect
                for text in self._said:
                    self.callbacks.note(self.mapping, text, True)
            return report

        return self._run(reason, now_s, work)

    def _withhold(self, withheld: list[Withheld]) -> None:
        """Report the deleted files whose sources stay in the bucket, unless the last report listed the same."""
        self.withheld = withheld
        if withheld == self._reported or any(each.cause in SHOWN_ONLY for each in withheld):
            return
        self._reported = withheld
        self._log({"type": "watch.withheld", "withheld": [each.as_json() for each in withheld]})
        self.callbacks.withheld(self.mapping, withheld)

    def _run(self, reason: str, now_s: float, work: Callable[[], SyncReport]) -> bool:
        """Run a sync and handle its errors. Returns False if another process is syncing the folder."""
        try:
            report = work()
            error = report.stopped_by
        except BrokenPipeError:
            raise  # the reader of our output has closed the pipe
        except (SvcError, sqlite3.Error, *UNFORESEEN) as raised:  # the other folders are watched on
            report, error = None, refused_by_system(raised) if isinstance(raised, OSError) else understood(raised)
        if isinstance(error, Interrupted):
            raise KeyboardInterrupt(error.exit - 128)
        if report is not None:
            counts = {action: count for action, count in report.counts.items() if count}
            facts = {"reason": reason, "duration_ms": report.duration_ms, "counts": counts}
            self.last = facts | {"at": time.time()}
            if report.has_changes or reason != "change":
                self._log({"type": "watch.sync", **facts})
            failed = [item.path for item in report.items.values() if (item.error or {}).get("code") == UNREADABLE]
            if new := self._unread.note(failed, is_whole=reason != "change"):
                self.callbacks.note(self.mapping, f"not watched until it can be read: {', '.join(new)}.", True)
        if isinstance(error, WaitTimedOut) and report is not None:
            self._leave_late(report, now_s)
        elif error is None:
            self._end_well(report)
        elif isinstance(error, SyncRunning):
            self.agenda.call(reason if reason != "change" else "busy", now_s, BUSY_PAUSE_S)
        else:
            self._end_in_trouble(error)
        return not isinstance(error, SyncRunning)

    def _end_well(self, report: SyncReport | None) -> None:
        if self.error is not None:
            self.callbacks.note(self.mapping, "works again.", False)
        self.error = None
        items = report.items.values() if report is not None else ()
        # Retry files that were refused temporarily. If a source failed to be indexed, only the periodic full sync
        # retries it.
        if any(item.error and item.error.get("retryable") and item.status != "failed" for item in items):
            self.agenda.end_in_trouble(time.monotonic())
        else:
            self.agenda.end_well()

    def _leave_late(self, report: SyncReport, now_s: float) -> None:
        """Report the files whose sources are not ready yet, and schedule a sync that checks them."""
        for item in report.items.values():
            if item.is_pending and item.action != "unchanged":
                self._report(item)
        self.agenda.call("late", now_s, LATE_PAUSE_S)

    def _end_in_trouble(self, error: SvcError) -> None:
        """Report a new error, and schedule another attempt over a new connection."""
        body = error.summarized()
        if self.error is None or self.error["message"] != body["message"]:
            hint = f" {error.hint}" if error.hint else ""
            self.callbacks.note(self.mapping, f"{error.message}{hint}", True)
            self._log({"type": "watch.error", "error": body})
        self.error = body
        if not isinstance(error, PathMissing):
            self.engine.close()
        self.agenda.end_in_trouble(time.monotonic())

    def _report_settled(self, item: ReportItem) -> None:
        """Report the result for a file that has changed, unless its source is still pending."""
        if not item.is_pending and item.action != "unchanged":
            self._report(item)

    def _report(self, item: ReportItem) -> None:
        self._log({"type": "watch.item", **item.as_json()})
        self.callbacks.item(self.mapping, item)

    def _rest(self) -> None:
        if self._observer is None:
            self._change_state("missing" if self._is_missing else "starting")
        elif self.error is not None:
            self._change_state("troubled")
        else:
            self._change_state("watching")

    def _change_state(self, state: str) -> None:
        self.state = state
        self._save()

    def _save(self) -> None:
        facts = self.facts()
        if facts == self._written:
            return
        self._written = facts
        try:
            self.record.write_state(facts)
            self._is_unwritable = False
        except OSError as error:
            self._written = {}  # makes the next call write the state again
            self._complain(error)
        self.callbacks.state()

    def _log(self, line: Json) -> None:
        try:
            self.record.log(line)
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        """Warn once that the record can't be written. Watching continues."""
        if not self._is_unwritable:
            self.callbacks.note(self.mapping, f"its state can't be written: {error.strerror}.", True)
        self._is_unwritable = True
