"""Fixtures: daemons in the test's own process."""

from tests.api.fixtures import daemon, extractor, loop, make_daemon, shared, working

__all__ = ["daemon", "extractor", "loop", "make_daemon", "shared", "working"]
