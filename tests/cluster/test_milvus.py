"""The search provider on Milvus fulfils the contract of providers."""

import secrets
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from svc_daemon.cluster.milvus import editions
from svc_daemon.cluster.milvus.provider import MilvusProvider
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.cluster.milvus.writing import Stamps
from svc_daemon.provider.contract import SearchProvider
from tests.cluster.milvus import RunningMilvus
from tests.provider.contract_suite import ProviderContract

STAMPS = Stamps(time.time_ns, lambda: secrets.randbits(32))


def open_server(milvus: RunningMilvus) -> MilvusServer:
    return MilvusServer(milvus.url, partitions=2)


@contextmanager
def emptied_server(milvus: RunningMilvus) -> Iterator[MilvusServer]:
    """Yield a server without teams; all tests share its collections, which take seconds to create."""
    with closing(open_server(milvus)) as server:
        for team_id in editions.list_teams(server):
            editions.remove_team(server, team_id)
        yield server


class TestMilvus(ProviderContract):
    @pytest.fixture(autouse=True)
    def _milvus(self, milvus: RunningMilvus) -> None:
        self.milvus = milvus
        with emptied_server(milvus):
            pass

    def open(self, _: Path) -> SearchProvider:
        server = open_server(self.milvus)
        return MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)
