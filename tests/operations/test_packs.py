"""Tests that other requests interrupt a pack that is being sent, and that its received bytes are kept."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.operations.packs import authorize_pack, put_pack
from svc_daemon.operations.uploads import ChunkBody
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.sessions import finalize, finalize_batch, open_pack, outcomes, part_kept, path_of, put, stored_bytes

FILES = [(f"f{number}", b"Crane %d.\n" % number * 20) for number in range(12)]
WHOLE = b"".join(data for _, data in FILES)
#: In the middle of the fourth file.
CUT = sum(len(data) for _, data in FILES[:3]) + 70


def begin(daemon: Daemon, batch: dict[str, Any]) -> "asyncio.Task[object]":
    """Start a PUT whose client sends the first bytes of the pack and then hangs."""

    async def dead(sent: asyncio.Event) -> AsyncIterator[bytes]:
        yield WHOLE[:CUT]
        sent.set()
        await asyncio.Event().wait()

    async def work() -> "asyncio.Task[object]":
        sent, batch_id = asyncio.Event(), batch["batch_id"]
        members = authorize_pack(daemon.context, batch_id, path_of(batch).rpartition("/")[2])
        sending = ChunkBody(None, len(WHOLE), dead(sent))
        task: asyncio.Task[object] = asyncio.create_task(put_pack(daemon.context, batch_id, members, sending))
        await sent.wait()
        return task

    return daemon.loop.run(work())


@pytest.mark.rule("pack.single")
def test_a_request_for_an_item_of_a_pack_interrupts_the_pack_which_can_be_resumed(daemon: Daemon) -> None:
    newcomers: dict[str, Callable[[dict[str, Any]], object]] = {
        "the pack again": lambda batch: put(daemon, batch, b"", "bytes */*"),
        "an item that it has begun": lambda batch: put(daemon, batch["by_id"]["f3"], FILES[3][1]),
        "an item that it has not reached": lambda batch: put(daemon, batch["by_id"]["f9"], FILES[9][1]),
        "a cancel": lambda batch: daemon.delete(f"/v1/buckets/inbox/uploads/{batch['by_id']['f11']['session_id']}"),
    }
    for name, come in newcomers.items():
        batch = open_pack(daemon, FILES)
        task = begin(daemon, batch)
        come(batch)
        error = task.exception() if task.done() else None
        assert isinstance(error, ServiceError), name
        assert (error.code, error.rule.retryable) == ("request_in_progress", True), name
        kept = CUT if name != "an item that it has begun" else sum(len(data) for _, data in FILES[:4])
        assert part_kept(put(daemon, batch, b"", "bytes */*")) == f"bytes=0-{kept - 1}", name
        body_of(put(daemon, batch, WHOLE[kept:], f"bytes {kept}-{len(WHOLE) - 1}/*"))
        ended = finalize_batch(daemon, batch)
        assert outcomes(ended) == dict.fromkeys(dict(FILES), "finalized") | (
            {"f11": "failed"} if name == "a cancel" else {}
        )
        for item in ended["finalized"]:
            assert stored_bytes(daemon, item["knowledge_id"]) == dict(FILES)[item["client_file_id"]], name


def test_a_finalize_while_a_pack_is_sent_finalizes_the_items_that_have_arrived(daemon: Daemon) -> None:
    batch = open_pack(daemon, FILES)
    body_of(put(daemon, batch["by_id"]["f5"], FILES[5][1]))
    task = begin(daemon, batch)
    first = outcomes(finalize_batch(daemon, batch))
    assert [name for name, place in first.items() if place == "finalized"] == ["f0", "f1", "f2", "f5"]
    assert isinstance(task.exception(), ServiceError)
    assert part_kept(put(daemon, batch, b"", "bytes */*")) == f"bytes=0-{CUT - 1}"
    body_of(finalize(daemon, batch["by_id"]["f0"]))
    body_of(put(daemon, batch, WHOLE))
    assert set(outcomes(finalize_batch(daemon, batch)).values()) == {"finalized", "replayed"}


def test_abandoning_a_batch_while_its_pack_is_sent_keeps_only_the_items_that_have_arrived(daemon: Daemon) -> None:
    batch = open_pack(daemon, FILES)
    task = begin(daemon, batch)
    ended = outcomes(finalize_batch(daemon, batch, mode="abandon_pending"))
    # The pack is interrupted first, so the items that it has completed count.
    assert isinstance(task.exception(), ServiceError)
    assert ended == dict.fromkeys(dict(FILES), "failed") | dict.fromkeys(["f0", "f1", "f2"], "finalized")
    assert daemon.part_ids() == []
