"""The address: taken before anything is opened, and told as clients on this machine reach it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from svc_daemon.settings import Settings

#: Waiting connections before the kernel refuses.
BACKLOG = 1024


class AddressTaken(Exception):
    """Something else listens on the address."""


@contextmanager
def bind(settings: Settings) -> Iterator[socket.socket]:
    """The listening socket; raises AddressTaken with the address and the way out."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's delay off only then: it costs 40 ms an answer.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
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
    """Where a client on this machine reaches the listener, with the port that the kernel chose."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)  # noqa: S104 - compared, not bound
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{bracketed}:{listener.getsockname()[1]}"
