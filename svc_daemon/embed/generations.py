"""Recognizes which model an embedding server runs, by the vector of a probe sentence, which is stored in a file.

The model's name is not enough: a server may give any name to any model, or ignore the name. The vectors of the probe
sentence from the same model differ only by rounding; those of different models are completely different.
"""

import hashlib
import json
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.embed.models import replace_file

Vector = list[float]

#: The probe sentence, with common and rare words. If it were changed, every model would be taken for a new one.
PROBE = "The old lighthouse keeper counted forty-two umbrellas."
#: If the cosine similarity of two probe vectors is at least this, they are from the same model. It is below 1 because
#: hardware differs in rounding.
LEAST_COSINE = 0.99


@dataclass(frozen=True, slots=True)
class Generation:
    """A model, as recognized by its name and the vector of the probe sentence."""

    #: Name for the model's vectors: the model's name and a digest of the probe vector.
    name: str
    #: The model's vector of the probe sentence, normalized to length 1.
    probe: Vector

    def is_of(self, probe: Vector) -> bool:
        """Return whether `probe`, an embedding of the probe sentence, comes from this model."""
        if len(probe) != len(self.probe):
            return False
        return sum(mine * theirs for mine, theirs in zip(self.probe, probe, strict=True)) >= LEAST_COSINE


def recognise(memory: Path, model: str, probe: Vector) -> Generation:
    """Return the stored model if its name and probe vector match; otherwise store and return a new one."""
    # If the file can't be read, treat the model as a new one.
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
