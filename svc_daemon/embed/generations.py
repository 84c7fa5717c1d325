"""Which model it was that a server ran: told by the vector of one sentence, and kept in a file.

A name says too little: servers give any model any name, and take no name at all. Two vectors of one model differ by
rounding alone, those of two models in everything.
"""

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.embed.models import replace_file

Vector = list[float]

#: Has a common word and a rare one; another sentence would make every model a new one.
PROBE = "The old lighthouse keeper counted forty-two umbrellas."
#: The least cosine of two vectors of one model: other hardware and other rounding keep to it.
LEAST_COSINE = 0.99


@dataclass(frozen=True, slots=True)
class Generation:
    """One model under one name."""

    #: Names its vectors.
    name: str
    #: Of length 1.
    probe: Vector

    def is_of(self, probe: Vector) -> bool:
        """Whether the same model gave this one."""
        if len(probe) != len(self.probe):
            return False
        return sum(mine * theirs for mine, theirs in zip(self.probe, probe, strict=True)) >= LEAST_COSINE


def recognise(memory: Path, model: str, probe: Vector) -> Generation:
    """What the file tells of, if it is the same model under the same name; else a new generation, kept there."""
    kept = _read(memory)
    if kept is not None and kept.name.startswith(f"{model}@") and kept.is_of(probe):
        return kept
    packed = struct.pack(f"<{len(probe)}f", *probe)
    generation = Generation(f"{model}@{hashlib.sha256(packed).hexdigest()[:12]}", probe)
    memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(memory, json.dumps({"name": generation.name, "probe": packed.hex()}).encode())
    return generation


def _read(memory: Path) -> Generation | None:
    try:
        told = json.loads(memory.read_text("utf-8"))
        packed = bytes.fromhex(told["probe"])
        return Generation(str(told["name"]), list(struct.unpack(f"<{len(packed) // 4}f", packed)))
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        # Without it the model counts as a new one.
        return None
