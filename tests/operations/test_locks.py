"""One request at a time holds a lock, and a newcomer takes over from one that lets go."""

import asyncio
import time

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.process.locks import TAKEOVER_S, LocalLocks

pytestmark = pytest.mark.anyio


class Holder:
    """A request that holds a session until it is to end."""

    def __init__(self, locks: LocalLocks, *, lets_go: bool = True) -> None:
        self.entered, self.ends = asyncio.Event(), asyncio.Event()
        self.kept = False
        self.running = asyncio.create_task(self._run(locks, lets_go=lets_go))

    async def _run(self, locks: LocalLocks, *, lets_go: bool) -> None:
        async with locks.take_over("upl_a", lets_go=lets_go):
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


async def started(locks: LocalLocks, *, lets_go: bool = True) -> Holder:
    holder = Holder(locks, lets_go=lets_go)
    await holder.entered.wait()
    return holder


async def test_a_newcomer_takes_over_after_the_holder_kept_what_came() -> None:
    locks = LocalLocks()
    dead = await started(locks)
    async with locks.take_over("upl_a"):
        assert dead.kept
    assert (await dead.code(), ("upl_a" in locks.names())) == ("request_in_progress", False)


async def test_of_many_newcomers_the_last_one_holds() -> None:
    locks = LocalLocks()
    *others, last = [Holder(locks) for _ in range(20)]
    await last.entered.wait()
    assert {await holder.code() for holder in others} == {"request_in_progress"}
    assert not last.running.done()
    await last.end()
    assert "upl_a" not in locks.names()


async def test_one_that_must_not_be_interrupted_is_waited_for() -> None:
    locks = LocalLocks()
    finalizing = await started(locks, lets_go=False)
    waiting = Holder(locks)
    await asyncio.sleep(0)
    finalizing.ends.set()
    await waiting.entered.wait()
    assert finalizing.running.exception() is None
    await waiting.end()


async def test_a_newcomer_waits_only_so_long() -> None:
    locks = LocalLocks()
    finalizing = await started(locks, lets_go=False)
    began = time.monotonic()
    with pytest.raises(ServiceError) as refused:
        async with locks.take_over("upl_a"):
            pass
    assert time.monotonic() - began >= TAKEOVER_S
    assert (refused.value.code, refused.value.details) == ("request_in_progress", {"retry_after_seconds": 1})
    await finalizing.end()


async def test_sessions_do_not_hinder_each_other() -> None:
    locks = LocalLocks()
    async with locks.take_over("upl_a"), locks.take_over("upl_b"):
        assert locks.names() == ["upl_a", "upl_b"]


async def test_a_cancelled_newcomer_leaves_the_session_to_its_holder_and_a_cancelled_holder_to_nobody() -> None:
    locks = LocalLocks()
    for lets_go in (False, True):
        holder = await started(locks, lets_go=lets_go)
        if not lets_go:
            waiting = Holder(locks)
            await asyncio.sleep(0)
            waiting.running.cancel()
            await asyncio.wait([waiting.running])
            assert "upl_a" in locks.names()
        holder.running.cancel()
        await asyncio.wait([holder.running])
        assert (holder.running.cancelled(), ("upl_a" in locks.names())) == (True, False), lets_go


async def test_a_time_out_of_the_work_itself_stays_one() -> None:
    locks = LocalLocks()
    with pytest.raises(TimeoutError):
        async with locks.take_over("upl_a"):
            raise TimeoutError("of the disk")
    assert "upl_a" not in locks.names()
