"""Chains: which of the objects of an upload session together are its bytes, from the first byte on without a gap.

If bytes are stored in an object store, each request stores what it received as objects, whose names contain the offset
and the number of their bytes. Nothing else is recorded, so the listing of a session's objects shows its received bytes,
on any node. Two requests on different nodes may store the same range, if a client sends it again before the first one
has ended; then their objects overlap, and the chain takes each byte from one of them.

An object that is not connected to the first byte does not count. It appears if an earlier object could not be stored.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(r"(\d{15})-(\d{15})-([0-9a-f]{32})(?:-([0-9a-f]{64}))?")


@dataclass(frozen=True, slots=True)
class PartObject:
    """An object with bytes of a session."""

    #: Unique name within the session.
    name: str
    #: Offset of its first byte in the file.
    first: int
    size_bytes: int
    #: SHA-256 of its bytes, in hexadecimal; known only if it begins with the first byte of the file.
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An object of a chain, and how many of its first bytes are in the object before it."""

    part: PartObject
    skip_bytes: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The received bytes of a session."""

    links: tuple[Link, ...] = ()

    @property
    def size_bytes(self) -> int:
        return self.links[-1].part.first + self.links[-1].part.size_bytes if self.links else 0

    @property
    def sha256(self) -> str | None:
        """The hash of all bytes, if it is known without reading them."""
        return self.links[0].part.sha256 if len(self.links) == 1 else None

    def followed_by(self, part: PartObject) -> "Chain":
        """Return the chain with one more object, which begins where the chain ends."""
        return Chain((*self.links, Link(part, self.size_bytes - part.first)))


def object_name(first: int, size_bytes: int, nonce: str, sha256: str | None) -> str:
    """Build a name that sorts by offset; `nonce` are 32 random hexadecimal digits."""
    known = "" if sha256 is None else f"-{sha256}"
    return f"{first:015d}-{size_bytes:015d}-{nonce}{known}"


def parse_object(name: str) -> PartObject | None:
    """Parse a name; None if it is no name of ours."""
    match = _NAME.fullmatch(name)
    return PartObject(name, int(match[1]), int(match[2]), match[4]) if match else None


def chain_of(parts: Iterable[PartObject]) -> Chain:
    """Choose the objects: the one that reaches furthest at each offset; the order of `parts` doesn't matter."""
    chain = Chain()
    for part in sorted(parts, key=lambda part: (part.first, -part.size_bytes, part.name)):
        if part.first > chain.size_bytes:
            break
        if part.first + part.size_bytes > chain.size_bytes:
            chain = chain.followed_by(part)
    return chain
