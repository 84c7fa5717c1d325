"""Cuts the power at every moment of a recorded scene, and collects what was lost."""

import hashlib
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.power.diaries import Promised
from tests.power.disks import Disk, Model, Replay, State, write_disk
from tests.power.histories import Sync
from tests.power.questions import assert_kept
from tests.power.scenes import Scene

#: How many of the last operations a report shows.
SHOWN = 40
#: How many disks are asked to make a report smaller.
MOST_TRIES = 60


@dataclass(slots=True)
class Tally:
    """How many disks were laid out, and what was wrong with which."""

    states: int = 0
    #: The disks that a daemon was started on: those that differ once SQLite has recovered their databases.
    different: int = 0
    violations: list[str] = field(default_factory=list)


class PowerCuts:
    """Lays out the disks of a scene, in place of its own folder, and asks the daemon on each."""

    def __init__(self, scene: Scene, ignores: Callable[[Sync], bool] = lambda _: False) -> None:
        self._scene = scene
        self._events = scene.history.events
        self._replay = Replay(scene.history, ignores)
        self._recoveries = Recoveries()

    def list_moments(self) -> list[int]:
        """Return after how many events the power is cut: before and after each sync and each answer."""
        answers = self._scene.diary.list_answers()
        times = [0.0, *(event.ended_s for event in self._events), float("inf")]
        syncs = {number for number, event in enumerate(self._events) if isinstance(event.did, Sync)}
        return [
            count
            for count in range(len(self._events) + 1)
            if {count, count - 1} & syncs or any(times[count] <= answer < times[count + 1] for answer in answers)
        ]

    def list_states(self, models: Sequence[Model]) -> list[State]:
        """Return every state of every moment."""
        return [
            state for count in self.list_moments() for model in models for state in self._replay.choose(count, model)
        ]

    def sample(self, count: int) -> list[State]:
        """Return some of the states: some with nothing unsynced, at moments as far apart as possible up to the end."""
        moments, plain = self.list_moments(), count // 2
        ends = [moments[(len(moments) - 1) * number // plain] for number in range(1, plain + 1)]
        states = random.Random(count).sample(self.list_states(list(Model)), count - plain)
        return [*(State(end, {}, "nothing unsynced") for end in ends), *states]

    def find_end(self) -> int:
        """Return after how many events all requests were answered."""
        return next(count for count in self.list_moments() if self._promised(count).is_complete)

    def run(self, states: Sequence[State]) -> Tally:
        """Ask a daemon on each different disk of these states."""
        tally = Tally()
        seen: set[tuple[str, int, int]] = set()
        for state in states:
            disk, promised = self._replay.make_disk(state), self._promised(state.count)
            tally.states += 1
            key = self._recoveries.digest(disk), promised.answers, len(promised.log)
            if key in seen:
                continue
            seen.add(key)
            tally.different += 1
            if (failure := self.ask(state, disk)) is not None:
                tally.violations.append(self._report(state, failure))
        return tally

    def ask(self, state: State, disk: Disk | None = None) -> str | None:
        """Return what is wrong with the disk, if anything is."""
        root = self._scene.installation.root
        write_disk(self._replay.make_disk(state) if disk is None else disk, root)
        try:
            promised = self._promised(state.count)
            self._scene.resume(promised.is_complete)
            assert_kept(self._scene.installation, promised)
        except Exception as failure:  # each is a violation
            return f"{type(failure).__name__}: {failure}"
        finally:
            shutil.rmtree(root)
        return None

    def _promised(self, count: int) -> Promised:
        return self._scene.diary.read(self._events[count].ended_s if count < len(self._events) else float("inf"))

    def _report(self, state: State, failure: str) -> str:
        """Describe the smallest prefix of operations that shows the violation."""
        state, failure = self._shrink(state, failure)
        lost = self._replay.find_lost(state)
        lines = [f"{failure}", f"after {state.count} operations ({state.how}):"]
        shown = sorted({*range(max(0, state.count - SHOWN), state.count), *lost})
        for number in shown:
            torn = state.kept.get(number)
            mark = "LOST" if number in lost else "TORN" if torn is not None else ""
            lines.append(f"{mark:5}{number:5} {self._events[number].text}")
        return "\n".join([*lines, "answered before:", *self._promised(state.count).log])

    def _shrink(self, state: State, failure: str) -> tuple[State, str]:
        """Keep as many changes as possible, then cut as early as possible."""
        tries = MOST_TRIES
        for number in self._replay.list_open(state.count):
            if state.kept.get(number, ()) is not None and tries:
                tries -= 1
                fuller = replace(state, kept={**state.kept, number: None})
                if (found := self.ask(fuller)) is not None:
                    state, failure = fuller, found
        lost = [number for number in self._replay.list_open(state.count) if state.kept.get(number, ()) is not None]
        for count in [each for each in self.list_moments() if max(lost, default=0) < each < state.count][:tries]:
            kept = {number: state.kept.get(number) for number in self._replay.list_open(count) if number not in lost}
            earlier = State(count, kept, state.how)
            if (found := self.ask(earlier)) is not None:
                return earlier, found
        return state, failure


# Most of the open changes are pages of a transaction whose commit was never synced, and SQLite ignores all of them. Its
# own code decides that here.

_FILES = ("", "-wal", "-journal")


class Recoveries:
    """Hashes disks by what they contain once SQLite has recovered its databases."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def digest(self, disk: Disk) -> str:
        hashed = hashlib.sha256()
        rest = dict(disk)
        for path in [path for path, data in disk.items() if data and path.endswith(".db")]:
            parts = [rest.pop(f"{path}{suffix}", None) for suffix in _FILES]
            hashed.update(f"{path}\0{self._recover(parts)}\0".encode())
        for line in _lines(rest):
            hashed.update(line)
        return hashed.hexdigest()

    def _recover(self, parts: list[bytes | None]) -> str:
        """Return a hash of a database's pages after its recovery; of its files if it can't be recovered."""
        raw = hashlib.sha256(b"".join(_lines({str(number): part for number, part in enumerate(parts)}))).hexdigest()
        if raw not in self._known:
            with TemporaryDirectory() as folder:
                for suffix, part in zip(_FILES, parts, strict=True):
                    if part is not None:
                        Path(folder, f"one.db{suffix}").write_bytes(part)
                self._known[raw] = _checkpoint(Path(folder, "one.db")) or raw
        return self._known[raw]


def _checkpoint(path: Path) -> str | None:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError:
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lines(disk: Disk) -> Iterator[bytes]:
    """Yield all names and bytes of a disk."""
    for path, data in sorted(disk.items()):
        yield f"{path}\0{'-' if data is None else len(data)}\0".encode(errors="surrogateescape")
        yield data or b""
