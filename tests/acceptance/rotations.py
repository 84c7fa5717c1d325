"""A load balancer in front of daemons: it sends each request to the next daemon, even those of one connection.

Bodies are forwarded as they arrive, in both directions, and headers unchanged. A daemon that is dead, or that ends
before it has responded, results in a 502.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from itertools import cycle

import h11

CHUNK_BYTES = 64 * 1024
#: The limit of request heads, which is above the daemons' own.
HEAD_BYTES = 256 * 1024


class _Peer:
    """The connection to the client or to the daemon of a request."""

    def __init__(
        self, role: "type[h11.CLIENT] | type[h11.SERVER]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.http = h11.Connection(role, max_incomplete_event_size=HEAD_BYTES)
        self.reader = reader
        self.writer = writer

    async def events(self) -> "AsyncIterator[h11.Event]":
        """Yield the events that the peer sends, up to the end of its message."""
        while True:
            event = self.http.next_event()
            if event is h11.NEED_DATA:
                self.http.receive_data(await self.reader.read(CHUNK_BYTES))
            elif not isinstance(event, h11.Event) or isinstance(event, h11.ConnectionClosed):
                return
            else:
                yield event
                if isinstance(event, h11.EndOfMessage):
                    return

    async def send(self, event: "h11.Event") -> None:
        if data := self.http.send(event):
            self.writer.write(data)
            await self.writer.drain()


class LoadBalancer:
    """The load balancer, in a thread of its own; while it is closed, its port refuses connections."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """Balance between daemons that listen on these addresses, at the balancer's own port."""
        self._hosts = hosts
        self._turns = cycle(hosts)
        self.port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Listen, at the same port as the last time."""
        if self._thread is not None:
            return
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(started)), daemon=True)
        self._thread.start()
        assert started.wait(60), "the balancer does not listen"

    def close(self) -> None:
        """Cut all connections. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
            thread.join()

    async def _run(self, started: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving[task] = writer
            task.add_done_callback(serving.pop)
            with suppress(OSError, h11.ProtocolError, asyncio.CancelledError):
                await self._serve(_Peer(h11.SERVER, reader, writer))
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._ended.wait()
        server.close()
        for task, writer in serving.items():
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        # Aborted connections close their sockets in the next iteration of the event loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _serve(self, client: _Peer) -> None:
        """Forward the requests of a connection, one after another."""
        while True:
            async for event in client.events():
                if isinstance(event, h11.Request):
                    await self._pass_on(client, event)
                    break
            else:
                return
            if client.http.our_state is not h11.DONE or client.http.their_state is not h11.DONE:
                return
            client.http.start_next_cycle()

    async def _pass_on(self, client: _Peer, request: h11.Request) -> None:
        try:
            daemon = _Peer(h11.CLIENT, *await asyncio.open_connection(next(self._turns), self.port))
        except OSError:
            await _refuse(client)
            return
        sending = asyncio.create_task(_send(client, daemon, request))
        try:
            async for event in daemon.events():
                await client.send(_copied(event))
        except (OSError, h11.ProtocolError):
            if client.http.our_state is not h11.SEND_RESPONSE:
                raise
            await _refuse(client)
        finally:
            daemon.writer.transport.abort()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _send(client: _Peer, daemon: _Peer, request: h11.Request) -> None:
    """Forward the request as its body arrives; if the client disconnects, disconnect from the daemon too."""
    try:
        await daemon.send(_copied(request))
        async for event in client.events():
            await daemon.send(event)
        # Anything that the client sends after its body belongs to its next request.
        data = await client.reader.read(CHUNK_BYTES)
        client.http.receive_data(data)
        is_gone = not data
    except (OSError, h11.ProtocolError):
        is_gone = True
    if is_gone:
        with suppress(OSError):
            daemon.writer.write_eof()


def _copied(event: "h11.Event") -> "h11.Event":
    """Return the event with the original case of its header names, which h11 converts to lowercase."""
    if isinstance(event, h11.Request):
        return h11.Request(
            method=event.method, target=event.target, headers=event.headers.raw_items(), http_version=b"1.1"
        )
    if isinstance(event, h11.Response | h11.InformationalResponse):
        return type(event)(status_code=event.status_code, headers=event.headers.raw_items(), reason=event.reason)
    return event


async def _refuse(client: _Peer) -> None:
    """Respond with 502 and close the connection."""
    headers = [("Content-Length", "0"), ("Connection", "close")]
    await client.send(h11.Response(status_code=502, headers=headers, reason=b"Bad Gateway"))
    await client.send(h11.EndOfMessage())
