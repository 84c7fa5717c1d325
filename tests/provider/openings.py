"""How a suite opens the provider that it is about."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_daemon.provider.contract import SearchProvider

Reopen = Callable[[], SearchProvider]


class OpenedProvider:
    """Every test gets a fresh provider; `reopen` closes it and opens what it left behind."""

    def open(self, folder: Path) -> SearchProvider:
        """A provider that keeps what it holds in this folder."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[list[SearchProvider]]:
        opened = [self.open(tmp_path / "index")]
        yield opened
        opened[-1].close()

    @pytest.fixture
    def provider(self, opened: list[SearchProvider]) -> SearchProvider:
        return opened[-1]

    @pytest.fixture
    def reopen(self, opened: list[SearchProvider], tmp_path: Path) -> Reopen:
        def reopen() -> SearchProvider:
            opened[-1].close()
            opened.append(self.open(tmp_path / "index"))
            return opened[-1]

        return reopen
