"""Searches on Milvus find words however they are written, and say what Milvus can't do."""

from collections.abc import Iterator

import pytest

from svc_daemon.cluster.milvus.packing import PackedTerms, pack_terms
from svc_daemon.cluster.milvus.provider import MilvusProvider
from svc_daemon.cluster.milvus.schema import TEXT_BYTES
from svc_daemon.core.text.queries import parse_query
from svc_daemon.provider.contract import SearchMode
from tests.cluster.milvus import RunningMilvus
from tests.cluster.test_milvus import STAMPS, emptied_server
from tests.provider.samples import MODEL, TEAM, near, put, put_each, search, sources, unit

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
    assert "quoted phrases" in search(provider, '"line length"').warnings[0]


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
