"""Fixtures of several acceptance tests: a filled data directory, and a hostile backup of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.backups import Stage, fill_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from fill_data(tmp_path_factory.mktemp("filled"))


@pytest.fixture
def stage(data: Path, tmp_path: Path) -> Stage:
    return Stage(data, tmp_path)
