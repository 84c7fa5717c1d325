"""The search provider on Milvus: the contract of providers, what it finds and can't do, and what inspections report."""

import secrets
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from svc_daemon.cluster.milvus import editions
from svc_daemon.cluster.milvus.chunks import read_rows
from svc_daemon.cluster.milvus.embeddings import CHUNK_FIELDS
from svc_daemon.cluster.milvus.inspecting import MilvusInspector
from svc_daemon.cluster.milvus.packing import PackedTerms, pack_edition, pack_terms
from svc_daemon.cluster.milvus.provider import MilvusProvider
from svc_daemon.cluster.milvus.schema import TEXT_BYTES, chunk_row_id, equals
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.cluster.milvus.writing import Stamps
from svc_daemon.core.text.queries import parse_query
from svc_daemon.provider.contract import InspectedDocument, SearchMode, SearchProvider
from tests.cluster.milvus import RunningMilvus
from tests.provider.contract_suite import ProviderContract
from tests.provider.samples import MODEL, TEAM, make_document, near, put, put_each, search, sources, unit

STAMPS = Stamps(time.time_ns, lambda: secrets.randbits(32))


def open_server(milvus: RunningMilvus) -> MilvusServer:
    return MilvusServer(milvus.url, partitions=2)


@contextmanager
def emptied_server(milvus: RunningMilvus) -> Iterator[MilvusServer]:
    """Yield a server without teams; all tests share its collections, which take seconds to create."""
    with closing(open_server(milvus)) as server:
        for team_id in editions.list_teams(server):
            editions.remove_team(server, team_id)
        yield server


class TestMilvus(ProviderContract):
    @pytest.fixture(autouse=True)
    def _milvus(self, milvus: RunningMilvus) -> None:
        self.milvus = milvus
        with emptied_server(milvus):
            pass

    def open(self, _: Path) -> SearchProvider:
        server = open_server(self.milvus)
        return MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)


#: Texts by the ids of their sources, and the queries that find each first.
TEXTS = {
    "src_de": (
        "Die Verträge für die Straße sind und bleiben gültig, und das ist gut.",
        ("strasse", "vertrag", "Straße"),
    ),
    "src_code": ("function getUserProfile(key)", ("user profile", "getUserProfile")),
    "src_release": ("Version 1.0.21 fixes the lamprey import", ("version 1.0.21", "lampreys")),
    "src_noise": ("Version 21.1.0 of the import: step 1, step 0, step 21", ()),
    "src_cpp": ("The C++ course is for experts", ("C++",)),
    "src_c": ("The C course; C is old, C is small, C is fast", ()),
    "src_area": ("The hall has 120 m² and emits 3 t CO₂, weighs 5 kg", ("CO2", "120 m2", "5kg")),
    "src_who": ("The WHO guideline on sleep", ("WHO guideline",)),
    "src_nice": ("The NICE guideline for those who sleep badly; guideline", ()),
    "src_ja": ("今日は雨が降ります。", ("雨", "今日")),
    "src_th": ("ฉันชอบกินข้าวเช้าทุกวัน", ("ข้าวเช้า",)),
    "src_mail": ("Write an e-mail to jane.doe@example.com", ("email", "jane.doe@example.com")),
}


@pytest.fixture
def provider(milvus: RunningMilvus) -> Iterator[MilvusProvider]:
    with emptied_server(milvus) as server:
        yield MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)


def test_words_are_found_however_they_are_written(provider: MilvusProvider) -> None:
    put_each(provider, **{source_id: text for source_id, (text, _) in TEXTS.items()})
    for source_id, (_, queries) in TEXTS.items():
        for query in queries:
            assert search(provider, query).hits[0].source_id == source_id, query
    provider.set_title(TEAM, "src_de", "Gewässer")
    assert [hit.source_id for hit in search(provider, "gewaessern").hits] == ["src_de"]


def test_a_quoted_phrase_must_occur_and_a_cut_search_says_so(provider: MilvusProvider) -> None:
    put_each(provider, src_1="a line of length", src_2="the line length of code", src_3="code")
    page = search(provider, 'code "line length"')
    assert ([hit.source_id for hit in page.hits], page.warnings) == (["src_2"], ())
    put(provider, "src_4", *[f"length of line {number}" for number in range(120)])
    assert "quoted phrases" in search(provider, '"line length"').warnings[-1]


def test_a_hybrid_search_finds_no_passage_without_the_quoted_phrase(provider: MilvusProvider) -> None:
    put_each(provider, src_1="a line of length", src_2="the line length of code")
    provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0)), ("chk_2_1_0", unit(0, 1))])
    for query, found_ids in (("line length", ["src_1", "src_2"]), ('"line length"', ["src_2"])):
        page = near(provider, query, 1, 0, mode=SearchMode.HYBRID)
        assert sorted(sources(page)) == found_ids, query


def test_a_word_that_no_passage_has_is_named(provider: MilvusProvider) -> None:
    put_each(provider, src_1="quick fox")
    (warning,) = search(provider, "a quick wolff").warnings
    assert warning == "No passage has wolff; an index on Milvus suggests no other words."


def test_terms_too_long_for_the_field_are_cut_between_two_words() -> None:
    packed = pack_terms("title", ["heading"], "straße " * 20_000, "de")
    assert len(packed) <= TEXT_BYTES
    (word,) = parse_query("straße", ("de",)).words
    assert PackedTerms(packed).weigh(word)[0] >= 1
    assert not PackedTerms(pack_terms("a", ["b"], "c", "")).has_run(("a", "b"))


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
