"""Run Milvus for the tests, as the server of milvus-lite: one process with several clients."""

import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from svc_daemon.provider.contract import SearchProvider
from tests.cluster.engines import Engine, free_port, listens, running

#: Makes the server accept pymilvus's pings as Milvus does, instead of closing connections with several idle pings.
_PINGS_TAKEN = """
import grpc
plain_server = grpc.server
def server_with_pings(*arguments, options=(), **named):
    return plain_server(*arguments, options=[*options, ("grpc.http2.max_ping_strikes", 0)], **named)
grpc.server = server_with_pings
"""
#: Variables for daemons with a long search timeout, because this Milvus handles one call at a time.
PATIENT = {"SVC_LIMIT_SEARCH_SECONDS": "60"}


@dataclass(frozen=True, slots=True)
class RunningMilvus:
    """A running server and its port."""

    engine: Engine
    port: int

    @property
    def url(self) -> str:
        """The value for SVC_INDEX_URL."""
        return f"http://127.0.0.1:{self.port}"

    def start_again(self) -> None:
        """Start the server again on its files after it was stopped or killed."""
        self.engine.start(lambda: listens(self.port))


class Emptying:
    """Removes all indexes after each test file, because each call reads the rows of all teams."""

    def __init__(self, url: str) -> None:
        self._url = url

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        yield
        from pymilvus import MilvusClient  # noqa: PLC0415 - of an extra

        if nextitem is not None and nextitem.path != item.path:
            with closing(MilvusClient(self._url)) as client:
                for collection in client.list_collections():
                    client.drop_collection(collection)


def keep_indexes_there(url: str) -> None:
    """Make all daemons in the test's process keep their indexes in this Milvus, under different teams."""
    from svc_daemon.cluster.milvus.provider import MilvusProvider  # noqa: PLC0415 - of an extra
    from svc_daemon.cluster.milvus.server import MilvusServer  # noqa: PLC0415 - of an extra
    from tests.provider.failing import FailingProvider  # noqa: PLC0415

    def make(_: Path, *, clock: Callable[[], float] = time.monotonic, **__: object) -> SearchProvider:
        server = MilvusServer(url, partitions=2, clock=clock)
        return MilvusProvider(server, now_ns=time.time_ns, random_bits=lambda: secrets.randbits(32))

    FailingProvider.make_whole = staticmethod(make)


@contextmanager
def running_milvus(folder: Path) -> Iterator[RunningMilvus]:
    """Run a server that keeps its data in this folder."""
    port = free_port()
    code = f"{_PINGS_TAKEN}\nimport sys; from milvus_lite.cmdline import main; sys.exit(main())"
    # One call at a time, because milvus-lite doesn't support concurrent writes.
    options = ("--data-dir", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port), "--max-workers", "1")
    engine = Engine(folder, [sys.executable, "-c", code, "server", *options])
    with running(engine, lambda: listens(port)):
        yield RunningMilvus(engine, port)
