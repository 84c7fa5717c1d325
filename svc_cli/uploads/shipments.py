"""Which files go together, and how: one call, a session, or a batch. Pure.

Files are grouped in their order, each group filled before the next begins. So a run that was killed makes the same
groups again behind those that it finished, and each group goes on with its own sessions. In a group the small files
come first, since the service indexes them in this order. A large file goes alone: then it goes on where it stopped
whatever else has changed in its folder.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from svc_cli.client.batches import MOST_FILES
from svc_cli.uploads.deliveries import Parcel

Mode = Literal["auto", "one", "session", "batch"]
Kind = Literal["one", "session", "batch"]

#: A file over this goes through a session, which a cut does not throw back to its first byte.
LARGE_BYTES = 8 * 1024 * 1024
#: Bytes of one batch: what has to be sent again at most where a batch was lost.
BATCH_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shipment:
    """Files that are sent together."""

    kind: Kind
    parcels: tuple[Parcel, ...]


class Packer:
    """Takes parcels one by one and gives shipments as they fill up."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._group: list[Parcel] = []
        self._group_bytes = 0

    def add(self, parcel: Parcel) -> Iterator[Shipment]:
        """The shipments that are complete with this parcel, or without it."""
        if self._mode in {"one", "session"}:
            yield Shipment("one" if self._mode == "one" else "session", (parcel,))
            return
        if self._mode == "auto" and parcel.size_bytes > LARGE_BYTES:
            yield Shipment("session", (parcel,))
            return
        if self._group_bytes + parcel.size_bytes > BATCH_BYTES:
            yield from self.rest()
        self._group.append(parcel)
        self._group_bytes += parcel.size_bytes
        if len(self._group) == MOST_FILES:
            yield from self.rest()

    def rest(self) -> Iterator[Shipment]:
        """What is left; a single file needs no batch unless one was asked for."""
        group, self._group, self._group_bytes = tuple(sorted(self._group, key=lambda each: each.size_bytes)), [], 0
        if group:
            yield Shipment("one" if len(group) == 1 and self._mode == "auto" else "batch", group)
