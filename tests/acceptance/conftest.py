"""Fixtures of several acceptance tests: a filled data directory, and a hostile backup of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.backups import Stage, fill_data, make_backup


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from fill_data(tmp_path_factory.mktemp("filled"))


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it that no test changes."""
    return make_backup(data, tmp_path_factory.mktemp("whole")).backup.path


@pytest.fixture
def stage(whole: Path, tmp_path: Path) -> Stage:
    return Stage(whole, tmp_path)
