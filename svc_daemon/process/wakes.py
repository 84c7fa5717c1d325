"""The events that wake the workers of this process and, in a cluster, of the other nodes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field


class Wake(asyncio.Event):
    """An event that wakes a worker of this process and, in a cluster, of the other nodes."""

    def __init__(self) -> None:
        super().__init__()
        #: Wakes the same worker on the other nodes.
        self.announce: Callable[[], None] = lambda: None

    def set(self) -> None:
        """Wake the worker on all nodes."""
        super().set()
        self.announce()

    def set_here(self) -> None:
        """Wake only the worker of this process."""
        super().set()


@dataclass(slots=True)
class Wakes:
    """The events that wake the workers."""

    indexing: Wake = field(default_factory=Wake)
    syncing: Wake = field(default_factory=Wake)
    sweeping: Wake = field(default_factory=Wake)
    cascading: Wake = field(default_factory=Wake)
    delivering: Wake = field(default_factory=Wake)
    rebuilding: Wake = field(default_factory=Wake)
    rechunking: Wake = field(default_factory=Wake)
    counting: Wake = field(default_factory=Wake)
    embedding: Wake = field(default_factory=Wake)
    removing: Wake = field(default_factory=Wake)
    refreshing: Wake = field(default_factory=Wake)
    #: Longest time in seconds that a worker sleeps, because the event that wakes it may get lost.
    look_s: float = 60.0
    #: Teams with a damaged index whose rebuild isn't queued yet.
    damaged: set[str] = field(default_factory=set)
    #: Teams whose documents' words are indexed again, and whose sources are still shown as ready.
    building: set[str] = field(default_factory=set)
    #: Teams whose index may contain chunks without a vector.
    unembedded: set[str] = field(default_factory=set)

    def shared(self) -> dict[str, Wake]:
        """Return the wake-up events, by name, of the workers whose work any node can do."""
        names = ("indexing", "syncing", "sweeping", "cascading", "delivering", "rebuilding", "rechunking", "removing")
        return {name: getattr(self, name) for name in (*names, "refreshing")}

    def wake_all(self) -> None:
        """Wake every worker of this process. Call it on the event loop's thread."""
        for wake in (*self.shared().values(), self.counting, self.embedding):
            wake.set_here()

    def note_damaged(self, team_id: str) -> None:
        """Request a rebuild of the team's damaged index. Call it on the event loop's thread."""
        self.damaged.add(team_id)
        self.rebuilding.set_here()

    def note_building(self, team_id: str) -> None:
        """Show that the words of the team's documents are indexed again. Call it on the event loop's thread."""
        self.building.add(team_id)
        self.rebuilding.set_here()

    def note_unembedded(self, team_id: str) -> None:
        """Request vectors for the team's new chunks. Call it on the event loop's thread."""
        self.unembedded.add(team_id)
        self.embedding.set_here()
