"""The embedded provider's vectors: what its files and its memory promise besides the contract."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.provider.embedded import embeddings, writing
from svc_daemon.provider.embedded.files import IndexFiles
from svc_daemon.provider.embedded.indexes import TeamIndex
from svc_daemon.provider.embedded.packing import SLICE_CHUNKS
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.embedded.semantics import SignsCache, SignsKey, warm_up
from svc_daemon.provider.errors import SearchTimeout
from tests.provider.samples import MODEL, TEAM, make_document, near, put, unit


def embed(provider: EmbeddedProvider, source_id: str, *vectors: bytes, bucket: str = "bkt_1") -> None:
    """Put a document of so many chunks, with these vectors."""
    put(provider, source_id, *(f"n{n}" for n in range(len(vectors))), buckets=[bucket])
    number = source_id.removeprefix("src_")
    provider.put_vectors(TEAM, MODEL, [(f"chk_{number}_1_{n}", vector) for n, vector in enumerate(vectors)])


def found(provider: EmbeddedProvider, *numbers: float, bucket: str = "bkt_1", **fields: Any) -> list[str]:
    """Ids of chunks, nearest first."""
    return [hit.chunk_id for hit in near(provider, "x", *numbers, bucket_ids=[bucket], **fields).hits]


def rows(folder: Path) -> list[int]:
    """How many vectors the file of the team has, and how many signs."""
    with closing(sqlite3.connect(folder / f"{TEAM}.db")) as connection:
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("vectors", "signs")]


def test_a_large_document_takes_its_vectors_along(provider: EmbeddedProvider, folder: Path) -> None:
    count, chance = SLICE_CHUNKS + 10, random.Random(6)
    numbers = [[chance.gauss(0, 1) for _ in range(64)] for _ in range(count)]
    embed(provider, "src_1", *[unit(*each) for each in numbers])
    provider.set_title(TEAM, "src_1", "new")
    provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
    assert provider.count_unembedded(TEAM, MODEL, ["bkt_2"]) == (0, count)
    for ordinal in (0, count - 1):
        assert found(provider, *numbers[ordinal], bucket="bkt_2")[0] == f"chk_1_1_{ordinal}"
    assert rows(folder) == [count, count]
    # Dropping goes past one slice, too.
    provider.drop_vectors(TEAM, None)
    assert rows(folder) == [0, 0]


def test_a_removed_vector_can_not_be_read_in_the_file(provider: EmbeddedProvider, folder: Path) -> None:
    secret, dropped, kept = (unit(*(chance.gauss(0, 1) for _ in range(96))) for chance in map(random.Random, range(3)))
    embed(provider, "src_0", kept)
    embed(provider, "src_1", secret)
    provider.delete_document(TEAM, "src_1")
    put(provider, "src_2", "x")
    provider.put_vectors(TEAM, "old", [("chk_2_1_0", dropped)])
    provider.drop_vectors(TEAM, MODEL)
    provider.close()
    content = (folder / f"{TEAM}.db").read_bytes()
    assert [vector in content for vector in (secret, dropped, kept)] == [False, False, True]


def test_a_document_that_takes_a_removed_one_s_place_is_not_taken_for_it(provider: EmbeddedProvider) -> None:
    embed(provider, "src_1", unit(1, 0))
    assert found(provider, 1, 0) == ["chk_1_1_0"]
    provider.delete_document(TEAM, "src_1")
    embed(provider, "src_2", unit(0, 1))
    assert (found(provider, 1, 0), found(provider, 0, 1)) == ([], ["chk_2_1_0"])


def test_what_does_not_fit_into_memory_is_found_all_the_same(folder: Path) -> None:
    provider = EmbeddedProvider(folder, signs_bytes=1)
    embed(provider, "src_1", unit(1, 0), unit(1, 1))
    for _ in range(2):
        assert found(provider, 1, 0) == ["chk_1_1_0", "chk_1_1_1"]
    provider.close()


def test_a_search_by_meaning_is_interrupted_at_its_deadline(folder: Path) -> None:
    ticks: list[float] = []
    provider = EmbeddedProvider(folder, clock=lambda: ticks.pop(0) if ticks else 2.0)
    embed(provider, "src_1", *[unit(1, n + 1) for n in range(50)])
    # In time when the search begins; the look before the signs are compared finds the deadline passed.
    ticks[:] = [0.0]
    with pytest.raises(SearchTimeout):
        found(provider, 1, 1, deadline_s=1.0)
    assert found(provider, 1, 1)[0] == "chk_1_1_0"
    provider.close()


def test_listing_what_has_no_vector_looks_at_no_more_chunks_than_it_gives(folder: Path) -> None:
    provider = EmbeddedProvider(folder)
    provider.put_documents(TEAM, [make_document(f"src_{number:02}", *["fox"] * 50) for number in range(40)])
    provider.close()
    index = IndexFiles(folder, on_broken=lambda _: None, on_damaged=lambda _: None)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    def work(connection: sqlite3.Connection) -> int:
        connection.set_progress_handler(look, 10)
        return len(embeddings.list_missing(connection, MODEL, 5))

    assert index.get(TEAM).database.read(work) == 5
    # Some 40 steps a chunk; all 2,000 of them would be 80,000.
    assert 0 < looks * 10 < 2000
    index.close()


# What is held in memory


@pytest.fixture
def index(provider: EmbeddedProvider, folder: Path) -> Iterator[TeamIndex]:
    """The team's index, with ten documents of one chunk each in each of ten buckets."""
    documents = [make_document(f"src_{n:02}", "n0", buckets=[f"bkt_{n // 10}"]) for n in range(100)]
    provider.put_documents(TEAM, documents)
    provider.put_vectors(TEAM, MODEL, [(f"chk_{n:02}_1_0", unit(1, n)) for n in range(100)])
    provider.close()
    files = IndexFiles(folder, on_broken=lambda _: None, on_damaged=lambda _: None)
    yield files.get(TEAM)
    files.close()


