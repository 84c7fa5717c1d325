"""The embedded provider in a folder of the test's own."""

from collections.abc import Iterator
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
