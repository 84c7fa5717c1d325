"""Arithmetic on many vectors at once. Imported late: numpy is an extra, and slow to load."""

from collections.abc import Sequence

import numpy as np


def pack_signs(vectors: Sequence[bytes]) -> list[bytes]:
    """For each vector, one bit for each of its numbers: whether that is above 0."""
    return [np.packbits(np.frombuffer(values, dtype="<f4") > 0).tobytes() for values in vectors]
