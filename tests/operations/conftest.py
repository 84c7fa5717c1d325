"""Fixtures: daemons in the test's own process, and a sample data directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_daemon.extract.extractors import Extractor
from tests.api.daemons import Daemon
from tests.api.fixtures import daemon, extractor, loop, make_daemon, shared, working
from tests.api.loops import Loop
from tests.operations.directories import SampleDirectory, make_sample_directory

__all__ = ["daemon", "extractor", "loop", "make_daemon", "shared", "working"]


@pytest.fixture(scope="session")
def original(loop: Loop, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleDirectory]:
    with make_sample_directory(Daemon(loop, tmp_path_factory.mktemp("original") / "data", extractor)) as directory:
        yield directory


@pytest.fixture
def directory(original: SampleDirectory, tmp_path: Path) -> SampleDirectory:
    return original.copy(tmp_path / "data")
