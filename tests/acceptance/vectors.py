"""How far the vectors of an installation are, read from its index file."""

import sqlite3
from contextlib import closing

from tests.acceptance.installations import Installation, wait_until


def counts(installation: Installation) -> tuple[int, int]:
    """Chunks, and those that have a vector."""
    (file,) = installation.files.index.glob("*.db")
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        tables = ("chunks", "vectors")
        chunks, vectors = (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    return int(chunks), int(vectors)


def wait_embedded(installation: Installation, timeout_s: float = 120, every_s: float = 0.02) -> int:
    """How many vectors there are once every chunk has one."""

    def done() -> int | None:
        chunks, vectors = counts(installation)
        return vectors if chunks == vectors else None

    return wait_until(done, "every chunk has its vector", timeout_s, every_s)
