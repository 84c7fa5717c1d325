"""Locks in the memory of a process."""

import pytest

from svc_daemon.process.locks import LocalLocks
from tests.operations.locks_suite import Holder, LocksContract, Pair, free

pytestmark = pytest.mark.anyio


class TestLocalLocks(LocksContract):
    @pytest.fixture
    def pair(self) -> Pair:
        locks = LocalLocks()
        return locks, locks


async def test_of_many_newcomers_the_last_one_holds() -> None:
    locks = LocalLocks()
    *others, last = [Holder(locks) for _ in range(20)]
    await last.entered.wait()
    assert {await holder.code() for holder in others} == {"request_in_progress"}
    assert not last.running.done()
    await last.end()
    assert await free(locks, "upl_a") == ["upl_a"]
