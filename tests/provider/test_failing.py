"""The failing provider: a full provider without an order, and one that raises what it was ordered to."""

from pathlib import Path

import pytest

from svc_daemon.provider.contract import SearchProvider
from svc_daemon.provider.errors import ProviderFailed
from tests.provider.contract_suite import ProviderContract
from tests.provider.failing import FailingProvider
from tests.provider.samples import TEAM, found, put, search

BROKEN = ProviderFailed("The engine is on fire.", retryable=True)


class TestFailing(ProviderContract):
    def open(self, folder: Path) -> SearchProvider:
        return FailingProvider(folder)


def test_an_ordered_failure_has_no_effect_and_passes(tmp_path: Path) -> None:
    failing = FailingProvider(tmp_path)
    failing.fail("put_document", BROKEN, times=2)
    for _ in range(2):
        with pytest.raises(ProviderFailed, match="on fire"):
            put(failing, "src_1", "fox")
    # Other methods work meanwhile.
    assert failing.get_document(TEAM, "src_1") is None
    put(failing, "src_1", "fox")
    failing.fail("search", BROKEN)
    with pytest.raises(ProviderFailed):
        search(failing, "fox")
    failing.fail("put_document", BROKEN, after_effect=True)
    with pytest.raises(ProviderFailed, match="on fire"):
        put(failing, "src_2", "the fox")
    assert sorted(found(failing, "fox")) == ["src_1", "src_2"]
    with pytest.raises(ValueError, match="put_documents"):
        failing.fail("put_documents", BROKEN)
    failing.close()
