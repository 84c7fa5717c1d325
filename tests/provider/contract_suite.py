"""What every search provider must do. A test module subclasses `ProviderContract` and opens its provider."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from svc_daemon.core.search.ranking import POOL
from svc_daemon.provider.contract import STATE_ACTIVE, ListedDocument, SearchProvider
from svc_daemon.provider.errors import DocumentMissing, SearchTimeout
from tests.provider.samples import TEAM, found, make_document, put, put_each, search, sources, terms
from tests.provider.vector_suite import Reopen, VectorContract

ODD_QUERIES = [
    *("", " ", "?!...", '"', '""', '"unclosed', "'; DROP TABLE chunks; --", "NEAR(fox dog, 3)", "AND", "OR NOT"),
    *("fox AND", "NOT fox", "title:fox", "{title text} : fox", "- text : fox", "buckets : fox", "fox*", "^fox"),
    *("fox + dog", "(fox", "\N{FOX FACE}\N{FOX FACE}", "\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}"),
    *("キツネ 狐 日本語", "लोमड़ी", "\N{ADLAM CAPITAL LETTER ALIF}", "\x00fox\x00", "\ud800 fox", "\ue000\U000e0001"),
    *("fox " * 2500, "f" * 10_000, " ".join(f"w{number}" for number in range(2000))),
]


class ProviderContract(VectorContract):
    """Every test gets a fresh provider; `reopen` closes it and opens what it left behind."""

    # Putting

    def test_the_same_generation_again_changes_nothing(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", title="first", buckets=["bkt_1"])
        before = (provider.get_document(TEAM, "src_1"), provider.get_text(TEAM, "src_1"))
        again = make_document("src_1", "dog", "cat", title="second", buckets=["bkt_2"])
        assert provider.put_documents(TEAM, [again, make_document("src_2", "owl")]) == {"src_1"}
        assert (provider.get_document(TEAM, "src_1"), provider.get_text(TEAM, "src_1")) == before
        assert found(provider, "dog") == []

    def test_a_later_generation_leaves_nothing_of_the_earlier(self, provider: SearchProvider) -> None:
        form: dict[str, Any] = {"title": "vulpes", "headings": ("Animals",), "buckets": ["bkt_1", "bkt_2"]}
        first = put(provider, "src_1", "fox one", "fox two", **form)
        put(provider, "src_1", "dog", generation=2, title="canis", buckets=["bkt_2"])
        # What comes late is older, and changes nothing.
        assert provider.put_documents(TEAM, [first]) == {"src_1"}
        assert [found(provider, word) for word in ("fox", "vulpes", "animals")] == [[], [], []]
        assert found(provider, "dog", "bkt_1") == []
        assert [hit.generation for hit in search(provider, "canis", bucket_ids=["bkt_2"]).hits] == [2]

    def test_a_document_without_chunks_is_there_and_never_found(self, provider: SearchProvider) -> None:
        put(provider, "src_1", title="fox", buckets=["bkt_1"])
        assert [listed.chunks for listed in provider.list_documents(TEAM)] == [0]
        assert found(provider, "fox") == []

    def test_documents_put_in_one_call_are_all_found_also_after_a_restart(
        self, provider: SearchProvider, reopen: Reopen
    ) -> None:
        provider.put_documents(TEAM, [])
        assert provider.list_teams() == []
        texts = ["本租赁合同 fox", "fox " * 4000, *[f"fox {number}" for number in range(70)]]
        wave = [make_document(f"src_{n:02}", text, "dog", buckets=[f"bkt_{n % 3}"]) for n, text in enumerate(texts)]
        provider.put_documents(TEAM, wave)
        names = [document.source_id for document in wave]
        assert sorted(found(provider, "fox", limit=100)) == names
        later = reopen()
        assert sorted(found(later, "dog", "bkt_1", limit=100)) == names[1::3]
        assert found(later, "合同", "bkt_0") == ["src_00"]
        assert [listed.source_id for listed in later.list_documents(TEAM)] == names

    def test_of_one_source_in_a_call_the_latest_generation_stays(self, provider: SearchProvider) -> None:
        kept = put(provider, "src_2", "kept fox", generation=5)
        put(provider, "src_3", "first owl")
        wave = [
            make_document("src_1", "early fox"),
            make_document("src_2", "late owl", generation=4),
            make_document("src_1", "second fox", generation=2),
            make_document("src_3", "second owl", generation=2),
            make_document("src_1", "early fox"),
            make_document("src_4", "new"),
        ]
        for _ in range(2):
            provider.put_documents(TEAM, wave)
            generations = {listed.source_id: listed.generation for listed in provider.list_documents(TEAM)}
            assert generations == {"src_1": 2, "src_2": 5, "src_3": 2, "src_4": 1}
            assert [found(provider, word) for word in ("early", "late", "first")] == [[], [], []]
            assert sorted(found(provider, "second")) == ["src_1", "src_3"]
        stored = provider.get_text(TEAM, "src_2")
        assert stored is not None
        assert stored.text == kept.text

    def test_rarity_counted_in_some_buckets_does_not_depend_on_the_others(self, provider: SearchProvider) -> None:
        def look() -> object:
            page = search(provider, "quick merger fox", bucket_ids=["bkt_1"], counted_in=["bkt_1"])
            return page.chunks, page.warnings, [(hit.score, hit.matches) for hit in page.hits]

        put(provider, "src_1", "a quick fox", buckets=["bkt_1"])
        put(provider, "src_2", "a slow fox", buckets=["bkt_1"])
        before = look()
        for number in range(8):
            put(provider, f"src_hidden_{number}", "the quick merger", buckets=["bkt_2"])
        assert look() == before
        assert search(provider, "quick merger fox", bucket_ids=["bkt_1"]).chunks > 2

    def test_puts_from_many_threads_all_arrive(self, provider: SearchProvider) -> None:
        names = [f"src_{number:02}" for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: put(provider, name, f"fox in {name}", buckets=["bkt_1"]), names))
        assert sorted(found(provider, "fox", "bkt_1", limit=50)) == names

    def test_a_search_sees_the_earlier_or_the_later_generation(self, provider: SearchProvider) -> None:
        def version(generation: int) -> None:
            put(provider, "src_1", *[f"fox generation g{generation}"] * 1200, generation=generation, buckets=["bkt_1"])

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
        put(provider, "src_1", "fox", buckets=["bkt_1", "bkt_2"])
        provider.set_buckets(TEAM, "src_1", 1, ["bkt_3", "bkt_2", "bkt_3"])
        assert [found(provider, "fox", f"bkt_{n}") for n in (1, 2, 3)] == [[], ["src_1"], ["src_1"]]
        assert [listed.bucket_ids for listed in provider.list_documents(TEAM)] == [("bkt_2", "bkt_3")]
        provider.set_buckets(TEAM, "src_1", 1, [])
        assert (found(provider, "fox", "bkt_2", "bkt_3"), found(provider, "fox")) == ([], ["src_1"])

    def test_a_change_of_another_document_or_generation_changes_nothing(self, provider: SearchProvider) -> None:
        put(provider, "src_2", "fox", generation=2, buckets=["bkt_1"])
        for source_id, generation, match in [("src_1", 1, "src_1"), ("src_2", 1, "1"), ("src_2", 3, "generation 3")]:
            with pytest.raises(DocumentMissing, match=match):
                provider.set_buckets(TEAM, source_id, generation, ["bkt_2"])
        with pytest.raises(DocumentMissing, match="src_1"):
            provider.set_title(TEAM, "src_1", "fox")
        assert found(provider, "fox", "bkt_1") == ["src_2"]

    def test_a_new_title_is_found_and_the_old_one_is_not(self, provider: SearchProvider) -> None:
        for old, new in [("fox", "dog"), ("賃貸契約書", "売買契約書")]:
            put(provider, new, "text", "more", title=old, buckets=["bkt_1"])
            provider.set_title(TEAM, new, new)
            provider.set_buckets(TEAM, new, 1, ["bkt_2"])
            assert (found(provider, old[:2]), found(provider, new, "bkt_2")) == ([], [new, new])

    # Deleting

    def test_a_deleted_document_is_nowhere_and_can_be_put_again(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", title="fox", buckets=["bkt_1"])
        put(provider, "src_2", "fox", buckets=["bkt_1"])
        for _ in range(2):
            provider.delete_document(TEAM, "src_1")
            assert (provider.get_document(TEAM, "src_1"), provider.get_text(TEAM, "src_1")) == (None, None)
            assert [listed.source_id for listed in provider.list_documents(TEAM)] == ["src_2"]
            assert found(provider, "fox") == ["src_2"]
            provider.purge(TEAM)
            assert not provider.purge(TEAM)
        put(provider, "src_1", "dog", buckets=["bkt_1"])
        assert (found(provider, "dog"), found(provider, "fox")) == (["src_1"], ["src_2"])

    # Reading back

    def test_the_state_of_a_document_is_returned(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", "dog", generation=3, buckets=["bkt_2", "bkt_1"])
        document = provider.get_document(TEAM, "src_1")
        assert document is not None
        assert (document.state, document.document_id) == (STATE_ACTIVE, "doc_1_3")
        assert (document.generation, document.chunks, document.bucket_ids) == (3, 2, ("bkt_1", "bkt_2"))

    def test_text_and_chunks_come_back_as_they_were_put(self, provider: SearchProvider) -> None:
        texts = ("Straße\nzwei", "\N{FOX FACE} emoji", "nul \x00 inside", "")
        document = put(provider, "src_1", *texts, title="Käse", headings=("Ä, b", 'quote " here', ""), page=7)
        stored = provider.get_text(TEAM, "src_1")
        assert stored is not None
        assert (stored.generation, stored.title, stored.text) == (1, "Käse", document.text)
        assert tuple(stored.chunk for stored in stored.chunks) == document.chunks
        assert [stored.chunk_id for stored in stored.chunks] == [f"chk_1_1_{ordinal}" for ordinal in range(4)]

    def test_documents_are_listed_by_source_id(self, provider: SearchProvider) -> None:
        for name in ("src_b", "src_c", "src_a"):
            put(provider, name, "fox", "dog", buckets=["bkt_2", "bkt_1"])
        assert list(provider.list_documents(TEAM)) == [
            ListedDocument(source_id=name, generation=1, bucket_ids=("bkt_1", "bkt_2"), chunks=2)
            for name in ("src_a", "src_b", "src_c")
        ]

    def test_what_is_not_there_is_none_or_empty(self, provider: SearchProvider) -> None:
        assert (provider.get_document(TEAM, "src_1"), provider.get_text(TEAM, "src_1")) == (None, None)
        assert (list(provider.list_documents(TEAM)), found(provider, "fox")) == ([], [])
        provider.delete_document(TEAM, "src_1")

    # Searching

    def test_a_hit_has_its_place(self, provider: SearchProvider) -> None:
        form: dict[str, Any] = {"headings": ("Animals", "Wild"), "page": 3, "buckets": ["bkt_2", "bkt_1"]}
        document = put(provider, "src_1", "lazy dog", "quick fox", generation=4, **form)
        (hit,) = search(provider, "fox").hits
        assert (hit.chunk_id, hit.source_id, hit.generation, hit.rank) == ("chk_1_4_1", "src_1", 4, 1)
        assert (hit.bucket_ids, hit.chunk) == (("bkt_1", "bkt_2"), document.chunks[1])

    def test_a_code_in_a_text_is_found_before_passages_that_have_it_in_their_headings_alone(
        self, provider: SearchProvider
    ) -> None:
        for code in ("inv20x31", "inv20x32"):
            text = f"The tide of {code} came in at noon."
            put(provider, f"src_{code}", text, *["The tide came in."] * 12, title=code, headings=(f"Notes on {code}",))
        put(provider, "src_other", "The tide of inv20x33 came in at noon.", title="inv20x33")
        # Beside what names a document, as many as the page has.
        first = found(provider, "inv20x31 inv20x32 inv20x33", limit=6)
        assert {*first} == {"src_inv20x31", "src_inv20x32", "src_other"}

    def test_forms_of_a_word_a_title_headings_and_stop_words_are_found(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "The quick brown fox", title="Vulpes", headings=("Animals", "Wild"))
        put_each(provider, src_2="The lazy dog", src_3="of all: to be, or not to be, that is the question")
        for query in ("foxes", "FOX", "the fox", "fóx", "fox's", "unicorn fox", "vulpes", "animals", "wild"):
            assert found(provider, query) == ["src_1"], query
        for query in ("to be or not to be", "of", "that is"):
            assert found(provider, query) == ["src_3"], query

    def test_words_of_scripts_without_spaces_are_found(self, provider: SearchProvider) -> None:
        put(provider, "src_zh", "本租赁合同由契約双方签订。", headings=("目次",))
        put(provider, "src_ja", "Python入門。賃貸契約の解約はこちら。", title="ご案内")
        put(provider, "src_ko", "임대 계약을 해지하려면")
        both, zh, ja = ("契約", "契約の解約は"), ("租赁合同", "目次"), ("解約", "ご案内", "python")
        for names, queries in [("ja zh", both), ("zh", zh), ("ja", ja), ("ko", ("해지",)), ("", ("天気",))]:
            for query in queries:
                assert sorted(found(provider, query)) == [f"src_{name}" for name in names.split()], query

    def test_a_chunk_with_more_of_the_query_comes_first(self, provider: SearchProvider) -> None:
        """Also before one that has a single word of it many times."""
        put_each(provider, **{f"src_{number}": "something else entirely" for number in range(5)})
        put_each(provider, src_dog="a quick dog", src_fox="a quick fox")
        assert found(provider, "quick fox") == ["src_fox", "src_dog"]
        provider.delete_document(TEAM, "src_fox")
        put_each(provider, **{f"src_{number}": "a quick dog" for number in range(10, 30)})
        put(provider, "src_a", "fox fox fox fox", title="fox")
        put(provider, "src_b", "a fox, " + "some words more " * 20 + "and quick")
        assert found(provider, "quick fox")[:2] == ["src_b", "src_a"]

    def test_equal_hits_have_the_same_order_whatever_their_ids_and_in_whichever_order_they_came(
        self, provider: SearchProvider
    ) -> None:
        for count in (9, POOL):
            texts, shown = [f"fox w{number:02}" for number in range(count)], []
            for team_id, ordered in ((f"team_{count}", texts), (f"team_{count}_back", texts[::-1])):
                documents = [make_document(f"src_{place:02}", text) for place, text in enumerate(ordered)]
                provider.put_documents(team_id, documents)
                shown.append([hit.chunk.text for hit in search(provider, "fox", team_id=team_id, limit=count).hits])
            assert (shown[0], {*shown[0]}) == (shown[1], {*texts})

    def test_the_score_is_the_share_of_the_query_that_is_covered(self, provider: SearchProvider) -> None:
        put_each(provider, src_1="quick fox", src_2="quick dog")
        page = search(provider, "quick fox")
        assert terms(page) == [["quick", "fox"], ["quick"]]
        first, second = page.hits
        quick, fox = first.matches
        assert [first.score, second.score] == pytest.approx([1, quick.idf / (quick.idf + fox.idf)])
        assert 0 < quick.idf < fox.idf
        # A word that nothing on the page has counts as well.
        assert all(0 < hit.score < 0.5 for hit in search(provider, "quick unicorn").hits)
        # What was put since changes what a word weighs.
        put(provider, "src_3", "cat")
        (after,) = search(provider, "fox").hits
        assert after.matches[0].idf > fox.idf

    def test_only_the_named_buckets_are_searched(self, provider: SearchProvider) -> None:
        for number in range(1, 5):
            put(provider, f"src_{number}", "fox", buckets=[f"bkt_{number}", "bkt_all"])
        for names, numbers in [("1", "1"), ("1 3", "13"), ("9", ""), ("9 2", "2"), ("", ""), ("all 1", "1234")]:
            within = sources(search(provider, "fox", bucket_ids=[f"bkt_{name}" for name in names.split()]))
            assert sorted(within) == [f"src_{number}" for number in numbers], names

    def test_only_the_named_sources_are_searched(self, provider: SearchProvider) -> None:
        for number in range(1, 5):
            put(provider, f"src_{number}", "fox", buckets=[f"bkt_{number % 2}"])
        many = [f"src_{number}" for number in range(3, 5000)]
        assert sorted(found(provider, "fox", source_ids=many)) == ["src_3", "src_4"]
        assert found(provider, "fox", "bkt_1", source_ids=many) == ["src_3"]
        assert found(provider, "fox", source_ids=[]) == []

    def test_the_id_of_a_bucket_or_source_is_only_a_word(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", buckets=["bkt_1"])
        for word in ("bkt_1", "src_1", "bkt", b"bkt_1".hex() + "0"):
            assert found(provider, word) == [], word
        text = "fox bkt_1 " + b"bkt_1".hex() + "0"
        put(provider, "src_2", text, title=text, headings=(text,), buckets=["bkt_2"])
        assert found(provider, "fox", "bkt_1") == ["src_1"]

    def test_pages_join_without_gap_or_double(self, provider: SearchProvider) -> None:
        put_each(provider, **{f"src_{number}": "fox" for number in range(7)})
        whole = search(provider, "fox", limit=50)
        pages = [search(provider, "fox", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [hit for page in pages for hit in page.hits] == list(whole.hits)
        assert [page.has_more for page in (whole, *pages)] == [False, True, True, False, False]
        assert [hit.rank for hit in whole.hits] == [1, 2, 3, 4, 5, 6, 7]

    def test_no_query_is_an_error(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox dog", buckets=["bkt_1"])
        for query, bucket_ids in product(ODD_QUERIES, (None, ["bkt_1"], ["bkt_2"])):
            page = search(provider, query, bucket_ids=bucket_ids)
            assert all(0 < hit.score <= 1 for hit in page.hits), query

    def test_past_the_deadline_nothing_is_searched(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox")
        with pytest.raises(SearchTimeout):
            search(provider, "fox", deadline_s=0.0)
        assert found(provider, "fox") == ["src_1"]

    # Teams

    def test_teams_are_apart_and_a_deleted_one_can_start_again(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", buckets=["bkt_1"])
        put(provider, "src_1", "fox dog", buckets=["bkt_1"], team_id="team_two")
        provider.delete_document("team_two", "src_1")
        assert (found(provider, "fox"), found(provider, "fox", team_id="team_two")) == (["src_1"], [])
        assert list(provider.list_documents("team_two")) == []
        put(provider, "src_2", "fox", team_id="team_two")
        for _ in range(2):
            provider.delete_team(TEAM)
            assert list(provider.list_documents(TEAM)) == []
        assert found(provider, "fox", team_id="team_two") == ["src_2"]
        put(provider, "src_3", "fox")
        assert found(provider, "fox") == ["src_3"]
