"""Put TLS in front of an engine without TLS."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress


@contextmanager
def tls_before(port: int, context: ssl.SSLContext) -> Iterator[int]:
    """Yield a port that accepts TLS and forwards to this port without TLS."""
    opened: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(port, context, opened)), daemon=True)
    thread.start()
    loop, ended, own_port = opened.result()
    try:
        yield own_port
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


async def _serve(
    port: int, context: ssl.SSLContext, opened: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]]"
) -> None:
    ended = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine_reader, engine_writer = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, engine_writer))
        await asyncio.gather(pass_on(reader, engine_writer), pass_on(engine_reader, writer))

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    opened.set_result((asyncio.get_running_loop(), ended, server.sockets[0].getsockname()[1]))
    await ended.wait()
    server.close()
    for writer in writers:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
