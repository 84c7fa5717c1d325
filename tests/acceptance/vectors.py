"""How far the vectors of an installation are, read from its index."""

from tests.acceptance.installations import Installation, wait_until


def counts(installation: Installation) -> tuple[int, int]:
    """Chunks, and those that have a vector."""
    return type(installation).count_vectors(installation)


def wait_embedded(installation: Installation, timeout_s: float = 120, every_s: float = 0.02) -> int:
    """How many vectors there are once every chunk has one."""

    def done() -> int | None:
        chunks, vectors = counts(installation)
        return vectors if chunks == vectors else None

    return wait_until(done, "every chunk has its vector", timeout_s, every_s)
