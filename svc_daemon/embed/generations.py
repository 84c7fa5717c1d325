"""Which model a server runs: recognised by the vector of one sentence, which is kept in a file.

The model's name is not enough: a server may give any model any name, or ignore it. Two vectors of one model differ only
by rounding, those of two models in everything.
"""

import hashlib
import json
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.embed.models import replace_file

Vector = list[float]

#: Has common words and rare ones; with another sentence every model would count as new.
PROBE = "The old lighthouse keeper counted forty-two umbrellas."
#: The least cosine of two vectors of one model: the rounding of other hardware stays within it.
LEAST_COSINE = 0.99


@dataclass(frozen=True, slots=True)
class Generation:
    """One model under one name."""

    #: Names its vectors.
    name: str
    #: Of length 1.
    probe: Vector

    def is_of(self, probe: Vector) -> bool:
        """Whether the same model made this probe."""
        if len(probe) != len(self.probe):
            return False
        return sum(mine * theirs for mine, theirs in zip(self.probe, probe, strict=True)) >= LEAST_COSINE


def recognise(memory: Path, model: str, probe: Vector) -> Generation:
    """The generation in the file, if it is the same model under the same name; otherwise a new one, kept there."""
    # Without a readable file the model counts as a new one.
    with suppress(OSError, ValueError, KeyError, TypeError, struct.error):
        record = json.loads(memory.read_text("utf-8"))
        packed = bytes.fromhex(record["probe"])
        kept = Generation(str(record["name"]), list(struct.unpack(f"<{len(packed) // 4}f", packed)))
        if kept.name.startswith(f"{model}@") and kept.is_of(probe):
            return kept
    packed = struct.pack(f"<{len(probe)}f", *probe)
    generation = Generation(f"{model}@{hashlib.sha256(packed).hexdigest()[:12]}", probe)
    memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(memory, json.dumps({"name": generation.name, "probe": packed.hex()}).encode())
    return generation
