"""The system's resolver: its addresses, its errors, and hanging lookups."""

import asyncio
import socket
import threading

import pytest

from svc_daemon.fetch.connections import MAX_LOOKUPS, SystemResolver
from tests.acceptance.installations import PATIENCE_S


class Hanging:
    """A replacement of `getaddrinfo` that signals each lookup and returns when it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.may_answer = threading.Semaphore(0), threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self.look_up)

    def look_up(self, name: str, *_: object, **__: object) -> list[object]:
        self.asked.release()
        self.may_answer.wait(PATIENCE_S)
        if name == "late.example":
            raise socket.gaierror("late")
        return [(0, 0, 0, "", ("1.1.1.1", 0))]


def test_resolver_returns_addresses_and_raises_os_error_for_an_invalid_name() -> None:
    assert set(asyncio.run(SystemResolver().resolve("localhost"))) <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError):
        asyncio.run(SystemResolver().resolve("nothing.invalid"))


def test_number_of_hanging_lookups_is_limited_and_later_ones_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = Hanging(monkeypatch)

    async def scenario() -> int:
        resolver = SystemResolver()
        given_up = [asyncio.create_task(resolver.resolve(f"{i}.example")) for i in range(MAX_LOOKUPS)]
        for _ in given_up:
            assert await asyncio.to_thread(hanging.asked.acquire, timeout=PATIENCE_S)
        for task in given_up:
            task.cancel()
        waiting = asyncio.create_task(resolver.resolve("one-more.example"))
        # A cancelled task doesn't free its thread, so the next lookup waits.
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        threads = sum(thread.name == "resolver" for thread in threading.enumerate())
        assert not done
        hanging.may_answer.set()
        assert await asyncio.wait_for(waiting, PATIENCE_S) == ["1.1.1.1"]
        return threads

    assert asyncio.run(scenario()) == MAX_LOOKUPS


def test_lookup_that_ends_after_its_event_loop_was_closed_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = Hanging(monkeypatch)

    async def scenario() -> None:
        task = asyncio.create_task(SystemResolver().resolve("late.example"))
        assert await asyncio.to_thread(hanging.asked.acquire, timeout=PATIENCE_S)
        task.cancel()

    # A lookup of another test may still hang in this process.
    others = set(threading.enumerate())
    asyncio.run(scenario())
    (thread,) = [thread for thread in set(threading.enumerate()) - others if thread.name == "resolver"]
    hanging.may_answer.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
