"""The listening socket, the limits of the operating system, and reports to the service manager.

If a limit is still too low, the daemon refuses to start, because requests would fail later.

The daemon reports that it is ready, then at intervals that it is alive, and at the end that it is stopping. If the
reports cease, the service manager can restart the daemon. Nothing is sent unless the service manager asks for it.
"""

import asyncio
import ctypes
import errno
import logging
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from svc_daemon.api.connections.protocols import Episodes
from svc_daemon.settings.daemon import Settings

log = logging.getLogger(__name__)

#: Maximum number of connections that wait in the kernel until they are accepted.
BACKLOG = 1024
#: Maximum number of connections accepted at once.
ACCEPTED_AT_ONCE = 16
_SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class AddressTaken(Exception):
    """The daemon can't listen on the address, for example because it is in use."""


class Listener(socket.socket):
    """A listening socket that accepts a few connections at a time.

    Otherwise asyncio would accept all waiting connections before it handles any, despite a connection limit. Without
    free file descriptors, asyncio would accept nothing for a second, and log a traceback each time.
    """

    def __init__(self, family: int) -> None:
        # Only with an explicit protocol does asyncio disable Nagle's algorithm, which costs 40 ms per response.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        #: A reserved file descriptor, with which a connection can be accepted and closed if no other is left.
        self._spare = Path(os.devnull).open("rb")  # noqa: SIM115 - closed with the socket
        self._accepted = 0
        self._episodes = Episodes()

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection.

        Raises BlockingIOError after ACCEPTED_AT_ONCE connections, so that asyncio handles these before it accepts more.
        """
        if self._accepted == ACCEPTED_AT_ONCE:
            raise BlockingIOError
        if not self._accepted:
            asyncio.get_running_loop().call_soon(self._begin_again)
        self._accepted += 1
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in _SHORTAGES:
                raise
            # Accept and close the oldest connection. If it stayed in the queue, it would keep waking the event loop.
            self._spare.close()
            with suppress(OSError):
                super().accept()[0].close()
            with suppress(OSError):
                self._spare = Path(os.devnull).open("rb")  # noqa: SIM115 - as above
            if self._episodes.begins():
                log.warning("new connections are closed: %s", error.strerror)
        raise BlockingIOError

    def close(self) -> None:
        self._spare.close()
        super().close()

    def _begin_again(self) -> None:
        self._accepted = 0


@contextmanager
def bind(settings: Settings) -> Iterator[Listener]:
    """Open the listening socket. Raises AddressTaken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with Listener(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            address = f"{settings.host}:{settings.port}"
            raise AddressTaken(
                f"Can't listen on {address}: {error.strerror}. Choose another with SVC_LISTEN."
            ) from error
        listener.listen(BACKLOG)
        yield listener


def base_url_of(settings: Settings, listener: socket.socket) -> str:
    """Return the listener's URL for clients on this machine.

    Over http it never contains a name: `localhost` also means `::1`, where another program may listen on the same port.
    """
    addresses = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not bound
    host = addresses.get(settings.host, settings.host if settings.tls else listener.getsockname()[0])
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    scheme = "https" if settings.tls else "http"
    return f"{scheme}://{bracketed}:{listener.getsockname()[1]}"


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


#: Number of the option of glibc's `mallopt` that limits arenas, and the limit.
_ARENA_MAX, ARENAS = -8, 2


def bound_arenas() -> None:
    """Let the C library keep freed memory in few places.

    The threads of the search library come and go, and each would leave some megabytes in a place of its own.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, ARENAS)


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


READY, ALIVE, STOPPING = b"READY=1", b"WATCHDOG=1", b"STOPPING=1"


@asynccontextmanager
async def notifying_service_manager(environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Report that the daemon is ready, then repeatedly that it is alive, and after the block that it is stopping."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        yield
        return
    _notify(address, READY)
    is_watched = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    # After this many seconds without a message, the service manager restarts this process; 0 means never.
    limit_s = int(environ.get("WATCHDOG_USEC", "0")) / 1e6 if is_watched else 0
    beating = asyncio.create_task(_beat(address, limit_s))
    try:
        yield
    finally:
        beating.cancel()
        _notify(address, STOPPING)


async def _beat(address: str, limit_s: float) -> None:
    while limit_s:
        _notify(address, ALIVE)
        await asyncio.sleep(limit_s / 3)


def _notify(address: str, state: bytes) -> None:
    """Send the state, ignoring errors."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        # `@` marks Linux's abstract namespace, not the file system.
        channel.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        channel.send(state)
