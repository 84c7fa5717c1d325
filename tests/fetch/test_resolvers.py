"""The system's resolver: its answers, its errors, and that a name which hangs holds nobody else up."""

import asyncio
import socket
import threading

import pytest

from svc_daemon.fetch.resolvers import MAX_LOOKUPS, SystemResolver


def test_a_name_of_the_hosts_file_has_its_address() -> None:
    assert set(asyncio.run(SystemResolver().resolve("localhost"))) <= {"127.0.0.1", "::1"}


def test_a_name_that_cannot_exist_is_an_os_error() -> None:
    with pytest.raises(OSError):
        asyncio.run(SystemResolver().resolve("nothing.invalid"))


def test_lookups_that_hang_are_bounded_and_hold_up_no_thread_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, asked = threading.Event(), threading.Semaphore(0)

    def hang(*_: object, **__: object) -> list[object]:
        asked.release()
        answered.wait(10)
        return [(0, 0, 0, "", ("1.1.1.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def scenario() -> int:
        resolver = SystemResolver()
        given_up = [asyncio.create_task(resolver.resolve(f"{i}.example")) for i in range(MAX_LOOKUPS)]
        for _ in given_up:
            assert await asyncio.to_thread(asked.acquire, timeout=5)
        for task in given_up:
            task.cancel()
        waiting = asyncio.create_task(resolver.resolve("one-more.example"))
        # Who gave up has not freed the thread, so the next one waits.
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        threads = sum(thread.name == "resolver" for thread in threading.enumerate())
        assert not done
        answered.set()
        assert await asyncio.wait_for(waiting, 5) == ["1.1.1.1"]
        return threads

    assert asyncio.run(scenario()) == MAX_LOOKUPS


def test_a_loop_that_has_closed_misses_the_answer_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, asked = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        asked.set()
        answered.wait(10)
        raise socket.gaierror("late")

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def scenario() -> None:
        task = asyncio.create_task(SystemResolver().resolve("late.example"))
        assert await asyncio.to_thread(asked.wait, 5)
        task.cancel()

    # A lookup of another test may still hang in this process.
    others = set(threading.enumerate())
    asyncio.run(scenario())
    (thread,) = [thread for thread in set(threading.enumerate()) - others if thread.name == "resolver"]
    answered.set()
    thread.join(5)
    assert not thread.is_alive()
