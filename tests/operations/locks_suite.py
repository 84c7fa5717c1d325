"""What holds for locks of every kind, for two requests of one node and for those of two nodes."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.process import locks as rules
from svc_daemon.process.locks import TAKEOVER_S, Locks
from tests.acceptance.installations import PATIENCE_S

#: The locks as two requests see them.
Pair = tuple[Locks, Locks]


class Holder:
    """A request that holds a session: it works, then receives what its client has sent, then waits for the rest."""

    def __init__(self, locks: Locks, *, works: bool = False) -> None:
        self.entered, self.worked, self.ends = asyncio.Event(), asyncio.Event(), asyncio.Event()
        if not works:
            self.worked.set()
        #: How much came, once it is kept.
        self.kept = 0
        self.running = asyncio.create_task(self._run(locks))

    async def _run(self, locks: Locks) -> None:
        came = 0
        async with locks.take_over("upl_a") as hold:
            self.entered.set()
            await self.worked.wait()
            try:
                async for size in hold.arriving(self._body()):
                    came += size
            finally:
                # What came is kept before the next one may begin.
                await asyncio.sleep(0)
                self.kept = came

    async def _body(self) -> AsyncIterator[int]:
        for _ in range(3):
            await asyncio.sleep(0)
            yield 1
        await self.ends.wait()

    async def end(self) -> None:
        self.ends.set()
        self.worked.set()
        await self.running

    async def code(self) -> str:
        """That of the error which it ended with."""
        await asyncio.wait([self.running], timeout=PATIENCE_S)
        error = self.running.exception()
        assert isinstance(error, ServiceError)
        return str(error.code)


async def started(locks: Locks, *, works: bool = False) -> Holder:
    holder = Holder(locks, works=works)
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
        for works in (False, True):
            dead = await started(one, works=works)
            waiting = Holder(other)
            if works:
                # It is asked to end while it works, and receives what came all the same.
                await asyncio.sleep(0.1)
                dead.worked.set()
            await waiting.entered.wait()
            assert (dead.kept, await dead.code()) == (3, "request_in_progress"), works
            await waiting.end()
        assert await free(one, "upl_a") == ["upl_a"]

    async def test_of_many_newcomers_one_holds(self, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rules, "TAKEOVER_S", PATIENCE_S)
        holders = [Holder(pair[number % 2]) for number in range(8)]
        waiting = {holder.running for holder in holders}
        while len(waiting) > 1:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (last,) = [holder for holder in holders if not holder.running.done()]
        await last.entered.wait()
        assert {await holder.code() for holder in holders if holder is not last} == {"request_in_progress"}
        await last.end()
        assert await free(pair[0], "upl_a") == ["upl_a"]

    async def test_one_that_only_works_is_waited_for(self, pair: Pair) -> None:
        one, other = pair
        finalizing = await started(one, works=True)
        waiting = Holder(other)
        await asyncio.sleep(0.1)
        await finalizing.end()
        await waiting.entered.wait()
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
        async with one.take_over("upl_b"):
            with pytest.raises(ServiceError):
                async with other.take_over("upl_a", "upl_b"):
                    pass
            assert await free(one, "upl_a") == ["upl_a"]

    async def test_a_cancelled_newcomer_leaves_the_lock_to_its_holder_and_a_cancelled_holder_to_nobody(
        self, pair: Pair
    ) -> None:
        one, other = pair
        for works in (True, False):
            holder = await started(one, works=works)
            if works:
                waiting = Holder(other)
                await asyncio.sleep(0.05)
                waiting.running.cancel()
                await asyncio.wait([waiting.running])
                assert await free(other, "upl_a") == []
            holder.running.cancel()
            await asyncio.wait([holder.running])
            assert (holder.running.cancelled(), await free(other, "upl_a")) == (True, ["upl_a"]), works

    async def test_a_time_out_of_the_work_itself_stays_one(self, pair: Pair) -> None:
        one, other = pair
        with pytest.raises(TimeoutError):
            async with one.take_over("upl_a"):
                raise TimeoutError("of the disk")
        assert await free(other, "upl_a") == ["upl_a"]
