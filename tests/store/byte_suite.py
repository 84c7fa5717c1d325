"""The tests that every implementation of the byte stores must pass.

A subclass defines the fixture `open_node`, which opens the same stored bytes as a new process does. Each test uses only
the node that was opened last, because a data directory has one process at a time.
"""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256

import pytest

from svc_daemon.core import ids
from svc_daemon.core.uploads.packs import place_items
from svc_daemon.store.files.contract import BlobStore, PartStore
from svc_daemon.store.files.staging import HEAD_BYTES, SPILL_BYTES

_IDS = ids.Ids(now=partial(datetime.now, UTC), random=os.urandom)


@dataclass(frozen=True)
class Node:
    """The byte stores of one process."""

    blobs: BlobStore
    parts: PartStore

    async def keep(self, content: bytes) -> str:
        """Store the bytes as a blob, and return its name."""
        name, staged = new_blob(), self.blobs.stage()
        for start in range(0, len(content), 300_000):
            await staged.append(content[start : start + 300_000])
        assert (staged.size_bytes, staged.sha256) == (len(content), sha256(content).hexdigest())
        assert staged.head == content[:HEAD_BYTES]
        await staged.keep(name)
        await staged.discard()
        return name

    async def send(self, sizes: dict[str, int], data: bytes, *, ends: bool = True) -> None:
        """Append one pack to sessions of these sizes, after their received bytes. If `ends` is false, drop the pack."""
        held = await self.parts.settle(*sizes)
        items = place_items((name, size, has) for (name, size), has in zip(sizes.items(), held, strict=True))
        first = next((item.offset_bytes + item.held_bytes for item in items if item.held_bytes < item.size_bytes), 0)
        with closing(self.parts.writer(items, first, first + len(data))) as writer:
            for start in range(0, len(data), 700_000):
                await writer.append(data[start : start + 700_000])
            if not ends:
                await writer.drop()
            await writer.sync()

    async def hash(self, session_id: str) -> str:
        """Return the hash of the session's received bytes."""
        (size_bytes,) = await self.parts.measure(session_id)
        return await self.parts.hash(session_id, size_bytes)

    async def read(self, name: str) -> bytes:
        return b"".join([chunk async for chunk in self.blobs.blob(name).stream()])


OpenNode = Callable[[], Node]


def new_blob() -> str:
    return _IDS.make(ids.SOURCE)


def new_session() -> str:
    return _IDS.make(ids.SESSION)


def content(size_bytes: int) -> bytes:
    return os.urandom(size_bytes)


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


