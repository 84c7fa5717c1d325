"""Daemons inside the test's process, and a whole data directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_daemon.extract.extractors import Extractor
from tests.api.daemons import Daemon
from tests.api.fixtures import daemon, extractor, loop, make_daemon, shared, working
from tests.api.loops import Loop
from tests.operations.directories import Whole, filled

__all__ = ["daemon", "extractor", "loop", "make_daemon", "shared", "working"]


@pytest.fixture(scope="module")
def original(loop: Loop, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with filled(Daemon(loop, tmp_path_factory.mktemp("original") / "data", extractor)) as whole:
        yield whole


@pytest.fixture
def whole(original: Whole, tmp_path: Path) -> Whole:
    return original.copy(tmp_path / "data")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
