"""Daemons inside the test's process, and what they talk to."""

from collections.abc import Iterator

import httpx
import pytest

from svc_daemon.extract.extractors import Extractor
from tests.api.asking import HANDBOOK
from tests.api.daemons import Daemon
from tests.api.fixtures import daemon, extractor, limited, loop, make_daemon, shared, working
from tests.api.loops import Loop
from tests.api.servers import client_of
from tests.api.sites import Site, hosting
from tests.api.stages import Stage, staging

__all__ = ["daemon", "extractor", "limited", "loop", "make_daemon", "shared", "working"]


@pytest.fixture(scope="module")
def client(port: int) -> Iterator[httpx.Client]:
    """A client of the server at the `port` that the test's file gives."""
    with client_of(port) as client:
        yield client


@pytest.fixture
def site() -> Iterator[Site]:
    with hosting() as site:
        yield site


@pytest.fixture(scope="module")
def stage(loop: Loop, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staging(loop, extractor, tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture(scope="module")
def knowing(shared: Daemon) -> Iterator[Daemon]:
    """A daemon that has read the handbook, and has an empty bucket besides."""
    shared.start()
    shared.add_ready(HANDBOOK, filename="handbook.md")
    shared.make_bucket("empty")
    yield shared
    shared.stop()
