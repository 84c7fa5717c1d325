"""Count the vectors of an installation in its index, and wait for them."""

from tests.acceptance.installations import Installation, wait_until


def counts(installation: Installation) -> tuple[int, int]:
    """Return the number of chunks and the number of chunks with a vector."""
    return type(installation).count_vectors(installation)


def wait_embedded(installation: Installation, timeout_s: float = 120, every_s: float = 0.02) -> int:
    """Wait until every chunk has a vector, and return the number of vectors."""

    def done() -> int | None:
        chunks, vectors = counts(installation)
        return vectors if chunks == vectors else None

    return wait_until(done, "every chunk has its vector", timeout_s, every_s)
