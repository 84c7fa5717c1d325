"""The failing provider: a full provider without an order, and one that raises what it was ordered to."""

from pathlib import Path

from svc_daemon.provider.contract import SearchProvider
from tests.provider.contract_suite import ProviderContract
from tests.provider.failing import FailingProvider


class TestFailing(ProviderContract):
    def open(self, folder: Path) -> SearchProvider:
        return FailingProvider(folder)
