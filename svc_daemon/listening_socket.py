"""The listening socket, which accepts connections even if file descriptors run out."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
