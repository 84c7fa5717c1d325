"""The search provider on Milvus during failures of Milvus, nodes and the network, and with concurrent nodes."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.cluster.milvus import editions, writing
from svc_daemon.cluster.milvus.chunks import settle
from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.packing import pack_chunks, pack_edition
from svc_daemon.cluster.milvus.provider import MilvusProvider
from svc_daemon.cluster.milvus.schema import TEXT_BYTES, equals
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.core.search.ranking import POOL
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.provider.contract import IndexDocument, SearchProvider
from svc_daemon.provider.errors import ProviderFailed, SearchTimeout
from tests.acceptance.installations import wait_until
from tests.cluster.engines import free_port
from tests.cluster.milvus import RunningMilvus
from tests.cluster.test_milvus import STAMPS, emptied_server, open_server
from tests.provider.samples import MODEL, TEAM, found, make_document, near, put, search, unit

TOKEN = "root:correct-horse"


@pytest.fixture
def server(milvus: RunningMilvus) -> Iterator[MilvusServer]:
    with emptied_server(milvus) as server:
        yield server


@pytest.fixture
def provider(server: MilvusServer) -> MilvusProvider:
    return MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)


@pytest.fixture
def other(milvus: RunningMilvus) -> Iterator[MilvusProvider]:
    """The provider of another node, with its own connection."""
    provider = MilvusProvider(open_server(milvus), now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)
    yield provider
    provider.close()


def leave_half_a_document(server: MilvusServer, document: IndexDocument, chunks: int) -> Edition:
    """Write the rows that a killed put leaves: an announced edition with only some of its chunks."""
    draft, further = pack_edition(document, STAMPS.name(document.generation), STAMPS.now_ms())
    editions.announce(server, TEAM, [draft], {draft.edition: further})
    server.insert(server.collections.chunks, pack_chunks(TEAM, draft, document.chunks)[:chunks])
    return draft


def count_rows(server: MilvusServer) -> list[int]:
    of_team = equals("team_id", TEAM)
    names = (server.collections.documents, server.collections.chunks, *server.list_vector_collections())
    return [server.count(name, of_team) for name in names]


# Killed and late writers.


def test_rows_of_a_killed_put_are_invisible_and_removed_by_the_next_put(
    provider: MilvusProvider, server: MilvusServer
) -> None:
    document = make_document("src_1", "fox", "fox", "fox", buckets=["bkt_1"])
    leave_half_a_document(server, document, 2)
    assert found(provider, "fox") == found(provider, "fox", "bkt_1") == []
    assert (list(provider.list_documents(TEAM)), provider.get_text(TEAM, "src_1")) == ([], None)
    assert provider.list_unembedded(TEAM, MODEL, 2) == []
    provider.put_documents(TEAM, [document])
    assert found(provider, "fox", "bkt_1") == ["src_1"] * 3
    # One row for the team and one for the document.
    assert count_rows(server)[:2] == [2, 3]
    leave_half_a_document(server, replace(document, generation=2), 3)
    assert len(provider.list_unembedded(TEAM, MODEL, 3)) == 3
    provider.delete_document(TEAM, "src_1")
    assert count_rows(server) == [1, *[0] * (len(count_rows(server)) - 1)]


def test_invisible_chunks_do_not_displace_other_results(provider: MilvusProvider, server: MilvusServer) -> None:
    put(provider, "src_1", "a fox in a long text that is about others, too")
    leave_half_a_document(server, make_document("src_2", *["fox"] * 2 * POOL), 2 * POOL)
    assert found(provider, "fox", limit=POOL // 2) == ["src_1"]


def test_late_writer_of_an_earlier_generation_does_not_replace_the_newer_one(
    provider: MilvusProvider, server: MilvusServer
) -> None:
    late = make_document("src_1", "early fox")
    draft = leave_half_a_document(server, late, 1)
    put(provider, "src_1", "second fox", generation=2)
    # The late writer shows its edition after the newer one is shown.
    editions.set_shown(server, TEAM, [draft], True, STAMPS.now_ms())
    server.insert(server.collections.chunks, pack_chunks(TEAM, draft, late.chunks))
    assert (found(provider, "early"), found(provider, "second")) == ([], ["src_1"])
    assert [(each.generation, each.chunks) for each in provider.list_documents(TEAM)] == [(2, 1)]
    provider.delete_document(TEAM, "src_1")
    assert (found(provider, "fox"), provider.get_document(TEAM, "src_1")) == ([], None)


def test_concurrent_changes_by_two_nodes_are_all_kept(provider: MilvusProvider, other: MilvusProvider) -> None:
    put(provider, "src_1", *["fox"] * 5, buckets=["bkt_0"])
    provider.put_vectors(TEAM, MODEL, [("chk_1_1_2", unit(1, 0))])
    for attempt in range(5):
        with ThreadPoolExecutor(2) as pool:
            title = pool.submit(provider.set_title, TEAM, "src_1", f"title{attempt}")
            buckets = pool.submit(other.set_buckets, TEAM, "src_1", 1, [f"bkt_{attempt}"])
            for change in (title, buckets):
                change.result()
        assert found(other, f"title{attempt}", f"bkt_{attempt}") == ["src_1"] * 5, attempt
        assert len(search(provider, "fox", limit=100).hits) == 5
        assert [hit.chunk.ordinal for hit in near(other, "x", 1, 0).hits] == [2]


def test_node_that_searched_an_empty_team_finds_documents_written_later(
    provider: MilvusProvider, server: MilvusServer
) -> None:
    other = MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)
    assert found(other, "fox") == []
    put(provider, "src_1", "fox")
    assert found(other, "fox") == ["src_1"]


@pytest.mark.rule("cluster.clock")
def test_changes_by_a_node_whose_clock_is_an_hour_behind_take_effect(
    provider: MilvusProvider, server: MilvusServer
) -> None:
    behind = MilvusProvider(server, now_ns=lambda: STAMPS.now_ns() - 3600 * 10**9, random_bits=STAMPS.random_bits)
    put(provider, "src_1", "fox", buckets=["bkt_1"])
    # The node that is ahead also had a killed put of the same generation.
    leave_half_a_document(server, make_document("src_1", "fox"), 1)
    behind.set_title(TEAM, "src_1", "Behind")
    behind.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
    for node in (provider, behind):
        assert (found(node, "behind", "bkt_2"), found(node, "fox", "bkt_1")) == (["src_1"], [])
    put(behind, "src_1", "owl", generation=2)
    assert (found(provider, "owl"), found(provider, "fox")) == (["src_1"], [])
    behind.delete_document(TEAM, "src_1")
    assert (found(provider, "owl"), provider.get_document(TEAM, "src_1")) == ([], None)


def test_search_by_another_node_during_writes_sees_only_complete_documents(
    provider: MilvusProvider, other: MilvusProvider
) -> None:
    def write() -> None:
        for generation in range(2, 6):
            put(provider, "src_1", *[f"fox g{generation}"] * 300, generation=generation)
            provider.set_title(TEAM, "src_1", f"title{generation}")

    put(provider, "src_1", *["fox g1"] * 300)
    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while writer.is_alive():
        # 299 is fewer than the document's 300 chunks; a replacement may be in progress.
        seen += [search(other, "fox", limit=limit).hits for limit in (299, 400)]
    writer.join()
    assert {len(hits) for hits in seen} == {299, 300}
    assert all(len({(hit.generation, hit.bucket_ids) for hit in hits}) == 1 for hits in seen)


def test_search_repeats_its_query_if_a_document_is_shown_meanwhile(
    provider: MilvusProvider, server: MilvusServer
) -> None:
    """Otherwise the search would return only the chunks that existed when they were read."""
    draft = leave_half_a_document(server, make_document("src_1", "fox", "fox"), 2)
    half = {"source_id": "src_1", "edition": draft.edition, "ordinal": 0}
    asked = []

    def ask(_: object) -> list[tuple[float, dict[str, object]]]:
        asked.append(half)
        if len(asked) == 1:
            editions.set_shown(server, TEAM, [draft], True, STAMPS.now_ms())
            return [(1.0, half)]
        return [(1.0, half), (1.0, {**half, "ordinal": 1})]

    assert len(settle(server, TEAM, ask, 10, STAMPS.now_ms, None).rows) == len(asked) == 2
    assert found(provider, "fox") == ["src_1"] * 2


# Texts.


def test_text_is_returned_completely_including_parts_between_chunks(provider: MilvusProvider) -> None:
    # Incompressible, so that the text between the chunks takes several rows.
    between = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(60_000))
    text = f"  begin{between}middle overlap end\n\n"
    places = [text.index("begin"), text.index("middle"), text.index("overlap")]
    ends = [places[0] + 5, places[2] + 7, text.index("end") + 3]
    chunks = [
        Chunk(ordinal=n, text=text[start:end], char_start=start, char_end=end)
        for n, (start, end) in enumerate(zip(places, ends, strict=True))
    ]
    document = replace(make_document("src_1"), text=text, chunks=tuple(chunks))
    provider.put_documents(TEAM, [document, make_document("src_2")])
    provider.set_title(TEAM, "src_1", "new")
    stored = provider.get_text(TEAM, "src_1")
    assert stored is not None
    assert (stored.text, tuple(each.chunk for each in stored.chunks)) == (text, document.chunks)
    empty = provider.get_text(TEAM, "src_2")
    assert (empty and empty.text) == ""
    put(provider, "src_3", "fox \ud800", title='quote " and \\ back', headings=("\ud800",))
    assert [hit.chunk.text for hit in search(provider, "back").hits] == ["fox ?"]
    forms: list[dict[str, Any]] = [{"title": "t" * (TEXT_BYTES + 1)}, {"buckets": [f"bkt_{n}" for n in range(5000)]}]
    for form in forms:
        with pytest.raises(ProviderFailed, match="src_4"):
            put(provider, "src_4", "fox", **form)
    assert found(provider, "fox") == ["src_3"]


# Milvus that is unavailable, slow or new.


def test_search_without_milvus_fails_as_retryable_and_works_again_afterwards(
    provider: MilvusProvider, milvus: RunningMilvus
) -> None:
    put(provider, "src_1", "fox", buckets=["bkt_1"])
    assert found(provider, "fox") == ["src_1"]
    milvus.engine.kill()
    try:
        with pytest.raises((SearchTimeout, ProviderFailed)) as failed:
            search(provider, "fox", deadline_s=time.monotonic() + 1)
        assert failed.value.retryable
    finally:
        milvus.start_again()

    def find() -> list[str]:
        try:
            return found(provider, "fox", "bkt_1")
        except ProviderFailed:
            return []

    assert wait_until(find, "searches work again") == ["src_1"]
    put(provider, "src_1", "owl", generation=2)
    assert (found(provider, "owl"), found(provider, "fox")) == (["src_1"], [])


def test_search_times_out_at_its_deadline_when_milvus_hangs(provider: SearchProvider, milvus: RunningMilvus) -> None:
    put(provider, "src_1", "fox")
    milvus.engine.suspend()
    try:
        with pytest.raises(SearchTimeout):
            search(provider, "fox", deadline_s=time.monotonic() + 0.5)
    finally:
        milvus.engine.resume()
    assert found(provider, "fox") == ["src_1"]


def test_unreachable_milvus_fails_as_retryable_and_errors_do_not_contain_the_token() -> None:
    server = MilvusServer(f"http://127.0.0.1:{free_port()}", TOKEN)
    provider = MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)
    for call in (lambda: put(provider, "src_1", "fox"), provider.list_teams):
        with pytest.raises(ProviderFailed) as failed:
            call()
        assert failed.value.retryable
        assert TOKEN not in f"{failed.value!r} {failed.value} {failed.value.__cause__!r} {server!r}"
    provider.close()
    with pytest.raises(ProviderFailed, match="stopping"):
        provider.list_teams()


def test_concurrent_first_writes_to_an_empty_milvus_share_its_collections(milvus: RunningMilvus) -> None:
    servers = [MilvusServer(milvus.url, prefix="fresh", partitions=1) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda server: writing.put(server, STAMPS, TEAM, [make_document("src_1", "fox")]), servers))
    for server in servers:
        assert [each.source_id for each in editions.list_shown(server, TEAM)] == ["src_1"]
        assert server.count(server.collections.chunks, equals("team_id", TEAM)) == 1
        server.close()
