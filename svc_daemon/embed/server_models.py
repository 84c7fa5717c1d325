"""Recognizes an embedding server's model by the vector that it returns for a probe sentence.

The vector is stored in a file. A server may give any model any name, but vectors of the same model differ only by
rounding.
"""

import hashlib
import json
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.embed.installed_models import replace_file
from svc_daemon.wire.light.parsing import parse_json

Vector = list[float]

#: A sentence with common and rare words. If it changed, every model would count as new.
PROBE = "The old lighthouse keeper counted forty-two umbrellas."
#: Two probe vectors with at least this cosine similarity come from one model. They differ only by rounding.
LEAST_COSINE = 0.99


@dataclass(frozen=True, slots=True)
class Generation:
    """A server's model, recognized by its name and its vector of the probe sentence."""

    #: The model's name and a digest of the probe vector.
    name: str
    #: Vector of the probe sentence, of length 1.
    probe: Vector

    def is_of(self, probe: Vector) -> bool:
        """Whether this vector of the probe sentence comes from this model."""
        if len(probe) != len(self.probe):
            return False
        return sum(mine * theirs for mine, theirs in zip(self.probe, probe, strict=True)) >= LEAST_COSINE


def recognise(memory: Path, model: str, probe: Vector) -> Generation:
    """Return the stored model if its name and probe vector match. Otherwise, store and return a new model."""
    # If the file can't be read, the model counts as new.
    with suppress(OSError, ValueError, KeyError, TypeError, struct.error):
        record = parse_json(memory.read_text("utf-8"))
        packed = bytes.fromhex(record["probe"])
        kept = Generation(str(record["name"]), list(struct.unpack(f"<{len(packed) // 4}f", packed)))
        if kept.name.startswith(f"{model}@") and kept.is_of(probe):
            return kept
    packed = struct.pack(f"<{len(probe)}f", *probe)
    generation = Generation(f"{model}@{hashlib.sha256(packed).hexdigest()[:12]}", probe)
    memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(memory, json.dumps({"name": generation.name, "probe": packed.hex()}).encode())
    return generation
