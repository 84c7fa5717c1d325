"""Tests the time budget of finalizing a batch, and abandoning a file while it is being sent."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count

import pytest

from svc_daemon.core.times import Clock
from svc_daemon.operations import batches
from svc_daemon.operations.authorization import authenticate
from svc_daemon.operations.uploads import ChunkBody, put_bytes
from svc_daemon.store.batches import get_batch
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.sessions import finalize_batch, open_batch, outcomes, put

#: The files have 10 bytes each.
FILES = [(f"f{number:02}", b"Crane %02d.\n" % number) for number in range(60)]
STEP = 25


@pytest.mark.rule("finalize.pending")
def test_files_beyond_the_time_budget_of_a_finalize_are_pending(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "STEP_BYTES", STEP * 10)
    lot = open_batch(daemon, FILES)
    for name, data in FILES[1:]:
        body_of(put(daemon, lot["by_id"][name], data))
    readings = count(0, int(daemon.limits.finalize_seconds * 0.7))
    slow = Clock(now=daemon.context.clock.now, monotonic=lambda: next(readings))
    context = replace(daemon.context, clock=slow)
    key = authenticate(context, f"Bearer {daemon.key}")
    batch = daemon.read(lambda connection: get_batch(connection, daemon.team_id, lot["batch_id"]))
    report = daemon.loop.run(batches.finalize_batch(context, key, batch, abandon=False))
    assert (report.status, len(report.outcomes)) == ("partial", STEP)
    reasons = {upload.client_file_id: reason for upload, reason in report.pending}
    assert reasons.pop("f00") == "blob_not_uploaded"
    left = len(FILES) - 1 - STEP
    assert list(reasons.values()) == ["time_budget_exhausted"] * left
    counted = {"replayed": STEP, "finalized": left, "pending": 1}
    assert Counter(outcomes(finalize_batch(daemon, lot)).values()) == counted
    assert daemon.count("sources") == len(FILES) - 1


def test_abandoning_a_batch_stops_a_running_put(daemon: Daemon) -> None:
    batch = open_batch(daemon, FILES[:2])
    session_id, data = batch["by_id"]["f00"]["session_id"], FILES[0][1]

    async def dead(sent: asyncio.Event) -> AsyncIterator[bytes]:
        yield data[:3]
        sent.set()
        await asyncio.Event().wait()

    async def begin() -> "asyncio.Task[object]":
        sent = asyncio.Event()
        body = ChunkBody(None, len(data), dead(sent))
        task: asyncio.Task[object] = asyncio.create_task(put_bytes(daemon.context, session_id, body))
        await sent.wait()
        return task

    task = daemon.loop.run(begin())
    report = finalize_batch(daemon, batch, mode="abandon_pending")
    assert (report["status"], outcomes(report)) == ("failed", {"f00": "failed", "f01": "failed"})
    assert (task.done(), daemon.part_ids()) == (True, [])