@pytest.mark.anyio
class ByteStoreContract:
    @pytest.fixture
    def node(self, open_node: OpenNode) -> Node:
        return open_node()

    async def test_a_stored_blob_is_read_whole_in_ranges_and_as_a_file(self, node: Node) -> None:
        for size in (1, HEAD_BYTES, HEAD_BYTES + 1, SPILL_BYTES - 1, SPILL_BYTES, SPILL_BYTES + 1, 6 * SPILL_BYTES + 7):
            data = content(size)
            name = await node.keep(data)
            blob, facts = node.blobs.blob(name), await node.blobs.blob(name).find()
            assert (facts and facts.size_bytes, await blob.hash()) == (size, hash_of(data))
            assert await node.read(name) == data
            assert await blob.read(0, size + 10) == data, "a range ends with the bytes"
            assert await blob.read(size // 2, 5) == data[size // 2 :][:5]
            async with blob.open_file() as descriptor:
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    assert file.read() == data

    async def test_reading_a_missing_blob_raises_file_not_found(self, node: Node) -> None:
        blob = node.blobs.blob(new_blob())
        assert await blob.find() is None
        with pytest.raises(FileNotFoundError):
            await blob.read(0, 10)
        with pytest.raises(FileNotFoundError):
            await blob.hash()
        with pytest.raises(FileNotFoundError):
            await anext(blob.stream())
        with pytest.raises(FileNotFoundError):
            async with blob.open_file():
                pass

    async def test_a_damaged_blob_is_moved_away_and_no_longer_found(self, node: Node) -> None:
        name, kept = await node.keep(b"damaged"), await node.keep(b"whole")
        for _ in range(2):
            await node.blobs.move_damaged(name)
        assert (await node.blobs.blob(name).find(), list(node.blobs.list_ids())) == (None, [kept])

    async def test_the_bytes_of_a_session_are_read_in_order(self, node: Node) -> None:
        session_id, data = new_session(), content(SPILL_BYTES + 10)
        for start in range(0, len(data), 400_000):
            await node.send({session_id: len(data)}, data[start : start + 400_000])
        assert b"".join([chunk async for chunk in node.parts.stream(session_id)]) == data

    async def test_staged_bytes_can_be_read_and_discarded(self, node: Node) -> None:
        for size in (0, 10, SPILL_BYTES + 10):
            data, staged = content(size), node.blobs.stage()
            await staged.append(data)
            assert await staged.read(3, 20) == data[3:23]
            for _ in range(2):
                await staged.discard()
        assert list(node.blobs.list_ids()) == []

    async def test_deletions_are_idempotent_and_visible_to_other_nodes(self, open_node: OpenNode) -> None:
        node = open_node()
        names = [await node.keep(b"%d" % number) for number in range(5)]
        assert sorted(node.blobs.list_ids()) == sorted(names)
        for _ in range(2):
            assert await node.blobs.delete([*names[:2], new_blob()]) == {}
            await node.blobs.drop([names[2], new_blob()])
        assert await node.blobs.delete([]) == {}
        node = open_node()
        assert sorted(node.blobs.list_ids()) == sorted(names[3:])
        assert (await node.read(names[3]), await node.blobs.blob(names[0]).find()) == (b"3", None)

    async def test_stored_bytes_are_found_by_source_id(self, node: Node) -> None:
        name = await node.keep(b"first")
        refreshed = name + new_blob().removeprefix(ids.SOURCE)
        staged = node.blobs.stage()
        await staged.append(b"second")
        await staged.keep(refreshed)
        assert await node.blobs.find_stored([name, new_blob()]) == {name}
        assert await node.blobs.delete([name]) == {}
        assert (await node.blobs.find_stored([name]), await node.read(refreshed)) == ({name}, b"second")
        await node.blobs.drop([refreshed])
        assert await node.blobs.find_stored([name]) == set()

    async def test_any_process_can_continue_an_upload_session(self, open_node: OpenNode) -> None:
        name, data = new_session(), content(5 * SPILL_BYTES + 11)
        node, ends = open_node(), (7, 8, SPILL_BYTES, 2 * SPILL_BYTES + 5, len(data))
        assert await node.parts.measure(name) == await node.parts.settle(name) == [0]
        first = 0
        for end in ends:
            node = open_node()
            await node.send({name: len(data)}, data[first:end])
            first = end
            assert await node.parts.measure(name) == await open_node().parts.settle(name) == [end]
            assert await node.hash(name) == await open_node().hash(name) == hash_of(data[:end])
        assert await open_node().parts.head(name) == data[:HEAD_BYTES]

    async def test_a_pack_is_split_among_its_sessions_and_continues_where_it_ended(self, open_node: OpenNode) -> None:
        pieces = {new_session(): content(3 * SPILL_BYTES + 3 if number == 4 else 90 + number) for number in range(20)}
        sizes, whole = {name: len(data) for name, data in pieces.items()}, b"".join(pieces.values())
        await open_node().send(sizes, whole[:150])
        assert await open_node().parts.measure(*pieces) == [90, 60, *[0] * 18]
        node = open_node()
        await node.send(sizes, whole[150:])
        for _ in range(2):
            assert await node.parts.measure(*pieces) == list(sizes.values())
            assert [await node.hash(name) for name in pieces] == [hash_of(data) for data in pieces.values()]
            node = open_node()

    async def test_a_dropped_pack_leaves_the_session_unchanged(self, node: Node) -> None:
        name, data = new_session(), content(2 * SPILL_BYTES)
        await node.send({name: len(data)}, data[:100])
        await node.send({name: len(data)}, content(len(data) - 100), ends=False)
        assert (await node.parts.measure(name), await node.hash(name)) == ([100], hash_of(data[:100]))
        await node.send({name: len(data)}, data[100:])
        assert await node.hash(name) == hash_of(data)

    async def test_linked_bytes_become_blobs_that_outlive_their_sessions(self, open_node: OpenNode) -> None:
        sizes = (1, 100, 2 * SPILL_BYTES + 5)
        pieces = {new_session(): content(size) for size in sizes}
        node = open_node()
        for name, data in pieces.items():
            await node.send({name: len(data)}, data[: len(data) // 2])
            await open_node().send({name: len(data)}, data[len(data) // 2 :])
        sources = {name: new_blob() for name in pieces}
        node, hashes = open_node(), {name: hash_of(data) for name, data in pieces.items()}
        assert await node.parts.link(sources, hashes) == {name: data[:HEAD_BYTES] for name, data in pieces.items()}
        assert await node.parts.measure(*pieces) == list(sizes), "until the commit, the session keeps its bytes"
        await node.parts.delete(*pieces)
        assert {name: await node.read(blob) for name, blob in sources.items()} == pieces
        assert await node.parts.link({}, {}) == {}

    async def test_a_deleted_session_can_be_sent_again_with_other_bytes(self, open_node: OpenNode) -> None:
        name, first, second = new_session(), content(2 * SPILL_BYTES), content(2 * SPILL_BYTES)
        for node in (open_node(), open_node()):
            await node.send({name: len(first)}, first)
            assert await node.hash(name) == hash_of(first)
            for _ in range(2):
                await node.parts.delete(name, new_session())
            assert await node.parts.measure(name) == [0]
            await node.send({name: len(second)}, second[:50])
            await node.send({name: len(second)}, second[50:])
            assert await node.hash(name) == hash_of(second)
            await node.parts.delete(name)
