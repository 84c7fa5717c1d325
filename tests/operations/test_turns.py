"""Tests whose turn it is: uploads before indexing, and one reader of the event log after the other."""

import asyncio
import threading
import time
from functools import partial
from itertools import pairwise

import pytest

from svc_daemon.process.event_followers import REST_TIMES, Followers
from svc_daemon.process.indexing_scheduler import UPLOADS_TURN_S, UploadPriority
from tests.acceptance.installations import PATIENCE_S

pytestmark = pytest.mark.anyio


async def test_indexing_waits_until_no_upload_is_running() -> None:
    upload_priority = UploadPriority()
    seen: list[str] = []

    async def index() -> None:
        await upload_priority.let_uploads_go_first()
        seen.append("indexing")

    await asyncio.wait_for(index(), UPLOADS_TURN_S)
    with upload_priority.uploading():
        with upload_priority.uploading():
            indexing = asyncio.create_task(index())
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        seen.append("uploads")
    await indexing
    assert seen == ["indexing", "uploads", "indexing"]


async def test_indexing_does_not_wait_forever_for_an_endless_upload() -> None:
    upload_priority = UploadPriority()
    with upload_priority.uploading():
        await asyncio.wait_for(upload_priority.let_uploads_go_first(), PATIENCE_S)


#: Processor time of a read in these tests, in seconds.
READ_S = 0.02


def read() -> tuple[float, float]:
    """Use a processor for READ_S; when this began and ended."""
    began_s, until_s = time.monotonic(), time.thread_time() + READ_S
    while time.thread_time() < until_s:
        pass
    return began_s, time.monotonic()


@pytest.mark.rule("log.turns")
async def test_only_one_request_reads_at_a_time() -> None:
    followers, begun, may_end = Followers(), list[int](), threading.Event()

    def hold(number: int) -> None:
        begun.append(number)
        may_end.wait(PATIENCE_S)

    reads = [asyncio.create_task(followers.read(partial(hold, number))) for number in range(3)]
    async with asyncio.timeout(PATIENCE_S):
        while not begun:  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0)
    assert begun == [0]
    may_end.set()
    await asyncio.gather(*reads)
    assert begun == [0, 1, 2]


@pytest.mark.rule("log.turns")
async def test_a_read_begins_only_after_a_rest_in_proportion_to_the_last_one() -> None:
    followers = Followers()
    spans = await asyncio.gather(*(followers.read(read) for _ in range(3)))
    for (_, ended_s), (began_s, _) in pairwise(spans):
        assert began_s - ended_s >= REST_TIMES * READ_S


async def test_a_client_that_leaves_while_it_waits_keeps_nobody_from_reading() -> None:
    followers = Followers()
    first, waiting = (asyncio.create_task(followers.read(read)) for _ in range(2))
    await first
    waiting.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await followers.read(read)
    assert waiting.cancelled()
