"""Finds the received bytes of an upload session in an object store.

Each request stores its bytes as objects, whose names contain offset and size. So any node finds the received bytes by
listing the objects. A chain is the objects from the first byte on, in order and without a gap. If objects overlap,
because a client has sent a range again, the chain takes each byte once.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(r"(\d{15})-(\d{15})-([0-9a-f]{32})(?:-([0-9a-f]{64}))?")


@dataclass(frozen=True, slots=True)
class PartObject:
    """An object in the object store with some bytes of an upload session."""

    #: Name of the object, unique within its session.
    name: str
    #: Offset of the object's first byte in the file.
    first: int
    size_bytes: int
    #: SHA-256 in hex, known only for an object that begins with the file's first byte.
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An object of a chain, and how many of its first bytes are also in earlier objects."""

    part: PartObject
    skip_bytes: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The objects with the received bytes, in order and without a gap."""

    links: tuple[Link, ...] = ()

    @property
    def size_bytes(self) -> int:
        return self.links[-1].part.first + self.links[-1].part.size_bytes if self.links else 0

    @property
    def sha256(self) -> str | None:
        """Return the SHA-256 of all bytes, if it is known without reading them."""
        return self.links[0].part.sha256 if len(self.links) == 1 else None

    def followed_by(self, part: PartObject) -> "Chain":
        """Return the chain with `part` added. The part must begin at the end of the chain or earlier."""
        return Chain((*self.links, Link(part, self.size_bytes - part.first)))


def object_name(first: int, size_bytes: int, nonce: str, sha256: str | None) -> str:
    """Build the name of an object; names sort by offset. `nonce` is 32 random hex digits."""
    known = "" if sha256 is None else f"-{sha256}"
    return f"{first:015d}-{size_bytes:015d}-{nonce}{known}"


def parse_object(name: str) -> PartObject | None:
    """Parse the name of an object; None if it has another format."""
    match = _NAME.fullmatch(name)
    return PartObject(name, int(match[1]), int(match[2]), match[4]) if match else None


def chain_of(parts: Iterable[PartObject]) -> Chain:
    """Build the chain of these objects. Of objects with the same offset, use the largest."""
    chain = Chain()
    for part in sorted(parts, key=lambda part: (part.first, -part.size_bytes, part.name)):
        if part.first > chain.size_bytes:
            break
        if part.first + part.size_bytes > chain.size_bytes:
            chain = chain.followed_by(part)
    return chain
