"""The byte stores on a real S3 store fulfil their contract, also with several nodes and during outages."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from svc_daemon.cluster.s3.stores import ObjectStores, open_objects
from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.errors import StoreUnavailable
from svc_daemon.store.files.staging import SPILL_BYTES
from tests.cluster.object_store import BUCKET, SECRET_KEY, ObjectStore
from tests.store.byte_suite import ByteStoreContract, Node, OpenNode, content, hash_of, new_blob, new_session

pytestmark = pytest.mark.anyio

OpenStores = Callable[[], ObjectStores]


@pytest.fixture
def open_stores(store: ObjectStore, tmp_path: Path) -> Iterator[OpenStores]:
    """A function that opens the same byte stores as another node."""
    prefix = uuid4().hex
    with ThreadPoolExecutor(2) as executor:
        yield lambda: open_objects(f"s3://{BUCKET}/{prefix}", store.environ, tmp_path, executor)


@pytest.fixture
def open_node(open_stores: OpenStores) -> OpenNode:
    def make() -> Node:
        stores = open_stores()
        return Node(stores.blobs, stores.parts)

    return make


class TestObjects(ByteStoreContract):
    """The contract of byte stores, on S3."""


async def test_stored_blob_leaves_no_file_on_the_node(open_node: OpenNode, tmp_path: Path) -> None:
    def left() -> list[Path]:
        return list(tmp_path.iterdir())

    node = open_node()
    name = await node.keep(content(SPILL_BYTES + 1))
    async with node.blobs.blob(name).open_file():
        assert left() == []


async def test_overlapping_bytes_received_by_two_nodes_count_once(open_node: OpenNode) -> None:
    """A client sends a part again while another node is still receiving it."""
    name, data = new_session(), content(2 * SPILL_BYTES)
    nodes = [open_node(), open_node()]
    writers = []
    for node in nodes:
        assert await node.parts.settle(name) == [0]
        writers.append(node.parts.writer([PackItem(name, 0, len(data), 0)], 0, len(data)))
    for writer, end in zip(writers, (SPILL_BYTES, 1000), strict=True):
        with closing(writer):
            await writer.append(data[:end])
            await writer.sync()
    assert await nodes[1].parts.measure(name) == [SPILL_BYTES]
    await nodes[1].send({name: len(data)}, data[SPILL_BYTES:])
    for node in nodes:
        assert await node.hash(name) == hash_of(data)
    blob = new_blob()
    await nodes[0].parts.link({name: blob}, {name: hash_of(data)})
    assert await nodes[1].read(blob) == data


async def test_link_with_a_wrong_hash_fails_and_stores_no_blob(open_node: OpenNode) -> None:
    node, name, blob = open_node(), new_session(), new_blob()
    await node.send({name: 10}, content(10))
    with pytest.raises(Exception, match="changed"):
        await node.parts.link({name: blob}, {name: hash_of(b"other")})
    assert await node.blobs.blob(blob).find() is None


async def test_list_page_returns_the_blob_or_session_of_each_object(open_stores: OpenStores) -> None:
    stores, session = open_stores(), new_session()
    node = Node(stores.blobs, stores.parts)
    name = await node.keep(b"x")
    await node.send({session: 4}, b"some")
    page = await stores.list_page("")
    assert [(each.blob, each.session_id) for each in page] == [(name, None), (None, session)]
    assert [each.key for each in await stores.list_page(page[0].key)] == [page[1].key]
    assert await stores.list_page(page[1].key) == []
    await stores.delete([each.key for each in page])
    assert await stores.list_page("") == []


async def test_unavailable_store_raises_and_logs_no_secret_and_loses_no_bytes(
    store: ObjectStore, open_stores: OpenStores, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stores, session = open_stores(), new_session()
    node = Node(stores.blobs, stores.parts)
    name, data = await node.keep(b"kept"), content(100)
    await node.send({session: 100}, data[:60])
    staged = node.blobs.stage()
    await staged.append(b"new")
    with closing(node.parts.writer([PackItem(session, 0, 100, 60)], 60, 100)) as writer:
        await writer.append(data[60:])
        store.proxy.stop()
        refused: list[Coroutine[Any, Any, Any]] = [staged.keep(new_blob()), node.parts.measure(session), writer.sync()]
        refused += [node.parts.link({session: new_blob()}, {}), node.blobs.blob(name).read(0, 9), node.read(name)]
        results = await asyncio.gather(*refused, return_exceptions=True)
        assert [type(each) for each in results] == [StoreUnavailable] * len(refused)
        assert list(await node.blobs.delete([name])) == [name]
        await node.parts.delete(session)
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(node.blobs.try_room, 10)
        await writer.sync()
    store.start()
    assert (await node.read(name), await node.parts.measure(session)) == (b"kept", [60])
    await node.send({session: 100}, data[60:])
    assert await node.hash(session) == hash_of(data)
    text = caplog.text + "".join(map(repr, [*results, stores]))
    assert "object store does not answer" in text
    assert not [word for word in (SECRET_KEY, store.endpoint, BUCKET + "/") if word in text]


async def test_missing_key_is_named_as_the_cause_and_a_profile_as_without_effect(
    store: ObjectStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {name: value for name, value in store.environ.items() if "KEY" not in name}
    with ThreadPoolExecutor(1) as executor:
        stores = open_objects(f"s3://{BUCKET}/x", {**environ, "AWS_PROFILE": "work"}, tmp_path, executor)
        with pytest.raises(StoreUnavailable, match="there is no key for it, neither in AWS_ACCESS_KEY_ID nor from"):
            await stores.parts.measure(new_session())
    assert "AWS_PROFILE has no effect" in caplog.text


async def test_wrong_secret_key_is_refused_and_not_logged(
    store: ObjectStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {**store.environ, "AWS_SECRET_ACCESS_KEY": "something-else"}
    with ThreadPoolExecutor(1) as executor:
        stores = open_objects(f"s3://{BUCKET}/x", environ, tmp_path, executor)
        with pytest.raises(StoreUnavailable) as refused:
            await stores.parts.measure(new_session())
    assert "something-else" not in caplog.text + str(refused.value)
    assert "status 403" in str(refused.value)
