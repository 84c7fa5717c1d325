"""A daemon under systemd notifies it when it is ready, while it is alive, and when it stops."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.acceptance.installations import PATIENCE_S, Installation, wait_until


class Manager:
    """The notification socket of a service manager."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self._socket.settimeout(PATIENCE_S)

    def receive(self) -> str:
        return self._socket.recv(1000).decode()

    def is_silent(self, seconds: float) -> bool:
        self._socket.settimeout(seconds)
        try:
            return not self.receive()
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(PATIENCE_S)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["file", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "notify") if request.param == "file" else f"@svc-test-{os.getpid()}-{tmp_path.name[-8:]}"


@pytest.fixture
def manager(address: str) -> Iterator[Manager]:
    made = Manager(address)
    yield made
    made.close()


def test_daemon_notifies_the_service_manager_when_ready_alive_and_stopping(
    manager: Manager, address: str, tmp_path: Path
) -> None:
    installation = Installation(tmp_path / "one", NOTIFY_SOCKET=address, WATCHDOG_USEC="300000")
    process = installation.spawn_daemon()
    try:
        assert manager.receive() == "READY=1"
        assert httpx.get(f"{installation.base_url}/healthz", trust_env=False, timeout=PATIENCE_S).status_code == 200
        assert [manager.receive() for _ in range(3)] == ["WATCHDOG=1"] * 3
        # A hanging daemon sends no notifications, so systemd restarts it.
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: manager.is_silent(1), "no more notifications")
        process.send_signal(signal.SIGCONT)
        process.terminate()
        while (state := manager.receive()) == "WATCHDOG=1":
            pass
        assert state == "STOPPING=1"
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
