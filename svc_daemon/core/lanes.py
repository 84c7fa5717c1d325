"""Lanes: queues of documents that wait to be read by child processes, and the rules by which they take turns.

    wave      small documents in formats that need no third-party parser: up to 64 of one team share a child
    prompt    the same, for documents that were not uploaded in bulk, so that they don't wait for thousands of others
    single    one document per child: large ones, other formats, and those that a wave left unread or failed to read
    suspect   one document per child, and only one such child: documents whose worker was lost while it read them

A document may crash the process that reads it, and in rare cases the daemon. To find out which document did it, all
documents that were being read at the time become suspects, and no attempt is counted. An attempt is counted only if the
worker is lost again while it reads a suspect. So other documents don't fail because of one that crashes its reader.
"""

from collections.abc import Collection, Mapping

PROMPT, WAVE, SINGLE, SUSPECT = "prompt", "wave", "single", "suspect"
LANES = (PROMPT, WAVE, SINGLE, SUSPECT)
#: The lanes whose documents are read several at a time by one child process.
WAVES = (PROMPT, WAVE)
#: If more sources than this are created at once, they count as bulk, and the small ones get the lane `wave`.
FEW = 8


def choose(*, is_small: bool, together: int) -> str:
    """Return the lane of a new task. `together` is how many sources are created at once."""
    if not is_small:
        return SINGLE
    return WAVE if together > FEW else PROMPT


def in_turn(at_work: Mapping[str, int], served: Mapping[str, int], children: int) -> list[str]:
    """Return the lanes that may start a child process now, the next one first.

    A lane with fewer running children comes first; of equal ones, the lane whose last turn is longest ago. `at_work`
    maps each lane to its number of running children, `served` to the sequence number of its last turn. A lane may run
    at most `children` children; the lanes `single` and `suspect` share one such limit. If at least `children` + 1 may
    run in total, every lane gets its turn.
    """
    alone = at_work.get(SINGLE, 0) + at_work.get(SUSPECT, 0)
    is_free = {
        PROMPT: at_work.get(PROMPT, 0) < children,
        WAVE: at_work.get(WAVE, 0) < children,
        SINGLE: alone < children,
        SUSPECT: alone < children and not at_work.get(SUSPECT),
    }
    return sorted(filter(is_free.__getitem__, LANES), key=lambda lane: (at_work.get(lane, 0), served.get(lane, 0)))


def fill(sizes: Collection[int], most_bytes: int) -> int:
    """Return how many of these documents, in this order, one child may read: at least one.

    Together, they have at most `most_bytes` bytes, unless the first one alone has more.
    """
    total = count = 0
    for size in sizes:
        total += size
        if count and total > most_bytes:
            break
        count += 1
    return count
