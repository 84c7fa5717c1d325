"""Lanes: in what company a document is read, and which document is next.

    wave      with up to 63 others of its team, in one child: small documents of our own formats
    prompt    the same, for those that did not come in bulk, so that one file needn't wait for ten thousand others
    single    in a child of its own: large documents, other formats, and what a wave left unread or failed to read
    suspect   in a child of its own, and not beside another suspect: it was in work when its worker was lost

A document may kill the process that reads it, and rarely the daemon too. To find out which one it was, a document that
was in work becomes a suspect, without a counted attempt; only an attempt that is lost while it is a suspect counts. So
the documents that were in work beside the guilty one come to no harm.
"""

from collections.abc import Collection, Mapping

PROMPT, WAVE, SINGLE, SUSPECT = "prompt", "wave", "single", "suspect"
LANES = (PROMPT, WAVE, SINGLE, SUSPECT)
#: The lanes whose documents share a child.
WAVES = (PROMPT, WAVE)
#: More sources than this, created at once, come in bulk.
FEW = 8


def choose(*, is_small: bool, together: int) -> str:
    """Return the lane of a new task; `together` is how many sources are created at once."""
    if not is_small:
        return SINGLE
    return WAVE if together > FEW else PROMPT


def in_turn(at_work: Mapping[str, int], served: Mapping[str, int], children: int) -> list[str]:
    """Sort the lanes of which a child may be started now: those with the fewest first, then the longest unserved.

    `at_work` has the number of children by lane, and `served` the number of the latest turn. `children` limits the
    waves, and the other children too: if there may be one child more in all, neither kind waits long for the other.
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
    """Return how many documents of these sizes, from the first on, go into one wave: at least one."""
    total = count = 0
    for size in sizes:
        total += size
        if count and total > most_bytes:
            break
        count += 1
    return count
