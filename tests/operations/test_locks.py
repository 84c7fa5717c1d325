"""Tests the locks of one process, which are held in memory."""

import pytest

from svc_daemon.process import locks as rules
from svc_daemon.process.locks import LocalLocks
from tests.acceptance.installations import PATIENCE_S
from tests.operations.locks_suite import Holder, LocksContract, Pair, free

pytestmark = pytest.mark.anyio


class TestLocalLocks(LocksContract):
    @pytest.fixture
    def pair(self) -> Pair:
        locks = LocalLocks()
        return locks, locks


async def test_of_many_takeovers_in_one_process_the_last_one_gets_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "TAKEOVER_S", PATIENCE_S)
    locks = LocalLocks()
    *others, last = [Holder(locks) for _ in range(8)]
    await last.entered.wait()
    assert {await holder.code() for holder in others} == {"request_in_progress"}
    assert not last.running.done()
    await last.end()
    assert await free(locks, "upl_a") == ["upl_a"]
