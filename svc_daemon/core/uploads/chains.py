"""Chains: which objects of an upload session together are the received bytes, from the first byte on without a gap.

If bytes are stored in an object store, each request stores the bytes that it receives as objects, whose names contain
the offset and the number of the bytes. Nothing else is recorded, so any node can find the received bytes by listing the
session's objects. Two requests on different nodes may store the same range, if a client sends it again before the first
request has ended. Then their objects overlap, and the chain takes each byte from one of them.

An object after a gap does not count. There is a gap if an earlier object could not be stored.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(r"(\d{15})-(\d{15})-([0-9a-f]{32})(?:-([0-9a-f]{64}))?")


@dataclass(frozen=True, slots=True)
class PartObject:
    """An object that contains some bytes of an upload session."""

    #: Name of the object, unique within its session.
    name: str
    #: Offset of the object's first byte in the file.
    first: int
    size_bytes: int
    #: SHA-256 of the object's bytes, in hexadecimal; known only if the object begins with the first byte of the file.
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An object of a chain, and how many of its first bytes are already in the objects before it."""

    part: PartObject
    skip_bytes: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The objects with the received bytes of an upload session, in order and without a gap."""

    links: tuple[Link, ...] = ()

    @property
    def size_bytes(self) -> int:
        return self.links[-1].part.first + self.links[-1].part.size_bytes if self.links else 0

    @property
    def sha256(self) -> str | None:
        """Return the hash of all bytes; None if it is not known without reading them."""
        return self.links[0].part.sha256 if len(self.links) == 1 else None

    def followed_by(self, part: PartObject) -> "Chain":
        """Return the chain with one more object, which begins at the end of the chain or earlier."""
        return Chain((*self.links, Link(part, self.size_bytes - part.first)))


def object_name(first: int, size_bytes: int, nonce: str, sha256: str | None) -> str:
    """Build the name of an object; names sort by offset. `nonce` is 32 random hexadecimal digits."""
    known = "" if sha256 is None else f"-{sha256}"
    return f"{first:015d}-{size_bytes:015d}-{nonce}{known}"


def parse_object(name: str) -> PartObject | None:
    """Parse the name of an object; None if the name does not have our format."""
    match = _NAME.fullmatch(name)
    return PartObject(name, int(match[1]), int(match[2]), match[4]) if match else None


def chain_of(parts: Iterable[PartObject]) -> Chain:
    """Build the chain from these objects, in any order: at each offset, choose the object that reaches furthest."""
    chain = Chain()
    for part in sorted(parts, key=lambda part: (part.first, -part.size_bytes, part.name)):
        if part.first > chain.size_bytes:
            break
        if part.first + part.size_bytes > chain.size_bytes:
            chain = chain.followed_by(part)
    return chain
