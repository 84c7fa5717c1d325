"""Arithmetic on many vectors at once. Import this module late: numpy is optional and slow to load.

A search first compares only the signs of the vectors' components, one bit each. This takes a thirtieth of the memory
and time that full vectors would take. The exact cosine is computed for the best candidates only.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svc_daemon.provider.embedded.schema import ORDINAL_BITS

#: The deadline is checked after this many vectors, about every millisecond.
BLOCK_VECTORS = 100_000
#: Signs are padded to whole words of 8 bytes, because 8 bytes are compared in one step.
WORD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of some chunks' vectors. Immutable, so that threads can share them."""

    #: Keys of the chunks.
    keys: NDArray[np.int64]
    #: Row 0 has the first 8 bytes of every chunk's signs, row 1 the next 8, and so on.
    words: NDArray[np.uint64]

    @property
    def size_bytes(self) -> int:
        return self.keys.nbytes + self.words.nbytes


def pack_signs(vectors: Sequence[bytes]) -> list[bytes]:
    """Encode each vector as one bit per component, 1 if positive, padded to words of 8 bytes."""
    packed = [np.packbits(np.frombuffer(values, dtype="<f4") > 0).tobytes() for values in vectors]
    return [bits + bytes(-len(bits) % WORD_BYTES) for bits in packed]


def read_signs(rows: Sequence[tuple[int, bytes]]) -> Signs | None:
    """Build Signs from rows of a chunk key and the sign bits of its vector; None if there are no rows."""
    if not rows:
        return None
    keys = np.fromiter((key for key, _ in rows), dtype=np.int64, count=len(rows))
    words = np.frombuffer(b"".join(signs for _, signs in rows), dtype=np.uint64)
    return Signs(keys, np.ascontiguousarray(words.reshape(len(rows), -1).T))


def join(parts: Iterable[Signs | None]) -> Signs | None:
    """Join several `Signs` into one; None if all are empty."""
    some = [part for part in parts if part is not None and part.keys.size]
    if len(some) < 2:
        return some[0] if some else None
    return Signs(np.concatenate([part.keys for part in some]), np.hstack([part.words for part in some]))


def keep(signs: Signs, document_keys: Iterable[int]) -> Signs:
    """Keep only the chunks of these documents."""
    kept = np.isin(signs.keys >> ORDINAL_BITS, np.fromiter(document_keys, dtype=np.int64))
    return Signs(signs.keys[kept], np.ascontiguousarray(signs.words[:, kept]))


class Nearest(NamedTuple):
    """The chunks whose signs are most similar to the query's, nearest first."""

    #: For each chunk, how many signs differ from the query's (Hamming distance).
    differences: NDArray[np.uint16]
    #: Keys of the chunks.
    keys: NDArray[np.int64]


def nearest(
    signs: Signs, query: bytes, count: int, document_keys: Iterable[int] | None, check: Callable[[], None]
) -> Nearest:
    """Find the `count` chunks of these documents (None: all) whose signs differ least from the query's.

    `check` is called regularly, and may raise an error to stop the search.
    """
    if document_keys is not None:
        signs = keep(signs, document_keys)
    # For each chunk, how many signs differ from the query's.
    differences = np.zeros(signs.words.shape[1], dtype=np.uint16)
    for start in range(0, differences.size, BLOCK_VECTORS):
        check()
        block = slice(start, start + BLOCK_VECTORS)
        for row, word in zip(signs.words, np.frombuffer(query, dtype=np.uint64), strict=True):
            differences[block] += np.bitwise_count(row[block] ^ word)
    if differences.size > count:
        # The highest number of differences among the `count` nearest chunks. Other chunks may have the same number.
        enough = np.searchsorted(np.bincount(differences).cumsum(), count)
        chosen = np.flatnonzero(differences <= enough)
    else:
        chosen = np.arange(differences.size)
    best = chosen[np.argsort(differences[chosen], kind="stable")][:count]
    return Nearest(differences[best], signs.keys[best])


def merge(parts: Sequence[Nearest], count: int) -> list[int]:
    """Merge the results of several `nearest` calls, and return the keys of the `count` nearest chunks."""
    differences = np.concatenate([part.differences for part in parts])
    keys = np.concatenate([part.keys for part in parts])
    keys = keys[np.lexsort((keys, differences))]
    _, firsts = np.unique(keys, return_index=True)
    found: list[int] = keys[np.sort(firsts)][:count].tolist()
    return found


def cosines(vectors: Sequence[bytes], query: bytes) -> list[float]:
    """Compute the cosine of the query and each vector; all must have length 1."""
    if not vectors:
        return []
    matrix = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    products = matrix @ np.frombuffer(query, dtype="<f4")
    return [float(product) for product in products.clip(-1, 1)]
