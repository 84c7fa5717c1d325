"""Shortages: while disk space, memory or another resource is short, work waits instead of failing.

A remote store that doesn't answer counts as a shortage too. A check every second finds out whether work can continue.
"""

import asyncio
import logging
import mmap
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from svc_daemon.core.shortages import SENTENCES, ShortageKind, find_shortage
from svc_daemon.core.times import Clock, from_text
from svc_daemon.errors import StorageError
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.files.contract import BlobStore

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Seconds between two checks during a shortage.
LOOK_S = 1.0
#: First and longest pause in seconds after work has failed. While work keeps failing, the pause doubles.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
#: A shortage is over when no work has failed because of it for this many seconds.
QUIET_S = 5.0
#: How much of each resource a check allocates and then releases. Reading a document needs more than this.
LOOK_DESCRIPTORS, LOOK_MEMORY_BYTES, LOOK_DISK_BYTES = 8, 16 * 1024**2, 1024**2
#: If checks find no shortage, at most this many failures of the same work are blamed on one. Later failures count as
#: attempts.
MOST_ALONE = 5


@dataclass(frozen=True, slots=True)
class OpenShortage:
    """The current shortage, and when it began."""

    kind: ShortageKind
    since: str
    #: A sentence that says which engine can't be used and why, if that is what is short.
    cause: str | None = None

    @property
    def message(self) -> str:
        return self.cause or SENTENCES[self.kind]


@dataclass(frozen=True, slots=True)
class EndedShortage:
    """A shortage that is over, and when it ended."""

    shortage: OpenShortage
    until: str


class Short(Exception):
    """Raised when work stopped because a resource ran out; `__cause__` is the original error."""


class Shortages:
    """Tracks which resources the daemon is short of. Use it only on the event loop."""

    def __init__(
        self,
        blobs: BlobStore,
        reserve_bytes: int,
        clock: Clock,
        wake: Callable[[], None],
        check_index: Callable[[], None] = lambda: None,
    ) -> None:
        """`wake` wakes all workers when work may continue.

        `check_index` raises ProviderError if a remote search index doesn't answer.
        """
        #: The current shortage; None if there is none.
        self.now: OpenShortage | None = None
        #: The last one that is over, since the start of the process.
        self.last: EndedShortage | None = None
        self._blobs = blobs
        self._reserve_bytes = reserve_bytes
        self._clock = clock
        self._wake = wake
        self._check_index = check_index
        #: Says what is wrong with a remote store, if that is known.
        self.explain: Callable[[], str | None] = lambda: None
        self._met = asyncio.Event()
        self._may_try = asyncio.Event()
        self._may_try.set()
        self._alone: Counter[str] = Counter()

    async def is_cause_of(
        self, error: BaseException, about: str = "", *, kinds: Collection[ShortageKind] = tuple(ShortageKind)
    ) -> bool:
        """Return whether a shortage made the work fail, and record the shortage.

        If the error doesn't show which resource is short, a check must find that one of `kinds` is short. `about`
        identifies the work.
        """
        if isinstance(error, Short):
            return True
        named, found = find_shortage(error), await self._look()
        if named is None and found not in kinds:
            return False
        if found is None and about:
            self._alone[about] += 1
            if self._alone[about] > MOST_ALONE:
                return False
        self.note(found or named or ShortageKind.MEMORY)
        return True

    async def passed(self) -> None:
        """Wait until the shortage may be over, at most `LONGEST_PAUSE_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_PAUSE_S):
                await self._may_try.wait()

    async def get_through(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step, and repeat it as long as a shortage makes it fail. Returns the step's result."""
        while True:
            try:
                return await step()
            except (StorageError, OSError) as error:
                if not await self.is_cause_of(error, kinds=()):
                    raise
            await self.passed()

    async def run(self) -> None:
        """Track shortages, one after another, until cancelled."""
        while True:
            await self._met.wait()
            pause_s = FIRST_PAUSE_S
            while self._met.is_set():
                await asyncio.sleep(pause_s)
                await self._await_room()
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            if self.now is not None:
                lasted_s = (self._clock.now() - from_text(self.now.since)).total_seconds()
                log.info("work continues: the shortage is over (%s, for %.0f s)", self.now.kind, lasted_s)
                self.last = EndedShortage(self.now, self._clock.timestamp())
            self.now = None
            self._wake()

    async def _await_room(self) -> None:
        """Wait until a check finds no shortage, then let work continue until it fails or `QUIET_S` has passed."""
        while found := await self._look():
            self.note(found)
            await asyncio.sleep(LOOK_S)
        self._met.clear()
        self._may_try.set()
        self._wake()
        try:
            async with asyncio.timeout(QUIET_S):
                await self._met.wait()
        except TimeoutError:
            return
        except asyncio.CancelledError:
            # The next call of `run` must continue with this shortage.
            self._met.set()
            raise

    async def _look(self) -> ShortageKind | None:
        try:
            if not await asyncio.to_thread(self._blobs.has_room, self._reserve_bytes):
                return ShortageKind.RESERVE
            await asyncio.to_thread(_take_a_little, self._blobs)
            await asyncio.to_thread(self._check_index)
        except ProviderError:
            return ShortageKind.STORE
        except (OSError, MemoryError, RuntimeError, StorageError) as error:
            return find_shortage(error)
        return None

    def note(self, kind: ShortageKind) -> None:
        """Record that something is short, until checks find that it no longer is."""
        cause = self.explain() if kind is ShortageKind.STORE else None
        if self.now is None:
            self.now = OpenShortage(kind, self._clock.timestamp(), cause)
            log.warning("%s Work waits until it is over; nothing is lost.", self.now.message)
        self.now = replace(self.now, kind=kind, cause=cause)
        self._may_try.clear()
        self._met.set()


def _take_a_little(blobs: BlobStore) -> None:
    """Allocate a little of each resource and release it; raises OSError or MemoryError if a resource is short."""
    with ExitStack() as stack:
        for _ in range(LOOK_DESCRIPTORS):
            stack.enter_context(Path(os.devnull).open("rb"))
        stack.enter_context(mmap.mmap(-1, LOOK_MEMORY_BYTES))
        blobs.try_room(LOOK_DISK_BYTES)
