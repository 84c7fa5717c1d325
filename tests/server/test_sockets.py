"""The listening socket closes connections when no descriptor is left, and accepts a few at a time."""

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from svc_daemon.server.sockets import bind
from svc_daemon.settings.daemon import Settings
from tests.acceptance.installations import PATIENCE_S
from tests.limits import limited


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Use up all descriptors that a lowered limit leaves to this process during the block."""
    most = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir()) + 10
    with limited(resource.RLIMIT_NOFILE, most), ExitStack() as held:
        try:
            while True:
                held.enter_context(Path(os.devnull).open())
        except OSError:
            yield


def test_connections_are_closed_at_once_while_no_descriptor_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async def answer(client: socket.socket, address: tuple[str, int]) -> bytes:
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, address)
        try:
            return await loop.sock_recv(client, 100)
        except ConnectionResetError:
            return b""

    async def work() -> None:
        with bind(Settings(data_dir=tmp_path, port=0)) as listener, ExitStack() as stack:
            address = listener.getsockname()
            async with asyncio.timeout(PATIENCE_S), await asyncio.start_server(greet, sock=listener, backlog=1000):
                clients = [stack.enter_context(socket.socket()) for _ in range(40)]
                with no_descriptor_left():
                    assert {await answer(client, address) for client in clients} == {b""}
                assert await answer(stack.enter_context(socket.socket()), address) == b"hello"

    with caplog.at_level(logging.INFO):
        asyncio.run(work())
    assert [record.message for record in caplog.records] == ["new connections are closed: Too many open files"]


def test_waiting_connections_are_accepted_in_small_groups(tmp_path: Path) -> None:
    async def work() -> None:
        with bind(Settings(data_dir=tmp_path, port=0)) as listener, ExitStack() as stack:
            listener.setblocking(False)
            for _ in range(60):
                stack.enter_context(socket.create_connection(listener.getsockname()))
            with pytest.raises(BlockingIOError):
                for _ in range(20):
                    stack.enter_context(listener.accept()[0])
            await asyncio.sleep(0)
            stack.enter_context(listener.accept()[0])

    asyncio.run(work())
