"""Fixtures that start extractors and extract documents from bytes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from svc_daemon.core.text.chunking import Extraction
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.extractors import Extractor
from tests.extract.readings import document_at
from tests.samples import PROSE

MakeExtractor = Callable[..., Awaitable[Extractor]]
Extract = Callable[..., Awaitable[Extraction]]


@pytest.fixture
def prose(tmp_path: Path) -> Path:
    path = tmp_path / "prose.md"
    path.write_text(f"# The harbour\n\n{PROSE}\n")
    return path


@pytest.fixture
async def make_extractor(tmp_path: Path) -> AsyncIterator[MakeExtractor]:
    """A function that starts an extractor with the given limits, which is closed after the test."""
    made: list[Extractor] = []

    async def make(**limits: float) -> Extractor:
        extractor = Extractor(tmp_path / f"scratch{len(made)}", CageLimits(**limits))  # type: ignore[arg-type]
        made.append(extractor)
        await extractor.start()
        return extractor

    yield make
    for extractor in made:
        await extractor.close()


@pytest.fixture(scope="module")
async def unlimited(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Extractor]:
    """One extractor for all tests of a file that leave its limits and its fork server as they are."""
    extractor = Extractor(tmp_path_factory.mktemp("shared") / "scratch", CageLimits())
    yield extractor
    await extractor.close()


@pytest.fixture
async def extract(unlimited: Extractor, make_extractor: MakeExtractor, tmp_path: Path) -> Extract:
    """A function that extracts bytes with a file name, under the given limits."""

    async def read(data: bytes, filename: str, content_type: str = "", **limits: float) -> Extraction:
        path = tmp_path / "blob"
        path.write_bytes(data)
        extractor = await make_extractor(**limits) if limits else unlimited
        return await extractor.extract(document_at(path, filename, content_type))

    return read
