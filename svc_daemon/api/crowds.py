"""Crowds: the open connections of a server, kept below a bound.

Where there are too many, the one that has waited longest without a request makes room, unless the bytes of one lie
unread in its socket. So sockets that say nothing keep nobody out.
"""

import logging
import time
from typing import Protocol

logger = logging.getLogger(__name__)

#: An episode has ended when nothing of its kind happened for so long.
QUIET_S = 60.0


class Member(Protocol):
    """One connection."""

    #: When it last began to wait for a request.
    waiting_since_s: float

    @property
    def is_serving(self) -> bool: ...

    def has_unread(self) -> bool:
        """Whether something has arrived that was not read yet."""

    def cut(self) -> None:
        """End it at once."""


class Episodes:
    """Finds the first event of each series: a series is worth one line of the log."""

    def __init__(self) -> None:
        self._last_s = -QUIET_S

    def begins(self) -> bool:
        """Note an event; whether it is the first for a while."""
        last_s, self._last_s = self._last_s, time.monotonic()
        return self._last_s - last_s >= QUIET_S


class Crowd:
    """The connections of one server."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._members: set[Member] = set()
        self._episodes = Episodes()

    def enter(self, newcomer: Member) -> None:
        """Add a connection, and end one where that is too many; the new one itself where all others are busy."""
        self._members.add(newcomer)
        if len(self._members) <= self.most:
            return
        waiting = [member for member in self._members if member is not newcomer and not member.is_serving]
        waiting.sort(key=lambda member: member.waiting_since_s)
        leaving = next((member for member in waiting if not member.has_unread()), newcomer)
        # At once: others that come before its socket is closed must find somebody else.
        self.leave(leaving)
        leaving.cut()
        if self._episodes.begins():
            logger.warning(
                "%d connections are open, which is the limit: the one that waited longest without a request is closed",
                self.most,
            )

    def leave(self, member: Member) -> None:
        """Idempotent."""
        self._members.discard(member)
