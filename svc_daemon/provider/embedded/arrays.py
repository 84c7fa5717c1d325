"""Arithmetic on many vectors at once. Imported late: numpy is an extra, and slow to load.

Of each vector a search keeps the signs in memory, one bit for a number, and compares those first: the fewer differ, the
nearer the vectors are likely to be, for a thirtieth of the memory and the time. The best are then measured in full.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svc_daemon.provider.embedded.schema import ORDINAL_BITS

#: Vectors that are compared between two looks at the clock: about a millisecond.
BLOCK_VECTORS = 100_000
#: Signs are compared in words of so many bytes.
WORD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of some chunks' vectors. Nothing changes them, so threads and snapshots may share them."""

    #: Keys of the chunks.
    keys: NDArray[np.int64]
    #: Row by row the first word of every chunk, the second of every chunk, and so on.
    words: NDArray[np.uint64]

    @property
    def size_bytes(self) -> int:
        return self.keys.nbytes + self.words.nbytes


def pack_signs(vectors: Sequence[bytes]) -> list[bytes]:
    """For each vector, one bit for each of its numbers: whether it is above 0. Padded to whole words."""
    packed = [np.packbits(np.frombuffer(values, dtype="<f4") > 0).tobytes() for values in vectors]
    return [bits + bytes(-len(bits) % WORD_BYTES) for bits in packed]


def read_signs(rows: Sequence[tuple[int, bytes]]) -> Signs | None:
    """Signs of chunks by their keys; None of none."""
    if not rows:
        return None
    keys = np.fromiter((key for key, _ in rows), dtype=np.int64, count=len(rows))
    words = np.frombuffer(b"".join(signs for _, signs in rows), dtype=np.uint64)
    return Signs(keys, np.ascontiguousarray(words.reshape(len(rows), -1).T))


def join(parts: Iterable[Signs | None]) -> Signs | None:
    """All of these as one."""
    some = [part for part in parts if part is not None and part.keys.size]
    if len(some) < 2:
        return some[0] if some else None
    return Signs(np.concatenate([part.keys for part in some]), np.hstack([part.words for part in some]))


def keep(signs: Signs, document_keys: Iterable[int]) -> Signs:
    """What belongs to these documents."""
    kept = np.isin(signs.keys >> ORDINAL_BITS, np.fromiter(document_keys, dtype=np.int64))
    return Signs(signs.keys[kept], np.ascontiguousarray(signs.words[:, kept]))


class Nearest(NamedTuple):
    """Chunks whose signs differ least from a query's, the nearest first."""

    #: In how many places they differ.
    differences: NDArray[np.uint16]
    #: Keys of the chunks.
    keys: NDArray[np.int64]


def nearest(
    signs: Signs, query: bytes, count: int, document_keys: Iterable[int] | None, check: Callable[[], None]
) -> Nearest:
    """The `count` nearest of these documents' chunks; None is every document's.

    `check` is called every so often, and may raise.
    """
    if document_keys is not None:
        signs = keep(signs, document_keys)
    # In how many places the signs of each chunk differ from the query's.
    differences = np.zeros(signs.words.shape[1], dtype=np.uint16)
    for start in range(0, differences.size, BLOCK_VECTORS):
        check()
        block = slice(start, start + BLOCK_VECTORS)
        for row, word in zip(signs.words, np.frombuffer(query, dtype=np.uint64), strict=True):
            differences[block] += np.bitwise_count(row[block] ^ word)
    if differences.size > count:
        # Every chunk up to the number of differences at which there are enough of them.
        enough = np.searchsorted(np.bincount(differences).cumsum(), count)
        chosen = np.flatnonzero(differences <= enough)
    else:
        chosen = np.arange(differences.size)
    best = chosen[np.argsort(differences[chosen], kind="stable")][:count]
    return Nearest(differences[best], signs.keys[best])


def merge(parts: Sequence[Nearest], count: int) -> list[int]:
    """The keys of the `count` nearest of all parts, each once."""
    differences = np.concatenate([part.differences for part in parts])
    keys = np.concatenate([part.keys for part in parts])
    keys = keys[np.lexsort((keys, differences))]
    _, firsts = np.unique(keys, return_index=True)
    found: list[int] = keys[np.sort(firsts)][:count].tolist()
    return found


def cosines(vectors: Sequence[bytes], query: bytes) -> list[float]:
    """Between the query and each of these, all of them of length 1."""
    if not vectors:
        return []
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    products = matrix @ np.frombuffer(query, dtype="<f4")
    return [float(product) for product in products.clip(-1, 1)]
