"""Tests that indexing waits for running uploads, but not forever."""

import asyncio

import pytest

from svc_daemon.process.upload_gates import UPLOADS_TURN_S, Gates
from tests.acceptance.installations import PATIENCE_S

pytestmark = pytest.mark.anyio


async def test_indexing_waits_until_no_upload_is_running() -> None:
    gates = Gates()
    seen: list[str] = []

    async def index() -> None:
        await gates.let_uploads_go_first()
        seen.append("indexing")

    await asyncio.wait_for(index(), UPLOADS_TURN_S)
    with gates.uploading():
        with gates.uploading():
            indexing = asyncio.create_task(index())
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        seen.append("uploads")
    await indexing
    assert seen == ["indexing", "uploads", "indexing"]


async def test_indexing_does_not_wait_forever_for_an_endless_upload() -> None:
    gates = Gates()
    with gates.uploading():
        await asyncio.wait_for(gates.let_uploads_go_first(), PATIENCE_S)
