"""The system's resolver: its answers, its errors, and that a name which hangs holds up no other."""

import asyncio
import socket
import threading

import pytest

from svc_daemon.fetch.resolvers import MAX_LOOKUPS, SystemResolver
from tests.acceptance.installations import PATIENCE_S


class Hanging:
    """In place of `getaddrinfo`: counts who asks, and answers when it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.may_answer = threading.Semaphore(0), threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self.look_up)

    def look_up(self, name: str, *_: object, **__: object) -> list[object]:
        self.asked.release()
        self.may_answer.wait(PATIENCE_S)
        if name == "late.example":
            raise socket.gaierror("late")
        return [(0, 0, 0, "", ("1.1.1.1", 0))]


def test_a_name_has_its_addresses_and_one_that_cannot_exist_is_an_os_error() -> None:
    assert set(asyncio.run(SystemResolver().resolve("localhost"))) <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError):
        asyncio.run(SystemResolver().resolve("nothing.invalid"))


def test_lookups_that_hang_are_bounded_and_hold_up_no_thread_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = Hanging(monkeypatch)

    async def scenario() -> int:
        resolver = SystemResolver()
        given_up = [asyncio.create_task(resolver.resolve(f"{i}.example")) for i in range(MAX_LOOKUPS)]
        for _ in given_up:
            assert await asyncio.to_thread(hanging.asked.acquire, timeout=PATIENCE_S)
        for task in given_up:
            task.cancel()
        waiting = asyncio.create_task(resolver.resolve("one-more.example"))
        # A task that gave up has not freed the thread, so the next one waits.
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        threads = sum(thread.name == "resolver" for thread in threading.enumerate())
        assert not done
        hanging.may_answer.set()
        assert await asyncio.wait_for(waiting, PATIENCE_S) == ["1.1.1.1"]
        return threads

    assert asyncio.run(scenario()) == MAX_LOOKUPS


def test_an_answer_for_a_loop_that_has_closed_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
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
