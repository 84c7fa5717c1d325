"""Allowances: how many descriptors and how much memory the system grants this process.

The soft limits are raised to the hard ones, which any process may do. Too little is refused at the start: a
service that runs out of either in the middle of its work answers nobody.
"""

import resource

#: More descriptors than this are of no use here; it is also what macOS gives at most.
MOST_DESCRIPTORS = 8192
LEAST_DESCRIPTORS = 128
#: Address space, most of it reserved and never touched: threads with their stacks and heaps, and mapped libraries.
LEAST_MEMORY_BYTES = 2 * 1024**3


class TooLittle(Exception):
    """A limit of the system is too low to work under."""


def take_allowances() -> None:
    """Raise the soft limits as far as they go. Raises TooLittle."""
    descriptors = _raise(resource.RLIMIT_NOFILE, MOST_DESCRIPTORS)
    if descriptors < LEAST_DESCRIPTORS:
        raise TooLittle(
            f"This process may open only {descriptors} files at a time, and needs {LEAST_DESCRIPTORS} at least. "
            "Raise the limit with `ulimit -n`."
        )
    memory_bytes = _raise(resource.RLIMIT_AS, LEAST_MEMORY_BYTES)
    if memory_bytes < LEAST_MEMORY_BYTES:
        raise TooLittle(
            f"This process may use only {memory_bytes // 1024**2} MB of address space, and needs "
            f"{LEAST_MEMORY_BYTES // 1024**2} MB at least. Raise the limit with `ulimit -v`."
        )


def most_connections(most: int) -> int:
    """So many connections, or fewer: half of the descriptors are kept for files."""
    return min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def _raise(kind: int, wanted: int) -> float:
    """The soft limit, raised to what is wanted where the hard one allows it."""
    soft, hard = (float("inf") if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(kind))
    if soft >= wanted:
        return soft
    raised = int(min(wanted, hard))
    resource.setrlimit(kind, (raised, resource.getrlimit(kind)[1]))
    return raised
