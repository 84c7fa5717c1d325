"""Fixtures: daemons in the test's own process, and models for them."""

import pytest

from svc_daemon.workers import embedding
from tests.api.fixtures import daemon, extractor, loop, make_daemon, shared, working
from tests.workers.shelves import Shelf

__all__ = ["daemon", "extractor", "loop", "make_daemon", "shared", "working"]


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A shelf with one model; pauses after failures are very short."""
    for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S", "LOOK_S"):
        monkeypatch.setattr(embedding, name, 0.01)
    return Shelf()
