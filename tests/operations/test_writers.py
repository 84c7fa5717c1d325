"""One request at a time works on a session, and a newcomer takes over from one that lets go."""

import asyncio
import time

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.process.gates import TAKEOVER_S, Writers
from tests.api.daemons import Loop


class Holder:
    """A request that holds a session until it is told to end."""

    def __init__(self, writers: Writers, session_id: str = "upl_a", *, lets_go: bool = True) -> None:
        self.entered, self.ends = asyncio.Event(), asyncio.Event()
        self.kept = False
        self.running = asyncio.create_task(self._run(writers, session_id, lets_go=lets_go))

    async def _run(self, writers: Writers, session_id: str, *, lets_go: bool) -> None:
        async with writers.hold(session_id, lets_go=lets_go):
            self.entered.set()
            try:
                await self.ends.wait()
            finally:
                # What came is kept before the next one may begin.
                await asyncio.sleep(0)
                self.kept = True


async def started(writers: Writers, *, lets_go: bool = True) -> Holder:
    holder = Holder(writers, lets_go=lets_go)
    await holder.entered.wait()
    return holder


def code_of(error: BaseException | None) -> str:
    assert isinstance(error, ServiceError)
    return str(error.code)


def test_a_newcomer_takes_over_after_the_holder_kept_what_came(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        dead = await started(writers)
        async with writers.hold("upl_a"):
            assert dead.kept
        await asyncio.wait([dead.running])
        assert code_of(dead.running.exception()) == "request_in_progress"
        assert not writers.is_held("upl_a")

    loop.run(work())


def test_of_many_newcomers_the_last_one_holds(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        holders = [Holder(writers) for _ in range(20)]
        await holders[-1].entered.wait()
        await asyncio.wait([holder.running for holder in holders[:-1]])
        assert not holders[-1].running.done()
        holders[-1].ends.set()
        await holders[-1].running
        codes = {code_of(holder.running.exception()) for holder in holders[:-1]}
        assert codes == {"request_in_progress"}
        assert not writers.is_held("upl_a")

    loop.run(work())


def test_one_that_must_not_be_interrupted_is_waited_for(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        finalizing = await started(writers, lets_go=False)
        waiting = Holder(writers)
        await asyncio.sleep(0)
        finalizing.ends.set()
        await waiting.entered.wait()
        assert finalizing.running.exception() is None
        waiting.ends.set()
        await waiting.running

    loop.run(work())


def test_a_newcomer_waits_only_so_long(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        finalizing = await started(writers, lets_go=False)
        began = time.monotonic()
        with pytest.raises(ServiceError) as refused:
            async with writers.hold("upl_a"):
                pass
        assert TAKEOVER_S <= time.monotonic() - began < TAKEOVER_S + 1
        assert (refused.value.code, refused.value.details) == ("request_in_progress", {"retry_after_seconds": 1})
        finalizing.ends.set()
        await finalizing.running

    loop.run(work())


def test_sessions_do_not_hinder_each_other(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        async with writers.hold("upl_a"), writers.hold("upl_b"):
            assert writers.is_held("upl_a")
            assert writers.is_held("upl_b")
            assert not writers.is_held("upl_c")

    loop.run(work())


def test_a_cancelled_holder_is_cancelled_and_lets_go(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        holder = await started(writers)
        holder.running.cancel()
        await asyncio.wait([holder.running])
        assert holder.running.cancelled()
        assert not writers.is_held("upl_a")

    loop.run(work())


def test_a_cancelled_newcomer_leaves_the_session_to_its_holder(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        finalizing = await started(writers, lets_go=False)
        waiting = Holder(writers)
        await asyncio.sleep(0)
        waiting.running.cancel()
        await asyncio.wait([waiting.running])
        assert writers.is_held("upl_a")
        finalizing.ends.set()
        await finalizing.running
        assert not writers.is_held("upl_a")

    loop.run(work())


def test_a_time_out_of_the_work_itself_stays_one(loop: Loop) -> None:
    async def work() -> None:
        writers = Writers()
        with pytest.raises(TimeoutError):
            async with writers.hold("upl_a"):
                raise TimeoutError("of the disk")
        assert not writers.is_held("upl_a")

    loop.run(work())
