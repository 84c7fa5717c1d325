"""The tests that every implementation of locks must pass, for two requests of one node and of two nodes."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.process import locks as rules
from svc_daemon.process.locks import Locks
from tests.acceptance.installations import PATIENCE_S

#: The locks that two requests use.
Pair = tuple[Locks, Locks]


class Holder:
    """A request that locks a session: it works, then receives what its client has sent, then waits for the rest."""

    def __init__(self, locks: Locks, *, works: bool = False) -> None:
        self.entered, self.worked, self.ends = asyncio.Event(), asyncio.Event(), asyncio.Event()
        if not works:
            self.worked.set()
        #: How many bytes were received, set once they are stored.
        self.kept = 0
        self.running = asyncio.create_task(self._run(locks))

    async def _run(self, locks: Locks) -> None:
        received = 0
        async with locks.take_over("upl_a") as hold:
            self.entered.set()
            await self.worked.wait()
            try:
                async for size in hold.arriving(self._body()):
                    received += size
            finally:
                # Received bytes are stored before the next request may begin.
                await asyncio.sleep(0)
                self.kept = received

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
        """Wait until the request has failed, and return its error code."""
        await asyncio.wait([self.running], timeout=PATIENCE_S)
        error = self.running.exception()
        assert isinstance(error, ServiceError)
        return str(error.code)


async def started(locks: Locks, *, works: bool = False) -> Holder:
    holder = Holder(locks, works=works)
    await holder.entered.wait()
    return holder


async def free(locks: Locks, *names: str) -> list[str]:
    """Return those of the locks that are free."""
    async with locks.hold_free(*names) as held:
        return list(held)


@pytest.mark.anyio
class LocksContract:
    """The tests; a subclass defines the fixture `pair`."""

    async def test_hold_free_takes_only_the_locks_that_no_other_request_holds(self, pair: Pair) -> None:
        one, other = pair
        async with one.hold_free("key_a", "key_b") as held:
            assert (held, await free(other, "key_b", "key_c")) == (["key_a", "key_b"], ["key_c"])
            async with other.hold_free("key_c"):
                assert await free(one, "key_c") == []
        assert await free(other, "key_a", "key_b", "key_c") == ["key_a", "key_b", "key_c"]

    @pytest.mark.rule("upload.cut")
    @pytest.mark.parametrize("works", [False, True], ids=["receives", "works"])
    async def test_a_takeover_waits_until_the_holder_has_stored_the_received_bytes(
        self, pair: Pair, works: bool
    ) -> None:
        one, other = pair
        dead = await started(one, works=works)
        waiting = Holder(other)
        if works:
            # It is told to stop while it works, and still receives what the client has sent.
            await asyncio.sleep(0.1)
            dead.worked.set()
        await waiting.entered.wait()
        assert (dead.kept, await dead.code()) == (3, "request_in_progress")
        await waiting.end()
        assert await free(one, "upl_a") == ["upl_a"]

    async def test_of_many_concurrent_takeovers_exactly_one_gets_the_lock(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
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

    async def test_a_takeover_waits_for_a_holder_that_is_not_receiving(self, pair: Pair) -> None:
        one, other = pair
        finalizing = await started(one, works=True)
        waiting = Holder(other)
        await asyncio.sleep(0.1)
        await finalizing.end()
        await waiting.entered.wait()
        await waiting.end()

    async def test_a_takeover_times_out_with_request_in_progress(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rules, "TAKEOVER_S", 0.2)
        one, other = pair
        async with one.hold_free("upl_a"):
            began = time.monotonic()
            with pytest.raises(ServiceError) as refused:
                async with other.take_over("upl_a"):
                    pass
            assert time.monotonic() - began >= rules.TAKEOVER_S
            assert (refused.value.code, refused.value.details) == ("request_in_progress", {"retry_after_seconds": 1})

    async def test_several_locks_are_taken_over_together_or_not_at_all(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rules, "TAKEOVER_S", 0.2)
        one, other = pair
        async with one.take_over("upl_a", "upl_b"), other.take_over("upl_c"):
            assert await free(other, "upl_a", "upl_b", "upl_c", "upl_d") == ["upl_d"]
        async with one.take_over("upl_b"):
            with pytest.raises(ServiceError):
                async with other.take_over("upl_a", "upl_b"):
                    pass
            assert await free(one, "upl_a") == ["upl_a"]

    @pytest.mark.parametrize("works", [True, False], ids=["works", "receives"])
    async def test_cancelling_a_waiting_takeover_keeps_the_lock_held_and_cancelling_the_holder_frees_it(
        self, pair: Pair, works: bool
    ) -> None:
        one, other = pair
        holder = await started(one, works=works)
        if works:
            waiting = Holder(other)
            await asyncio.sleep(0.05)
            waiting.running.cancel()
            await asyncio.wait([waiting.running])
            assert await free(other, "upl_a") == []
        holder.running.cancel()
        await asyncio.wait([holder.running])
        assert (holder.running.cancelled(), await free(other, "upl_a")) == (True, ["upl_a"])

    async def test_a_timeout_error_raised_while_holding_the_lock_is_not_converted(self, pair: Pair) -> None:
        one, other = pair
        with pytest.raises(TimeoutError):
            async with one.take_over("upl_a"):
                raise TimeoutError("of the disk")
        assert await free(other, "upl_a") == ["upl_a"]
