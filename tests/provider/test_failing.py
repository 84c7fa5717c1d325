"""The failing provider: a full provider when told nothing, and one that raises what it is told."""

from pathlib import Path

import pytest

from svc_daemon.provider.contract import SearchProvider
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.errors import ProviderFailed
from tests.provider.contract_suite import ProviderContract
from tests.provider.failing import FailingProvider
from tests.provider.samples import TEAM, make_document, search, sources

BROKEN = ProviderFailed("The engine is on fire.", retryable=True)


class TestFailing(ProviderContract):
    def open(self, folder: Path) -> SearchProvider:
        return FailingProvider(EmbeddedProvider(folder))

    @pytest.fixture
    def failing(self, provider: SearchProvider) -> FailingProvider:
        assert isinstance(provider, FailingProvider)
        return provider

    def test_a_told_failure_has_no_effect_and_passes(self, failing: FailingProvider) -> None:
        failing.fail("put_document", BROKEN, times=2)
        document = make_document("src_1", "fox")
        for _ in range(2):
            with pytest.raises(ProviderFailed, match="on fire"):
                failing.put_document(TEAM, document, [])
        assert failing.get_document(TEAM, "src_1") is None
        failing.put_document(TEAM, document, [])
        assert sources(search(failing, "fox")) == ["src_1"]

    def test_a_lost_answer_has_its_effect(self, failing: FailingProvider) -> None:
        failing.fail("put_document", BROKEN, after_effect=True)
        with pytest.raises(ProviderFailed, match="on fire"):
            failing.put_document(TEAM, make_document("src_1", "fox"), [])
        assert sources(search(failing, "fox")) == ["src_1"]

    def test_other_methods_go_on(self, failing: FailingProvider) -> None:
        failing.put_document(TEAM, make_document("src_1", "fox"), [])
        failing.fail("search", BROKEN)
        assert failing.get_document(TEAM, "src_1") is not None
        with pytest.raises(ProviderFailed):
            search(failing, "fox")

    def test_a_method_that_no_provider_has_is_refused(self, failing: FailingProvider) -> None:
        with pytest.raises(ValueError, match="put_documents"):
            failing.fail("put_documents", BROKEN)
