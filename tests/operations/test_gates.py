"""Uploads go first, and indexing goes on."""

import asyncio
import time

from svc_daemon.process.gates import UPLOADS_TURN_S, Gates
from svc_daemon.settings import Limits


def test_without_uploads_nobody_waits() -> None:
    gates = Gates(Limits(), time.monotonic)

    async def work() -> float:
        began_s = time.monotonic()
        await gates.let_uploads_go_first()
        return time.monotonic() - began_s

    assert asyncio.run(work()) < UPLOADS_TURN_S


def test_the_end_of_the_last_upload_lets_indexing_go_on() -> None:
    gates = Gates(Limits(), time.monotonic)

    async def work() -> list[str]:
        seen: list[str] = []

        async def index() -> None:
            await gates.let_uploads_go_first()
            seen.append("indexing")

        with gates.uploading():
            with gates.uploading():
                indexing = asyncio.create_task(index())
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            seen.append("uploads")
        await indexing
        return seen

    assert asyncio.run(work()) == ["uploads", "indexing"]


def test_uploads_without_end_do_not_stop_indexing() -> None:
    gates = Gates(Limits(), time.monotonic)

    async def work() -> None:
        with gates.uploading():
            async with asyncio.timeout(UPLOADS_TURN_S * 40):
                await gates.let_uploads_go_first()

    asyncio.run(work())
    assert gates.used_bytes("team_any") == 0
