"""Raises this process's limits (`ulimit`) on file descriptors and memory as far as the system allows.

If a limit is still too low, the daemon refuses to start, because requests would fail later.
"""

import resource

#: Number of file descriptors to allow. The daemon never needs more, and macOS does not allow more.
MOST_DESCRIPTORS = 8192
#: Minimum number of file descriptors; with fewer, the daemon refuses to start.
LEAST_DESCRIPTORS = 128
#: Minimum size of the address space. The daemon reserves most of it without ever using it.
LEAST_MEMORY_BYTES = 2 * 1024**3


class TooLittle(Exception):
    """A limit of the operating system is too low."""


def take_allowances() -> None:
    """Raise the limits on descriptors and memory. Raises TooLittle if a limit is still too low."""
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
    """Return `most`, but at most half of the allowed descriptors, since files need the rest."""
    return min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def _raise(kind: int, wanted: int) -> float:
    """Raise the soft limit to `wanted` if the hard limit allows it. Returns the new soft limit."""
    soft, hard = (float("inf") if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(kind))
    if soft >= wanted:
        return soft
    raised = int(min(wanted, hard))
    resource.setrlimit(kind, (raised, resource.getrlimit(kind)[1]))
    return raised
