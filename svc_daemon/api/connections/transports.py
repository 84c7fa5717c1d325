"""The transport of one connection: coalesces writes, and closes once the client has stopped sending.

uvicorn writes the head and the body of a response separately. Two packets cost a second system call, wake the client
twice, and can be delayed by 40 ms if Nagle's algorithm is on. So all writes of one event loop iteration are sent
together.

Closing a socket with unread bytes resets the connection, and the reset can overtake the response. So we shut down our
side after the response, discard what still arrives, and close the connection when the client does or when the time
limit passes.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Any

from svc_daemon.api.layers.deadlines import ClientLimits

#: Buffered bytes that trigger an immediate send, so that backpressure from a slow client still reaches the writer.
_GATHERED_BYTES = 64 * 1024
#: How often to check whether the last bytes of a TLS connection have been sent, in seconds.
_SENT_CHECK_S = 0.05


def has_arrivals(transport: asyncio.BaseTransport) -> bool:
    """Return whether the client has sent bytes that nobody has read."""
    arrivals = select.poll()
    arrivals.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(arrivals.poll(0))


class ClientTransport(asyncio.Transport):
    """Wraps the event loop's transport, which the loop itself continues to use."""

    def __init__(
        self,
        transport: asyncio.Transport,
        limits: ClientLimits,
        is_sending: Callable[[], bool],
        wire: asyncio.Transport | None = None,
    ) -> None:
        """`wire` is the transport below TLS; None without TLS."""
        super().__init__()
        #: Whether the response has been sent and incoming bytes are being discarded.
        self.lingering = False
        self._transport = transport
        self._wire = wire
        self._limits = limits
        self._left_bytes = limits.linger_bytes
        #: Returns whether the client is still sending its request.
        self._is_sending = is_sending
        self._cut: asyncio.TimerHandle | None = None
        #: Data that was written, but not yet passed to the event loop's transport.
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0

    def close(self) -> None:
        """Flush the buffer and close: immediately, or once the client has finished sending."""
        if self.is_closing():
            return
        self._flush()
        if not self._is_sending():
            self._transport.close()
            self._end_tls()
            return
        self.lingering = True
        self._cut = asyncio.get_running_loop().call_later(self._limits.linger_s, self._transport.abort)
        self._transport.resume_reading()
        try:
            # TLS can't end one direction alone; there, `Connection: close` in the response has to do.
            if self._transport.can_write_eof():
                self._transport.write_eof()
        except OSError:
            # The client has already disconnected.
            self._transport.abort()

    def _end_tls(self) -> None:
        """Close the socket once all is sent. asyncio would wait for the client to end TLS on its side too."""
        if self._wire is None or self._wire.is_closing():
            return
        if self._transport.get_write_buffer_size() or self._wire.get_write_buffer_size():
            self._cut = asyncio.get_running_loop().call_later(_SENT_CHECK_S, self._end_tls)
        else:
            self._wire.close()

    def throw_away(self, size_bytes: int) -> None:
        """Count bytes that were discarded while lingering. If there are too many, abort the connection."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            self._transport.abort()

    def forget(self) -> None:
        """Drop the buffer of a lost connection."""
        self._unsent.clear()
        if self._cut is not None:
            self._cut.cancel()

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()

    def write(self, data: Any) -> None:
        """Buffer bytes to be sent at the end of this event loop iteration."""
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