def warm(index: TeamIndex, cache: SignsCache, bucket: str, model: str = MODEL) -> None:
    index.database.read(lambda connection: warm_up(connection, index, cache, model, bucket))


def held(index: TeamIndex, cache: SignsCache, bucket: str | None, most: int = 99) -> tuple[int, int]:
    """How many chunks the cache has of a bucket, and how many statements read their signs; interrupted after `most`."""
    statements: list[str] = []

    def reads() -> int:
        return sum("JOIN signs" in statement for statement in statements)

    def work(connection: sqlite3.Connection) -> int:
        connection.set_trace_callback(statements.append)
        connection.set_progress_handler(lambda: reads() > most, 10)
        try:
            signs = cache.at(connection, SignsKey(index, 1, bucket))
        finally:
            connection.set_progress_handler(None, 10)
            connection.set_trace_callback(None)
        return 0 if signs is None else int(signs.keys.size)

    return index.database.read(work), reads()


def test_signs_are_read_once_and_after_a_change_only_what_changed(index: TeamIndex) -> None:
    cache = SignsCache(10**6)
    assert [held(index, cache, bucket) for bucket in ("bkt_1", "bkt_1", None)] == [(10, 1), (10, 0), (100, 1)]
    writing.delete(index, "src_15")
    assert held(index, cache, "bkt_1") == (9, 0)
    writing.set_buckets(index, "src_25", 1, ["bkt_1"])
    assert held(index, cache, "bkt_1") == (10, 1)


def test_signs_that_were_read_beforehand_are_not_read_again(index: TeamIndex) -> None:
    cache = SignsCache(10**6)
    for model in ("unknown", MODEL):
        warm(index, cache, "bkt_1", model)
        assert (cache.size_bytes > 0) is (model == MODEL)
    assert held(index, cache, "bkt_1") == (10, 0)


def test_what_is_read_beforehand_takes_half_of_the_memory(index: TeamIndex) -> None:
    cache = SignsCache(10**6)
    held(index, cache, "bkt_0")
    cache = SignsCache(4 * cache.size_bytes)
    for number in range(10):
        warm(index, cache, f"bkt_{number}")
    assert [held(index, cache, f"bkt_{number}")[1] for number in range(4)] == [0, 0, 1, 1]


def test_memory_is_bounded_and_what_was_used_last_stays(index: TeamIndex) -> None:
    cache = SignsCache(10**6)
    held(index, cache, "bkt_0")
    cache = SignsCache(3 * cache.size_bytes)
    for bucket in ("bkt_0", "bkt_1", "bkt_2", "bkt_0", "bkt_3"):
        held(index, cache, bucket)
    assert [held(index, cache, bucket)[1] for bucket in ("bkt_0", "bkt_2", "bkt_3")] == [0, 0, 0]
    assert held(index, cache, "bkt_1") == (10, 1)
    full = cache.size_bytes
    cache.forget("another")
    assert cache.size_bytes == full > 0
    cache.forget(TEAM)
    assert cache.size_bytes == 0


def test_what_was_read_before_an_interrupt_is_not_read_again(index: TeamIndex) -> None:
    cache = SignsCache(10**6, batch_documents=10)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        held(index, cache, None, most=6)
    assert held(index, cache, None) == (100, 4)
