"""The embedded provider in a folder of the test's own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_daemon.provider.embedded.provider import EmbeddedProvider


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def provider(folder: Path) -> Iterator[EmbeddedProvider]:
    provider = EmbeddedProvider(folder)
    yield provider
    provider.close()


@pytest.fixture
def reopened(folder: Path) -> Iterator[Callable[[], EmbeddedProvider]]:
    """Opens the folder, and closes it at the end or when it is opened again."""
    opened: list[EmbeddedProvider] = []

    def reopen() -> EmbeddedProvider:
        if opened:
            opened[-1].close()
        opened.append(EmbeddedProvider(folder))
        return opened[-1]

    yield reopen
    if opened:
        opened[-1].close()
