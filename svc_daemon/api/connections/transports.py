"""The transport of one connection: combines writes, and closes only after the client has stopped sending.

uvicorn writes the head and the body of a response separately. Combined, they often fit into one packet.

If the server closed the connection while the client is still sending, the client might lose the response.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Any

from svc_daemon.api.middleware.guards import ClientLimits

#: Buffered data is sent as soon as it has this many bytes. Otherwise a handler could fill the memory faster than a slow
#: client reads.
_GATHERED_BYTES = 64 * 1024
#: Seconds between two checks whether a response over TLS has been sent.
_SENT_CHECK_S = 0.05


def has_arrivals(transport: asyncio.BaseTransport) -> bool:
    """Return whether the client has sent bytes that are not read yet."""
    arrivals = select.poll()
    arrivals.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(arrivals.poll(0))


class ClientTransport(asyncio.Transport):
    """Wraps a connection's transport: combines writes, and closes only after the client has stopped sending."""

    def __init__(
        self,
        transport: asyncio.Transport,
        limits: ClientLimits,
        is_sending: Callable[[], bool],
        wire: asyncio.Transport | None = None,
    ) -> None:
        """Wrap a transport. `wire` is the transport below TLS; None without TLS."""
        super().__init__()
        #: Whether the response has been sent and the transport only discards what the client still sends.
        self.lingering = False
        self._transport = transport
        self._wire = wire
        self._limits = limits
        self._left_bytes = limits.linger_bytes
        #: Returns whether the client is still sending its request.
        self._is_sending = is_sending
        self._cut: asyncio.TimerHandle | None = None
        #: Data not yet passed on to the wrapped transport.
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0

    def close(self) -> None:
        """Send the buffered data. Close the connection once the client has stopped sending."""
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
            # TLS can't close only one direction. `Connection: close` says that no other response follows.
            if self._transport.can_write_eof():
                self._transport.write_eof()
        except OSError:
            # The client has already disconnected.
            self._transport.abort()

    def _end_tls(self) -> None:
        """Close the socket once all data is sent, without waiting for the client's TLS shutdown message."""
        if self._wire is None or self._wire.is_closing():
            return
        if self._transport.get_write_buffer_size() or self._wire.get_write_buffer_size():
            self._cut = asyncio.get_running_loop().call_later(_SENT_CHECK_S, self._end_tls)
        else:
            self._wire.close()

    def throw_away(self, size_bytes: int) -> None:
        """Count bytes that arrive after the response. Abort the connection if there are too many."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            self._transport.abort()

    def forget(self) -> None:
        """Discard the buffer of a lost connection."""
        self._unsent.clear()
        if self._cut is not None:
            self._cut.cancel()

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()

    def write(self, data: Any) -> None:
        """Buffer data, to send at the end of this iteration of the event loop."""
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
