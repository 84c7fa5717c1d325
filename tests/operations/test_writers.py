"""One request at a time works on a session, and a newcomer takes over from one that lets go."""

import asyncio
import time

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.process.gates import TAKEOVER_S, Writers

pytestmark = pytest.mark.anyio


class Holder:
    """A request that holds a session until it is to end."""

    def __init__(self, writers: Writers, *, lets_go: bool = True) -> None:
        self.entered, self.ends = asyncio.Event(), asyncio.Event()
        self.kept = False
        self.running = asyncio.create_task(self._run(writers, lets_go=lets_go))

    async def _run(self, writers: Writers, *, lets_go: bool) -> None:
        async with writers.hold("upl_a", lets_go=lets_go):
            self.entered.set()
            try:
                await self.ends.wait()
            finally:
                # What came is kept before the next one may begin.
                await asyncio.sleep(0)
                self.kept = True

    async def end(self) -> None:
        self.ends.set()
        await self.running

    async def code(self) -> str:
        """That of the error which it ended with."""
        await asyncio.wait([self.running])
        error = self.running.exception()
        assert isinstance(error, ServiceError)
        return str(error.code)


async def started(writers: Writers, *, lets_go: bool = True) -> Holder:
    holder = Holder(writers, lets_go=lets_go)
    await holder.entered.wait()
    return holder


async def test_a_newcomer_takes_over_after_the_holder_kept_what_came() -> None:
    writers = Writers()
    dead = await started(writers)
    async with writers.hold("upl_a"):
        assert dead.kept
    assert (await dead.code(), writers.is_held("upl_a")) == ("request_in_progress", False)


async def test_of_many_newcomers_the_last_one_holds() -> None:
    writers = Writers()
    *others, last = [Holder(writers) for _ in range(20)]
    await last.entered.wait()
    assert {await holder.code() for holder in others} == {"request_in_progress"}
    assert not last.running.done()
    await last.end()
    assert not writers.is_held("upl_a")


async def test_one_that_must_not_be_interrupted_is_waited_for() -> None:
    writers = Writers()
    finalizing = await started(writers, lets_go=False)
    waiting = Holder(writers)
    await asyncio.sleep(0)
    finalizing.ends.set()
    await waiting.entered.wait()
    assert finalizing.running.exception() is None
    await waiting.end()


async def test_a_newcomer_waits_only_so_long() -> None:
    writers = Writers()
    finalizing = await started(writers, lets_go=False)
    began = time.monotonic()
    with pytest.raises(ServiceError) as refused:
        async with writers.hold("upl_a"):
            pass
    assert time.monotonic() - began >= TAKEOVER_S
    assert (refused.value.code, refused.value.details) == ("request_in_progress", {"retry_after_seconds": 1})
    await finalizing.end()


async def test_sessions_do_not_hinder_each_other() -> None:
    writers = Writers()
    async with writers.hold("upl_a"), writers.hold("upl_b"):
        assert [writers.is_held(f"upl_{name}") for name in "abc"] == [True, True, False]


async def test_a_cancelled_newcomer_leaves_the_session_to_its_holder_and_a_cancelled_holder_to_nobody() -> None:
    writers = Writers()
    for lets_go in (False, True):
        holder = await started(writers, lets_go=lets_go)
        if not lets_go:
            waiting = Holder(writers)
            await asyncio.sleep(0)
            waiting.running.cancel()
            await asyncio.wait([waiting.running])
            assert writers.is_held("upl_a")
        holder.running.cancel()
        await asyncio.wait([holder.running])
        assert (holder.running.cancelled(), writers.is_held("upl_a")) == (True, False), lets_go


async def test_a_time_out_of_the_work_itself_stays_one() -> None:
    writers = Writers()
    with pytest.raises(TimeoutError):
        async with writers.hold("upl_a"):
            raise TimeoutError("of the disk")
    assert not writers.is_held("upl_a")
