"""Fixtures of daemons inside the test's process, for every folder that takes them into its `conftest`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from svc_daemon.extract.extractors import Extractor
from svc_daemon.settings.limits import Limits
from tests.api.daemons import LOOPBACK, UNLIMITED, Daemon
from tests.api.loops import Loop

MakeDaemon = Callable[..., Daemon]
#: Opens a fresh daemon with a bucket `inbox` and with these limits; of rate and quota those that are named.
LimitDaemon = Callable[..., Daemon]


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def extractor(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extractor]:
    """One cage for all tests; it starts with the first document."""
    extractor = Extractor(tmp_path_factory.mktemp("cage") / "scratch")
    yield extractor
    loop.run(extractor.close())


@pytest.fixture
def make_daemon(loop: Loop, extractor: Extractor, tmp_path: Path) -> Iterator[MakeDaemon]:
    """Open data directories by name; each is closed at the end of the test unless the test has."""
    made: list[Daemon] = []

    def make(name: str = "data", limits: Limits = UNLIMITED, fetch_allow: str = LOOPBACK) -> Daemon:
        made.append(Daemon(loop, tmp_path / name, extractor, limits, fetch_allow))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()


@pytest.fixture
def daemon(make_daemon: MakeDaemon) -> Daemon:
    """A fresh daemon with a bucket `inbox`; no worker runs."""
    daemon = make_daemon()
    daemon.make_bucket()
    return daemon


@pytest.fixture
def limited(make_daemon: MakeDaemon) -> LimitDaemon:
    def make(**limits: int) -> Daemon:
        daemon = make_daemon(limits=replace(UNLIMITED, **limits))
        daemon.make_bucket()
        return daemon

    return make


@pytest.fixture
def working(daemon: Daemon) -> Daemon:
    """A fresh daemon with a bucket `inbox`; all workers run."""
    daemon.start()
    return daemon


@pytest.fixture(scope="module")
def shared(loop: Loop, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon without workers for all tests of a file that don't disturb each other; it has a bucket `inbox`."""
    daemon = Daemon(loop, tmp_path_factory.mktemp("shared") / "data", extractor)
    daemon.make_bucket()
    yield daemon
    daemon.close()
