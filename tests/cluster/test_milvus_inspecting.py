"""Inspections of an index on Milvus report each kind of damage."""

from collections.abc import Iterator

import pytest

from svc_daemon.cluster.milvus import editions
from svc_daemon.cluster.milvus.chunks import read_rows
from svc_daemon.cluster.milvus.embeddings import CHUNK_FIELDS
from svc_daemon.cluster.milvus.inspecting import MilvusInspector
from svc_daemon.cluster.milvus.packing import pack_edition
from svc_daemon.cluster.milvus.provider import MilvusProvider
from svc_daemon.cluster.milvus.schema import chunk_row_id, equals
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.provider.contract import InspectedDocument
from tests.cluster.milvus import RunningMilvus
from tests.cluster.test_milvus import STAMPS, emptied_server
from tests.provider.samples import MODEL, TEAM, make_document, put, unit


@pytest.fixture
def server(milvus: RunningMilvus) -> Iterator[MilvusServer]:
    with emptied_server(milvus) as server:
        yield server


def check(server: MilvusServer) -> list[str]:
    problems = MilvusInspector(server).check_index(TEAM, read_data=True)
    return [f"{problem.invariant} {problem.message.partition(': ')[2]}" for problem in problems]


def test_inspection_reports_each_kind_of_damage_and_no_put_in_progress(server: MilvusServer) -> None:
    provider = MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)
    put(provider, "src_1", "fox", "dog", title="old", buckets=["bkt_1"])
    put(provider, "src_2", generation=3)
    put(provider, "src_1", "fox", "dog", team_id="team_two")
    provider.set_title(TEAM, "src_1", "new")
    provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0)), ("chk_1_1_1", unit(0, 1))])
    inspector = MilvusInspector(server)
    assert inspector.list_teams() == [TEAM, "team_two"]
    assert inspector.list_documents(TEAM) == {
        "src_1": InspectedDocument("src_1", 1, "new", ("bkt_1",), 2),
        "src_2": InspectedDocument("src_2", 3, "untitled", (), 0),
    }
    assert check(server) == []
    # A put in progress isn't reported as damage.
    draft, further = pack_edition(make_document("src_3", "owl"), STAMPS.name(1), STAMPS.now_ms())
    editions.announce(server, TEAM, [draft], {draft.edition: further})
    assert check(server) == []

    edition = editions.find_shown(server, TEAM, ["src_1"])["src_1"].edition
    first, second = (chunk_row_id(TEAM, "src_1", edition, ordinal) for ordinal in (0, 1))
    chunks, vectors = server.collections.chunks, server.collections.vectors(2)
    row = read_rows(server, chunks, TEAM, [first], CHUNK_FIELDS)[first]
    row = {**row, "bucket_ids": list(row["bucket_ids"])}
    server.upsert(chunks, [{**row, "terms": "wolf"}])
    assert check(server) == ["I6 1 chunks of src_1 are not found by their words"]
    server.upsert(chunks, [row])
    server.delete(vectors, equals("id", second))
    assert check(server) == ["I7 the document of src_1 has 1 vectors, its chunks name 2"]
    server.delete(chunks, equals("id", second))
    assert check(server) == ["I7 the document of src_1 has 1 chunks, its row counts 2"]
    server.insert(chunks, [{**row, "id": "left", "edition": "left", "model": ""}])
    assert check(server)[0] == "I8 there are 1 chunks of documents that are not there"
