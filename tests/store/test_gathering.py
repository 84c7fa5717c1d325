"""Several calls at a time, of which some may not have begun when all are cancelled."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any

from svc_daemon.store.files.contract import gather


def test_calls_that_have_not_begun_when_they_are_cancelled_are_closed() -> None:
    begun: list[int] = []

    async def call(number: int, are_all: asyncio.Event) -> None:
        begun.append(number)
        if len(begun) == 2:
            are_all.set()
        await asyncio.sleep(60)

    async def cancel_soon() -> list[Coroutine[Any, Any, None]]:
        are_all = asyncio.Event()
        calls = [call(number, are_all) for number in range(5)]
        task = asyncio.create_task(gather(calls, at_once=2))
        await are_all.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return calls

    calls = asyncio.run(cancel_soon())
    assert begun == [0, 1]
    assert {getcoroutinestate(each) for each in calls} == {CORO_CLOSED}


def test_the_results_are_in_order_and_at_most_so_many_run_at_a_time() -> None:
    running, most = 0, 0

    async def call(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return number

    assert asyncio.run(gather((call(number) for number in range(7)), at_once=3)) == [*range(7)]
    assert most == 3
