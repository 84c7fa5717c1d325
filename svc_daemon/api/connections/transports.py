"""The transport of one connection: it sends a response in one piece, and closes when the client has stopped sending.

uvicorn writes the head and the body of a response separately. Two packets cost a second system call, wake the client
twice, and wait 40 ms for each other where Nagle's algorithm is on; so what is written in one turn of the event loop is
sent together.

Closing a socket with unread bytes resets the connection, and the reset can overtake the response. So our side is
shut after the response, what still arrives is thrown away, and the connection is cut when the client ends it or its
time is over.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from svc_daemon.api.layers.deadlines import ClientLimits

#: Bytes that are sent at once, so that a client that doesn't read still slows the writer down.
_GATHERED_BYTES = 64 * 1024


class ClientTransport(asyncio.Transport):
    """A layer over the event loop's transport, which the loop itself goes on using."""

    def __init__(self, transport: asyncio.Transport, limits: ClientLimits, is_sending: Callable[[], bool]) -> None:
        super().__init__()
        #: Whether the response is sent and what arrives is thrown away.
        self.lingering = False
        self._transport = transport
        self._limits = limits
        self._left_bytes = limits.linger_bytes
        #: Whether the client has more to send than we have read.
        self._is_sending = is_sending
        self._cut: asyncio.TimerHandle | None = None
        #: Written, but not yet passed on to the event loop.
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0

    def close(self) -> None:
        """Flush what was written and close: at once, or once the client is done."""
        if self.is_closing():
            return
        self._flush()
        if not self._is_sending():
            self._transport.close()
            return
        self.lingering = True
        self._cut = asyncio.get_running_loop().call_later(self._limits.linger_s, self._transport.abort)
        self._transport.resume_reading()
        try:
            self._transport.write_eof()
        except OSError:
            # The client has gone already.
            self._transport.abort()

    def throw_away(self, size_bytes: int) -> None:
        """Count bytes that arrived while lingering."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            self._transport.abort()

    def forget(self) -> None:
        """The connection is gone."""
        self._unsent.clear()
        if self._cut is not None:
            self._cut.cancel()

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()

    def write(self, data: Any) -> None:
        """Take bytes for this turn of the event loop."""
        if not data:
            return
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes >= _GATHERED_BYTES:
            self._flush()
        elif len(self._unsent) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        if self._unsent:
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._unsent_bytes = 0
            self._transport.write(data)

    def abort(self) -> None:
        self._unsent.clear()
        self._transport.abort()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)
