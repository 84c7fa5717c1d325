"""The provider on Milvus: the contract."""

import secrets
import time
from pathlib import Path

import pytest

from svc_daemon.provider.contract import SearchProvider
from svc_daemon.provider.milvus.provider import MilvusProvider
from svc_daemon.provider.milvus.server import MilvusServer
from svc_daemon.provider.milvus.writing import Stamps
from tests.cluster.milvus import RunningMilvus
from tests.provider.contract_suite import ProviderContract

STAMPS = Stamps(time.time_ns, lambda: secrets.randbits(32))


def open_server(milvus: RunningMilvus) -> MilvusServer:
    return MilvusServer(milvus.url, partitions=2)


class TestMilvus(ProviderContract):
    @pytest.fixture(autouse=True)
    def _milvus(self, milvus: RunningMilvus) -> None:
        """Collections take seconds to make, so all tests share them; each begins without teams."""
        self.milvus = milvus
        provider = self.open(Path())
        for team_id in provider.list_teams():
            provider.delete_team(team_id)
        provider.close()

    def open(self, _: Path) -> SearchProvider:
        server = open_server(self.milvus)
        return MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)
