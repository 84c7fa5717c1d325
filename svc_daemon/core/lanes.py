"""Lanes: the queues of documents that wait for a child process to read them, and how they take turns.

    wave      small documents in simple formats: up to 64 of one team share a child process
    prompt    the same, for documents that were not uploaded in bulk, so that they wait less
    single    one document per child: large documents, other formats, and documents that failed in a wave
    suspect   one document per child, one child at a time: documents that were being read when the daemon died
    scan      one document per child, one child at a time: documents with pages whose text is in pictures

A document may make the daemon die. So all documents that were being read at that time become suspects. No attempt is
counted for them, but a document that was being read ten times when the daemon died fails. Those that were being read
more often wait for the others, so that a document that does make the daemon die holds up none.

A page of a scan takes seconds, so scans have a lane of their own: a hundred of them hold back no other document.
"""

from collections.abc import Collection, Mapping

PROMPT, WAVE, SINGLE, SUSPECT, SCAN = "prompt", "wave", "single", "suspect", "scan"
LANES = (PROMPT, WAVE, SINGLE, SUSPECT, SCAN)
#: The lanes whose child processes read several documents each.
WAVES = (PROMPT, WAVE)
#: More sources than this, created at once, count as a bulk upload.
FEW = 8


def choose(*, is_small: bool, together: int) -> str:
    """Return the lane of a new task.

    A small document may share a child process with others. `together` is how many sources are created at once.
    """
    if not is_small:
        return SINGLE
    return WAVE if together > FEW else PROMPT


def in_turn(at_work: Mapping[str, int], served: Mapping[str, int], children: int) -> list[str]:
    """Return the lanes that may start a child process now, in the order of their turns.

    The lane with the fewest child processes comes first. If several have equally few, the one that has waited longest
    for a turn comes first. Each lane may have up to `children` child processes, but `single` and `suspect` share that
    limit.

    `at_work` says how many child processes each lane has. `served` orders the lanes by their last turn: the
    lowest value is the longest ago.
    """
    alone = at_work.get(SINGLE, 0) + at_work.get(SUSPECT, 0)
    is_free = {
        PROMPT: at_work.get(PROMPT, 0) < children,
        WAVE: at_work.get(WAVE, 0) < children,
        SINGLE: alone < children,
        SUSPECT: alone < children and not at_work.get(SUSPECT),
        SCAN: not at_work.get(SCAN),
    }
    return sorted(filter(is_free.__getitem__, LANES), key=lambda lane: (at_work.get(lane, 0), served.get(lane, 0)))


def fill(sizes: Collection[int], most_bytes: int) -> int:
    """Return how many of these documents, in this order, one child process may read.

    Together, they may have at most `most_bytes` bytes. The first document is counted whatever its size.
    """
    total = count = 0
    for size in sizes:
        total += size
        if count and total > most_bytes:
            break
        count += 1
    return count
