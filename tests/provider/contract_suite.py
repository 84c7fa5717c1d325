"""What every search provider must do. A test module subclasses `ProviderContract` and opens its provider."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from svc_daemon.provider.contract import STATE_ACTIVE, ListedDocument, SearchProvider, SearchQuery
from svc_daemon.provider.errors import DocumentMissing, SearchTimeout
from tests.provider.openings import Reopen
from tests.provider.samples import TEAM, make_document, search, sources, terms
from tests.provider.vector_suite import VectorContract

ODD_QUERIES = [
    "",
    " ",
    "?!...",
    '"',
    '""',
    '"unclosed',
    "'; DROP TABLE chunks; --",
    "NEAR(fox dog, 3)",
    "AND",
    "OR NOT",
    "fox AND",
    "NOT fox",
    "title:fox",
    "{title text} : fox",
    "- text : fox",
    "buckets : fox",
    "fox*",
    "^fox",
    "fox + dog",
    "(fox",
    "\N{FOX FACE}\N{FOX FACE}",
    "\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}",
    "キツネ 狐 日本語",
    "लोमड़ी",
    "\N{ADLAM CAPITAL LETTER ALIF}",
    "\x00fox\x00",
    "\ud800 fox",
    "\ue000\U000e0001",
    "fox " * 2500,
    "f" * 10_000,
    " ".join(f"w{number}" for number in range(2000)),
]


class ProviderContract(VectorContract):
    """Every test gets a fresh provider; `reopen` closes it and opens what it left behind."""

    # Putting

    def test_what_was_put_is_found_also_after_a_restart(self, provider: SearchProvider, reopen: Reopen) -> None:
        provider.put_document(TEAM, make_document("src_1", "the quick brown fox"), ["bkt_1"])
        assert sources(search(provider, "fox")) == ["src_1"]
        assert sources(search(reopen(), "fox", bucket_ids=["bkt_1"])) == ["src_1"]

    def test_the_same_generation_again_changes_nothing(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", title="first"), ["bkt_1"])
        before = (provider.get_document(TEAM, "src_1"), provider.get_text(TEAM, "src_1"))
        provider.put_document(TEAM, make_document("src_1", "dog", "cat", title="second"), ["bkt_2"])
        assert (provider.get_document(TEAM, "src_1"), provider.get_text(TEAM, "src_1")) == before
        assert sources(search(provider, "dog")) == []

    def test_a_later_generation_leaves_nothing_of_the_earlier(self, provider: SearchProvider) -> None:
        first = make_document("src_1", "fox one", "fox two", title="vulpes", headings=("Animals",))
        provider.put_document(TEAM, first, ["bkt_1", "bkt_2"])
        provider.put_document(TEAM, make_document("src_1", "dog", generation=2, title="canis"), ["bkt_2"])
        # What comes late is older, and changes nothing.
        provider.put_document(TEAM, first, ["bkt_1", "bkt_2"])
        assert [sources(search(provider, word)) for word in ("fox", "vulpes", "animals")] == [[], [], []]
        assert sources(search(provider, "dog", bucket_ids=["bkt_1"])) == []
        assert [hit.generation for hit in search(provider, "canis", bucket_ids=["bkt_2"]).hits] == [2]

    def test_a_document_without_chunks_is_there_and_never_found(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", title="fox"), ["bkt_1"])
        document = provider.get_document(TEAM, "src_1")
        assert document is not None
        assert document.chunks == 0
        assert sources(search(provider, "fox")) == []

    def test_puts_from_many_threads_all_arrive(self, provider: SearchProvider) -> None:
        documents = [make_document(f"src_{number:02}", f"fox number n{number}") for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda document: provider.put_document(TEAM, document, ["bkt_1"]), documents))
        found = sources(search(provider, "fox", bucket_ids=["bkt_1"], limit=50))
        assert sorted(found) == [document.source_id for document in documents]

    def test_a_search_sees_the_earlier_or_the_later_generation(self, provider: SearchProvider) -> None:
        def version(generation: int) -> None:
            texts = [f"fox generation g{generation}"] * 1200
            provider.put_document(TEAM, make_document("src_1", *texts, generation=generation), ["bkt_1"])

        version(1)
        writer = threading.Thread(target=version, args=(2,))
        writer.start()
        seen = []
        while writer.is_alive():
            seen.append(search(provider, "fox", limit=1500).hits)
        writer.join()
        seen.append(search(provider, "fox", limit=1500).hits)
        assert {len(hits) for hits in seen} == {1200}
        assert all(len({hit.generation for hit in hits}) == 1 for hits in seen)
        assert seen[-1][0].generation == 2

    # Buckets and titles

    def test_set_buckets_makes_them_exactly_these(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), ["bkt_1", "bkt_2"])
        provider.set_buckets(TEAM, "src_1", 1, ["bkt_3", "bkt_2", "bkt_3"])
        found = {
            bucket: sources(search(provider, "fox", bucket_ids=[bucket])) for bucket in ("bkt_1", "bkt_2", "bkt_3")
        }
        assert found == {"bkt_1": [], "bkt_2": ["src_1"], "bkt_3": ["src_1"]}
        document = provider.get_document(TEAM, "src_1")
        assert document is not None
        assert document.bucket_ids == ("bkt_2", "bkt_3")

    def test_set_buckets_to_none_takes_it_out_of_all(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), ["bkt_1"])
        provider.set_buckets(TEAM, "src_1", 1, [])
        assert sources(search(provider, "fox", bucket_ids=["bkt_1"])) == []
        assert sources(search(provider, "fox")) == ["src_1"]

    def test_set_buckets_of_another_document_or_generation_changes_nothing(self, provider: SearchProvider) -> None:
        with pytest.raises(DocumentMissing, match="src_1"):
            provider.set_buckets(TEAM, "src_1", 1, ["bkt_1"])
        provider.put_document(TEAM, make_document("src_1", "fox", generation=2), ["bkt_1"])
        for generation in (1, 3):
            with pytest.raises(DocumentMissing, match=f"generation {generation}"):
                provider.set_buckets(TEAM, "src_1", generation, ["bkt_2"])
        assert sources(search(provider, "fox", bucket_ids=["bkt_1"])) == ["src_1"]

    def test_a_new_title_is_found_and_the_old_one_is_not(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "text", "more", title="fox"), ["bkt_1"])
        provider.set_title(TEAM, "src_1", "dog")
        assert sources(search(provider, "fox")) == []
        assert sources(search(provider, "dog", bucket_ids=["bkt_1"])) == ["src_1", "src_1"]

    def test_set_title_of_an_unknown_document_is_document_missing(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_2", "fox"), [])
        with pytest.raises(DocumentMissing, match="src_1"):
            provider.set_title(TEAM, "src_1", "fox")

    # Deleting

    def test_a_deleted_document_is_nowhere(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", title="fox"), ["bkt_1"])
        provider.put_document(TEAM, make_document("src_2", "fox"), ["bkt_1"])
        provider.delete_document(TEAM, "src_1")
        assert provider.get_document(TEAM, "src_1") is None
        assert provider.get_text(TEAM, "src_1") is None
        assert [listed.source_id for listed in provider.list_documents(TEAM)] == ["src_2"]
        assert sources(search(provider, "fox")) == ["src_2"]

    def test_a_document_can_be_deleted_twice_and_put_again(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), ["bkt_1"])
        provider.delete_document(TEAM, "src_1")
        provider.delete_document(TEAM, "src_1")
        assert provider.get_document(TEAM, "src_1") is None
        provider.put_document(TEAM, make_document("src_1", "dog"), ["bkt_1"])
        assert sources(search(provider, "dog")) == ["src_1"]
        assert sources(search(provider, "fox")) == []

    # Reading back

    def test_the_state_of_a_document_is_returned(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", "dog", generation=3), ["bkt_2", "bkt_1"])
        document = provider.get_document(TEAM, "src_1")
        assert document is not None
        assert document.state == STATE_ACTIVE
        assert document.document_id == "doc_1_3"
        assert (document.generation, document.chunks, document.bucket_ids) == (3, 2, ("bkt_1", "bkt_2"))

    def test_text_and_chunks_come_back_as_they_were_put(self, provider: SearchProvider) -> None:
        texts = ("Straße\nzwei", "\N{FOX FACE} emoji", "nul \x00 inside", "")
        put = make_document("src_1", *texts, title="Käse", headings=("Ä, b", 'quote " here', ""), page=7)
        provider.put_document(TEAM, put, [])
        stored = provider.get_text(TEAM, "src_1")
        assert stored is not None
        assert (stored.generation, stored.title, stored.text) == (1, "Käse", put.text)
        assert tuple(stored.chunk for stored in stored.chunks) == put.chunks
        assert [stored.chunk_id for stored in stored.chunks] == [f"chk_1_1_{ordinal}" for ordinal in range(4)]

    def test_documents_are_listed_by_source_id(self, provider: SearchProvider) -> None:
        for name in ("src_b", "src_c", "src_a"):
            provider.put_document(TEAM, make_document(name, "fox", "dog"), ["bkt_2", "bkt_1"])
        assert list(provider.list_documents(TEAM)) == [
            ListedDocument(source_id=name, generation=1, bucket_ids=("bkt_1", "bkt_2"), chunks=2)
            for name in ("src_a", "src_b", "src_c")
        ]

    def test_what_is_not_there_is_none_or_empty(self, provider: SearchProvider) -> None:
        assert provider.get_document(TEAM, "src_1") is None
        assert provider.get_text(TEAM, "src_1") is None
        assert list(provider.list_documents(TEAM)) == []
        assert search(provider, "fox").hits == ()
        provider.delete_document(TEAM, "src_1")

    # Searching

    def test_a_hit_has_its_place(self, provider: SearchProvider) -> None:
        put = make_document("src_1", "lazy dog", "quick fox", generation=4, headings=("Animals", "Wild"), page=3)
        provider.put_document(TEAM, put, ["bkt_2", "bkt_1"])
        (hit,) = search(provider, "fox").hits
        assert (hit.chunk_id, hit.source_id, hit.generation) == ("chk_1_4_1", "src_1", 4)
        assert hit.bucket_ids == ("bkt_1", "bkt_2")
        assert hit.chunk == put.chunks[1]
        assert hit.rank == 1

    def test_forms_of_a_word_find_it(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "The quick brown fox"), [])
        provider.put_document(TEAM, make_document("src_2", "The lazy dog"), [])
        for query in ("foxes", "FOX", "the fox", "fóx", "fox's", "unicorn fox"):
            assert sources(search(provider, query)) == ["src_1"], query

    def test_words_of_scripts_without_spaces_are_found(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_zh", "本租赁合同由契約双方签订。", headings=("目次",)), [])
        provider.put_document(TEAM, make_document("src_ja", "Python入門。賃貸契約の解約はこちら。", title="ご案内"), [])
        provider.put_document(TEAM, make_document("src_ko", "임대 계약을 해지하려면"), [])
        for query, found in (
            ("契約", ["src_ja", "src_zh"]),
            ("租赁合同", ["src_zh"]),
            ("解約", ["src_ja"]),
            ("契約の解約は", ["src_ja", "src_zh"]),
            ("ご案内", ["src_ja"]),
            ("python", ["src_ja"]),
            ("해지", ["src_ko"]),
            ("目次", ["src_zh"]),
            ("天気", []),
        ):
            assert sorted(sources(search(provider, query))) == found, query

    def test_a_new_title_without_spaces_takes_the_place_of_the_old_one(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", title="賃貸契約書"), ["bkt_1"])
        provider.set_title(TEAM, "src_1", "売買契約書")
        provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
        assert sources(search(provider, "賃貸")) == []
        assert sources(search(provider, "売買", bucket_ids=["bkt_2"])) == ["src_1"]

    def test_title_and_headings_are_found(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "x", title="Vulpes", headings=("Animals", "Wild")), [])
        for query in ("vulpes", "animals", "wild"):
            assert sources(search(provider, query)) == ["src_1"], query

    def test_a_chunk_with_more_of_the_query_comes_first(self, provider: SearchProvider) -> None:
        for number in range(5):
            provider.put_document(TEAM, make_document(f"src_{number}", "something else entirely"), [])
        provider.put_document(TEAM, make_document("src_a", "a quick dog"), [])
        provider.put_document(TEAM, make_document("src_b", "a quick fox"), [])
        assert sources(search(provider, "quick fox")) == ["src_b", "src_a"]

    def test_a_chunk_with_every_word_of_the_query_comes_before_one_with_most_of_one(
        self, provider: SearchProvider
    ) -> None:
        for number in range(20):
            provider.put_document(TEAM, make_document(f"src_{number}", "a quick dog"), [])
        provider.put_document(TEAM, make_document("src_a", "fox fox fox fox", title="fox"), [])
        provider.put_document(TEAM, make_document("src_b", "a fox, " + "some words more " * 20 + "and quick"), [])
        assert sources(search(provider, "quick fox"))[:2] == ["src_b", "src_a"]

    def test_the_score_is_the_share_of_the_query_that_is_covered(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "quick fox"), [])
        provider.put_document(TEAM, make_document("src_2", "quick dog"), [])
        (first, second) = search(provider, "quick fox").hits
        assert (terms(first), terms(second)) == (["quick", "fox"], ["quick"])
        quick, fox = first.matches
        assert first.score == 1
        assert second.score == pytest.approx(quick.idf / (quick.idf + fox.idf))
        assert 0 < quick.idf < fox.idf

    def test_the_score_does_not_depend_on_the_page(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "quick dog"), ["bkt_1"])
        (hit,) = search(provider, "quick unicorn").hits
        assert 0 < hit.score < 0.5

    def test_a_score_follows_what_was_put_since(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox dog"), [])
        (before,) = search(provider, "fox").hits
        provider.put_document(TEAM, make_document("src_2", "cat"), [])
        (after,) = search(provider, "fox").hits
        assert after.matches[0].idf > before.matches[0].idf

    def test_only_the_named_buckets_are_searched(self, provider: SearchProvider) -> None:
        for number in range(1, 5):
            provider.put_document(TEAM, make_document(f"src_{number}", "fox"), [f"bkt_{number}", "bkt_all"])
        found = {
            names: sorted(sources(search(provider, "fox", bucket_ids=list(names))))
            for names in [("bkt_1",), ("bkt_1", "bkt_3"), ("bkt_9",), ("bkt_9", "bkt_2"), (), ("bkt_all", "bkt_1")]
        }
        assert found == {
            ("bkt_1",): ["src_1"],
            ("bkt_1", "bkt_3"): ["src_1", "src_3"],
            ("bkt_9",): [],
            ("bkt_9", "bkt_2"): ["src_2"],
            (): [],
            ("bkt_all", "bkt_1"): ["src_1", "src_2", "src_3", "src_4"],
        }

    def test_only_the_named_sources_are_searched(self, provider: SearchProvider) -> None:
        for number in range(1, 5):
            provider.put_document(TEAM, make_document(f"src_{number}", "fox"), [f"bkt_{number % 2}"])
        many = [f"src_{number}" for number in range(3, 5000)]
        assert sorted(sources(search(provider, "fox", source_ids=many))) == ["src_3", "src_4"]
        assert sources(search(provider, "fox", source_ids=many, bucket_ids=["bkt_1"])) == ["src_3"]
        assert sources(search(provider, "fox", source_ids=[])) == []

    def test_a_word_that_is_a_bucket_or_source_id_is_only_a_word(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), ["bkt_1"])
        for word in ("bkt_1", "src_1", "bkt", b"bkt_1".hex() + "0"):
            assert sources(search(provider, word)) == []

    def test_a_document_that_names_a_bucket_is_not_in_it(self, provider: SearchProvider) -> None:
        text = "fox bkt_1 " + b"bkt_1".hex() + "0"
        provider.put_document(TEAM, make_document("src_1", text, title=text, headings=(text,)), ["bkt_2"])
        assert sources(search(provider, "fox", bucket_ids=["bkt_1"])) == []

    def test_pages_join_without_gap_or_double(self, provider: SearchProvider) -> None:
        for number in range(7):
            provider.put_document(TEAM, make_document(f"src_{number}", "fox"), [])
        whole = search(provider, "fox", limit=50)
        pages = [search(provider, "fox", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [hit for page in pages for hit in page.hits] == list(whole.hits)
        assert [page.has_more for page in (whole, *pages)] == [False, True, True, False, False]
        assert [hit.rank for hit in whole.hits] == [1, 2, 3, 4, 5, 6, 7]

    def test_no_query_is_an_error(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox dog"), ["bkt_1"])
        for query, bucket_ids in product(ODD_QUERIES, (None, ["bkt_1"], ["bkt_2"])):
            page = search(provider, query, bucket_ids=bucket_ids)
            assert all(0 < hit.score <= 1 for hit in page.hits), query

    def test_a_query_of_stop_words_alone_is_searched(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "of all: to be, or not to be, that is the question"), [])
        for query in ("to be or not to be", "The", "of the"):
            assert sources(search(provider, query)) == ["src_1"], query

    def test_past_the_deadline_nothing_is_searched(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), [])
        with pytest.raises(SearchTimeout):
            provider.search(TEAM, SearchQuery(text="fox", deadline_s=0.0))
        assert sources(search(provider, "fox")) == ["src_1"]

    # Teams

    def test_teams_do_not_see_each_other(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), ["bkt_1"])
        provider.put_document("team_two", make_document("src_1", "fox dog"), ["bkt_1"])
        provider.delete_document("team_two", "src_1")
        assert sources(search(provider, "fox")) == ["src_1"]
        assert sources(search(provider, "fox", team_id="team_two")) == []
        assert list(provider.list_documents("team_two")) == []

    def test_a_deleted_team_has_nothing_and_can_start_again(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), ["bkt_1"])
        provider.put_document("team_two", make_document("src_2", "fox"), ["bkt_1"])
        provider.delete_team(TEAM)
        provider.delete_team(TEAM)
        assert list(provider.list_documents(TEAM)) == []
        assert sources(search(provider, "fox", team_id="team_two")) == ["src_2"]
        provider.put_document(TEAM, make_document("src_3", "fox"), ["bkt_1"])
        assert sources(search(provider, "fox")) == ["src_3"]
