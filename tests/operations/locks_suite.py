"""What holds for locks of every kind, for two requests of one node and for those of two nodes."""

import asyncio
import time

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.process.locks import TAKEOVER_S, Locks
from tests.acceptance.installations import PATIENCE_S

#: The locks as two requests see them.
Pair = tuple[Locks, Locks]


class Holder:
    """A request that holds a session until it is to end."""

    def __init__(self, locks: Locks, *, lets_go: bool = True) -> None:
        self.entered, self.ends = asyncio.Event(), asyncio.Event()
        self.kept = False
        self.running = asyncio.create_task(self._run(locks, lets_go=lets_go))

    async def _run(self, locks: Locks, *, lets_go: bool) -> None:
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
        await asyncio.wait([self.running], timeout=PATIENCE_S)
        error = self.running.exception()
        assert isinstance(error, ServiceError)
        return str(error.code)


async def started(locks: Locks, *, lets_go: bool = True) -> Holder:
    holder = Holder(locks, lets_go=lets_go)
    await holder.entered.wait()
    return holder


async def free(locks: Locks, *names: str) -> list[str]:
    """Those of the locks that are free."""
    async with locks.hold_free(*names) as held:
        return list(held)


@pytest.mark.anyio
class LocksContract:
    """Subclasses have a fixture `pair`."""

    async def test_what_another_has_is_not_free_and_the_rest_is_held(self, pair: Pair) -> None:
        one, other = pair
        async with one.hold_free("key_a", "key_b") as held:
            assert (held, await free(other, "key_b", "key_c")) == (["key_a", "key_b"], ["key_c"])
            async with other.hold_free("key_c"):
                assert await free(one, "key_c") == []
        assert await free(other, "key_a", "key_b", "key_c") == ["key_a", "key_b", "key_c"]

    async def test_a_newcomer_takes_over_after_the_holder_kept_what_came(self, pair: Pair) -> None:
        one, other = pair
        dead = await started(one)
        async with other.take_over("upl_a"):
            assert dead.kept
        assert (await dead.code(), await free(one, "upl_a")) == ("request_in_progress", ["upl_a"])

    async def test_of_many_newcomers_one_holds(self, pair: Pair) -> None:
        holders = [Holder(pair[number % 2]) for number in range(20)]
        waiting = {holder.running for holder in holders}
        while len(waiting) > 1:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (last,) = [holder for holder in holders if not holder.running.done()]
        await last.entered.wait()
        assert {await holder.code() for holder in holders if holder is not last} == {"request_in_progress"}
        await last.end()
        assert await free(pair[0], "upl_a") == ["upl_a"]

    async def test_one_that_must_not_be_interrupted_is_waited_for(self, pair: Pair) -> None:
        one, other = pair
        finalizing = await started(one, lets_go=False)
        waiting = Holder(other)
        await asyncio.sleep(0.1)
        finalizing.ends.set()
        await waiting.entered.wait()
        assert finalizing.running.exception() is None
        await waiting.end()

    async def test_a_newcomer_waits_only_so_long(self, pair: Pair) -> None:
        one, other = pair
        async with one.hold_free("upl_a"):
            began = time.monotonic()
            with pytest.raises(ServiceError) as refused:
                async with other.take_over("upl_a"):
                    pass
            assert time.monotonic() - began >= TAKEOVER_S
            assert (refused.value.code, refused.value.details) == ("request_in_progress", {"retry_after_seconds": 1})

    async def test_several_are_taken_together_or_not_at_all(self, pair: Pair) -> None:
        one, other = pair
        async with one.take_over("upl_a", "upl_b"), other.take_over("upl_c"):
            assert await free(other, "upl_a", "upl_b", "upl_c", "upl_d") == ["upl_d"]
        async with one.take_over("upl_b", lets_go=False):
            with pytest.raises(ServiceError):
                async with other.take_over("upl_a", "upl_b"):
                    pass
            assert await free(one, "upl_a") == ["upl_a"]

    async def test_a_cancelled_newcomer_leaves_the_lock_to_its_holder_and_a_cancelled_holder_to_nobody(
        self, pair: Pair
    ) -> None:
        one, other = pair
        for lets_go in (False, True):
            holder = await started(one, lets_go=lets_go)
            if not lets_go:
                waiting = Holder(other)
                await asyncio.sleep(0.05)
                waiting.running.cancel()
                await asyncio.wait([waiting.running])
                assert await free(other, "upl_a") == []
            holder.running.cancel()
            await asyncio.wait([holder.running])
            assert (holder.running.cancelled(), await free(other, "upl_a")) == (True, ["upl_a"]), lets_go

    async def test_a_time_out_of_the_work_itself_stays_one(self, pair: Pair) -> None:
        one, other = pair
        with pytest.raises(TimeoutError):
            async with one.take_over("upl_a"):
                raise TimeoutError("of the disk")
        assert await free(other, "upl_a") == ["upl_a"]
