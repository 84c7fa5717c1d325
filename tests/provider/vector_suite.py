"""What every search provider must do with vectors; a part of `ProviderContract`."""

import math
import random

import pytest

from svc_daemon.provider.contract import HitPage, QueryVector, SearchMode, SearchProvider, SearchQuery
from svc_daemon.provider.errors import ProviderFailed
from tests.provider.openings import OpenedProvider, Reopen
from tests.provider.samples import MODEL, TEAM, make_document, sources, unit


class VectorContract(OpenedProvider):
    def test_chunks_without_a_vector_are_listed_ready_to_embed(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", "dog", title="Animals", headings=("Wild", "Red")), [])
        provider.put_document(TEAM, make_document("src_2", "cat", generation=3, title="Cats", headings=("Cats",)), [])
        provider.put_document(TEAM, make_document("src_3"), [])
        assert provider.list_unembedded(TEAM, MODEL, 9) == [
            ("chk_1_1_0", "Animals\nWild\nRed\nfox"),
            ("chk_1_1_1", "Animals\nWild\nRed\ndog"),
            ("chk_2_3_0", "Cats\ncat"),
        ]
        assert len(provider.list_unembedded(TEAM, MODEL, 2)) == 2

    def test_a_chunk_with_a_vector_of_the_model_is_listed_no_more(
        self, provider: SearchProvider, reopen: Reopen
    ) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", "dog"), ["bkt_1", "bkt_2"])
        provider.put_document(TEAM, make_document("src_2", "cat"), ["bkt_2"])
        for _ in range(2):
            provider.put_vectors(TEAM, MODEL, [("chk_1_1_1", unit(1, 2)), ("chk_2_1_0", unit(1, 3))])
        provider = reopen()
        assert [chunk.chunk_id for chunk in provider.list_unembedded(TEAM, MODEL, 9)] == ["chk_1_1_0"]
        assert len(provider.list_unembedded(TEAM, "other", 9)) == 3
        assert provider.count_unembedded(TEAM, MODEL) == (1, 3)
        assert provider.count_unembedded(TEAM, MODEL, ["bkt_1"]) == (1, 2)
        assert provider.count_unembedded(TEAM, MODEL, ["bkt_1", "bkt_2"]) == (1, 3)
        assert provider.count_unembedded(TEAM, MODEL, []) == (0, 0)
        assert provider.count_unembedded(TEAM, "other") == (3, 3)

    @pytest.mark.parametrize("gone", ["chk_9_1_0", "chk_1_1_0", "chk_1_3_0", "chk_1_2_1"])
    def test_a_vector_of_a_chunk_that_is_gone_is_passed_over(self, provider: SearchProvider, gone: str) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", "old"), [])
        provider.put_document(TEAM, make_document("src_1", "fox", generation=2), [])
        provider.put_vectors(TEAM, MODEL, [(gone, unit(1, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (1, 1)
        provider.put_vectors(TEAM, MODEL, [(gone, unit(1, 0)), ("chk_1_2_0", unit(1, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (0, 1)

    def test_a_vector_of_another_length_is_refused_with_all_that_came_with_it(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", "dog"), [])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0))])
        with pytest.raises(ProviderFailed, match="8 bytes"):
            provider.put_vectors(TEAM, MODEL, [("chk_1_1_1", unit(1, 0)), ("chk_1_1_0", unit(1, 0, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (1, 2)

    def test_a_change_of_buckets_or_title_keeps_the_vectors(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", "dog"), ["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_1", unit(1, 0))])
        provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
        provider.set_title(TEAM, "src_1", "new")
        assert provider.list_unembedded(TEAM, MODEL, 9) == [("chk_1_1_0", "new\nfox")]
        assert provider.count_unembedded(TEAM, MODEL, ["bkt_2"]) == (1, 2)

    def test_vectors_go_with_their_generation(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), ["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0))])
        provider.put_document(TEAM, make_document("src_1", "fox", generation=2), ["bkt_1"])
        assert provider.count_unembedded(TEAM, MODEL) == (1, 1)
        provider.delete_document(TEAM, "src_1")
        assert provider.count_unembedded(TEAM, MODEL) == (0, 0)

    def test_another_model_takes_the_place_of_the_first(self, provider: SearchProvider) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox", "dog"), [])
        provider.put_vectors(TEAM, "old", [("chk_1_1_0", unit(1, 0)), ("chk_1_1_1", unit(1, 0))])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (1, 2)
        assert [chunk.chunk_id for chunk in provider.list_unembedded(TEAM, MODEL, 9)] == ["chk_1_1_1"]

    @pytest.mark.parametrize("keep", [MODEL, "old", "unknown", None])
    def test_dropped_vectors_are_missing_again(self, provider: SearchProvider, keep: str | None) -> None:
        provider.put_document(TEAM, make_document("src_1", "fox"), [])
        provider.put_document(TEAM, make_document("src_2", "dog"), [])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0))])
        provider.put_vectors(TEAM, "old", [("chk_2_1_0", unit(1, 0, 0))])
        provider.drop_vectors(TEAM, keep)
        missing = [provider.count_unembedded(TEAM, model)[0] for model in (MODEL, "old")]
        assert missing == [1 if keep == MODEL else 2, 1 if keep == "old" else 2]
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0)), ("chk_2_1_0", unit(1, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (0, 2)

    def test_where_nothing_is_there_are_no_vectors(self, provider: SearchProvider) -> None:
        assert provider.list_unembedded(TEAM, MODEL, 9) == []
        assert provider.count_unembedded(TEAM, MODEL) == (0, 0)
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0))])
        provider.warm_up(TEAM, MODEL, ["bkt_1"])
        provider.drop_vectors(TEAM, None)

    # Searching by meaning

    def test_what_was_read_beforehand_is_found_as_it_is_now(self, provider: SearchProvider) -> None:
        put_animals(provider)
        provider.warm_up(TEAM, MODEL, ["bkt_1", "bkt_unknown"])
        provider.warm_up(TEAM, "unknown", ["bkt_1"])
        provider.delete_document(TEAM, "src_1")
        provider.put_document(TEAM, make_document("src_9", "owl"), ["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [("chk_9_1_0", unit(1, 0.1))])
        assert near(provider, "nothing of these", 1, 0.1).hits[0].chunk.text == "owl"

    def test_a_semantic_search_goes_by_nearness(self, provider: SearchProvider) -> None:
        put_animals(provider)
        page = near(provider, "nothing of these", 1, 0.1)
        assert [hit.chunk.text for hit in page.hits] == ["fox", "dog", "cat"]
        assert [hit.rank for hit in page.hits] == [1, 2, 3]
        assert page.mode is SearchMode.SEMANTIC
        fox = page.hits[0]
        assert fox.semantic is not None
        assert (fox.semantic.rank, fox.semantic.model, fox.keyword, fox.fused) == (1, MODEL, None, None)
        assert fox.score == fox.semantic.cosine == pytest.approx(1 / math.hypot(1, 0.1))
        assert fox.matches == ()

    def test_what_points_away_from_the_query_is_not_found(self, provider: SearchProvider) -> None:
        put_animals(provider)
        assert [hit.chunk.text for hit in near(provider, "fox", 0, -1).hits] == []
        assert [hit.chunk.text for hit in near(provider, "fox", 1, -0.5).hits] == ["fox", "dog"]

    def test_a_semantic_search_keeps_to_buckets_and_sources(self, provider: SearchProvider) -> None:
        put_animals(provider)
        found = [
            sources(near(provider, "x", 1, 1, bucket_ids=bucket_ids, source_ids=source_ids))
            for bucket_ids, source_ids in [
                (["bkt_1"], None),
                (["bkt_1", "bkt_2"], None),
                (["bkt_3"], None),
                ([], None),
                (None, ["src_2"]),
                (["bkt_2"], ["src_2", "src_3"]),
                (["bkt_2"], []),
            ]
        ]
        assert found == [
            ["src_2", "src_1"],
            ["src_2", "src_1", "src_3"],
            [],
            [],
            ["src_2"],
            ["src_2", "src_3"],
            [],
        ]

    def test_pages_join(self, provider: SearchProvider) -> None:
        put_animals(provider)
        pages = [near(provider, "x", 1, 0.1, limit=2, offset=offset) for offset in (0, 2)]
        assert [(hit.chunk.text, hit.rank) for page in pages for hit in page.hits] == [
            ("fox", 1),
            ("dog", 2),
            ("cat", 3),
        ]
        assert [page.has_more for page in pages] == [True, False]
        pages = [near(provider, "cat", 1, 0.1, mode=SearchMode.HYBRID, limit=1, offset=n) for n in range(4)]
        assert [hit.chunk.text for page in pages for hit in page.hits] == ["cat", "fox", "dog"]
        assert [page.has_more for page in pages] == [True, True, False, False]

    def test_a_hybrid_search_puts_first_what_is_found_both_ways(self, provider: SearchProvider) -> None:
        put_animals(provider)
        page = near(provider, "dog unicorn", 1, 0.1, mode=SearchMode.HYBRID)
        assert [hit.chunk.text for hit in page.hits] == ["dog", "fox", "cat"]
        dog, fox, _ = page.hits
        assert dog.keyword is not None
        assert dog.semantic is not None
        assert (dog.keyword.rank, dog.semantic.rank, fox.keyword) == (1, 2, None)
        assert [dog.fused, fox.fused] == pytest.approx([1 / 61 + 1 / 62, 1 / 61])
        covered = dog.matches[0].idf / (dog.matches[0].idf + math.log(1 + 3.5 / 0.5))
        assert dog.score == pytest.approx((covered + dog.semantic.cosine) / 2)
        assert page.mode is SearchMode.HYBRID

    def test_a_chunk_without_a_vector_still_comes_by_its_words(self, provider: SearchProvider) -> None:
        put_animals(provider)
        provider.put_document(TEAM, make_document("src_4", "the heron"), ["bkt_2"])
        page = near(provider, "heron", 1, 0.1, mode=SearchMode.HYBRID)
        (heron,) = (hit for hit in page.hits if hit.source_id == "src_4")
        assert (heron.score, heron.semantic) == (1.0, None)
        assert page.warnings == ("1 of 4 passages have no vectors yet and are found by their words alone.",)
        assert near(provider, "heron", 1, 0.1, bucket_ids=["bkt_1"]).warnings == ()
        within = near(provider, "heron", 1, 0.1, source_ids=["src_4", "src_1"])
        assert within.warnings == ("1 of 2 passages have no vectors yet and can't be found by meaning.",)

    def test_what_points_away_is_scored_all_the_same_when_its_words_are_found(self, provider: SearchProvider) -> None:
        put_animals(provider)
        (hit,) = near(provider, "fox", -1, 0, mode=SearchMode.HYBRID).hits
        assert hit.semantic is not None
        assert (hit.semantic.rank, hit.semantic.cosine, hit.score) == (None, -1.0, 0.5)

    def test_vectors_of_another_model_are_not_compared(self, provider: SearchProvider) -> None:
        put_animals(provider)
        page = near(provider, "fox", 1, 0, 0, mode=SearchMode.HYBRID, model="other")
        assert [(hit.chunk.text, hit.semantic, hit.score) for hit in page.hits] == [("fox", None, 1.0)]
        assert "3 of 3 passages have no vectors" in page.warnings[0]
        assert near(provider, "fox", 1, 0, 0, model="other").hits == ()

    def test_a_query_of_another_length_fails(self, provider: SearchProvider) -> None:
        put_animals(provider)
        with pytest.raises(ProviderFailed, match="8"):
            near(provider, "fox", 1, 0, 0)

    def test_every_change_is_seen_by_the_next_semantic_search(self, provider: SearchProvider) -> None:
        put_animals(provider)

        def found(bucket: str) -> list[str]:
            return [hit.chunk.text for hit in near(provider, "x", 1, 0.1, bucket_ids=[bucket]).hits]

        assert (found("bkt_1"), found("bkt_2")) == (["fox", "dog"], ["dog", "cat"])
        provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
        assert (found("bkt_1"), found("bkt_2")) == (["dog"], ["fox", "dog", "cat"])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(0.1, 1))])
        assert found("bkt_2") == ["dog", "fox", "cat"]
        provider.put_document(TEAM, make_document("src_2", "wolf", generation=2), ["bkt_1"])
        assert (found("bkt_1"), found("bkt_2")) == ([], ["fox", "cat"])
        provider.put_vectors(TEAM, MODEL, [("chk_2_2_0", unit(1, 1))])
        assert found("bkt_1") == ["wolf"]
        provider.delete_document(TEAM, "src_3")
        assert found("bkt_2") == ["fox"]
        provider.drop_vectors(TEAM, None)
        assert (found("bkt_1"), found("bkt_2")) == ([], [])
        provider.put_vectors(TEAM, MODEL, [("chk_2_2_0", unit(1, 1, 1))])
        assert [hit.chunk.text for hit in near(provider, "x", 1, 0, 0).hits] == ["wolf"]

    def test_a_team_that_begins_anew_has_none_of_its_old_vectors(self, provider: SearchProvider) -> None:
        put_animals(provider)
        assert len(near(provider, "x", 1, 0.1).hits) == 3
        provider.delete_team(TEAM)
        provider.put_document(TEAM, make_document("src_9", "owl"), ["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [("chk_9_1_0", unit(0, 1))])
        assert [hit.chunk.text for hit in near(provider, "x", 1, 0.1).hits] == ["owl"]
        assert near(provider, "x", 1, 0.1, team_id="team_two").hits == ()

    def test_the_nearest_of_many_are_found(self, provider: SearchProvider) -> None:
        chance = random.Random(4)
        vectors = [unit(*(chance.gauss(0, 1) for _ in range(64))) for _ in range(1500)]
        provider.put_document(TEAM, make_document("src_1", *(f"n{number}" for number in range(1500))), ["bkt_1"])
        names = [f"chk_1_1_{number}" for number in range(1500)]
        provider.put_vectors(TEAM, MODEL, list(zip(names, vectors, strict=True)))
        for target in (0, 700, 1499):
            query = SearchQuery(
                text="x", mode=SearchMode.SEMANTIC, vector=QueryVector(model=MODEL, values=vectors[target])
            )
            first = provider.search(TEAM, query).hits[0]
            assert first.chunk.ordinal == target
            assert first.score == pytest.approx(1, abs=1e-6)

    def test_a_search_without_a_vector_goes_by_keyword(self, provider: SearchProvider) -> None:
        put_animals(provider)
        for mode, warnings in (
            (SearchMode.SEMANTIC, ("The search went by keyword: there is no vector of the query.",)),
            (SearchMode.HYBRID, ()),
            (SearchMode.KEYWORD, ()),
        ):
            page = provider.search(TEAM, SearchQuery(text="fox", mode=mode))
            assert (sources(page), page.mode, page.warnings) == (["src_1"], SearchMode.KEYWORD, warnings)
            assert page.hits[0].semantic is None

    def test_a_query_without_words_is_still_looked_for_by_meaning(self, provider: SearchProvider) -> None:
        put_animals(provider)
        assert len(near(provider, "?!", 1, 0.1, mode=SearchMode.HYBRID).hits) == 3

    def test_an_explained_hit_says_where_its_words_stand(self, provider: SearchProvider) -> None:
        put = make_document("src_1", "a red fox", title="Fox", headings=("Animals", "Red"))
        provider.put_document(TEAM, put, ["bkt_1"])
        (hit,) = provider.search(TEAM, SearchQuery(text="red foxes animals", explain=True)).hits
        assert [(match.term, match.parts) for match in hit.matches] == [
            ("red", ("headings", "text")),
            ("foxes", ("title", "text")),
            ("animals", ("headings",)),
        ]
        (plain,) = provider.search(TEAM, SearchQuery(text="red")).hits
        assert plain.matches[0].parts == ()
        assert plain.keyword is not None
        assert plain.keyword.rank == 1


def put_animals(provider: SearchProvider) -> None:
    """A fox in the first bucket, a cat in the second, a dog in both; with vectors, the dog's between the others'."""
    for number, (text, buckets) in enumerate([("fox", [1]), ("dog", [1, 2]), ("cat", [2])], start=1):
        provider.put_document(TEAM, make_document(f"src_{number}", text), [f"bkt_{bucket}" for bucket in buckets])
    vectors = [unit(1, 0), unit(1, 1), unit(0, 1)]
    provider.put_vectors(TEAM, MODEL, [(f"chk_{n}_1_0", vector) for n, vector in enumerate(vectors, start=1)])


def near(
    provider: SearchProvider,
    text: str,
    *numbers: float,
    mode: SearchMode = SearchMode.SEMANTIC,
    model: str = MODEL,
    team_id: str = TEAM,
    bucket_ids: list[str] | None = None,
    source_ids: list[str] | None = None,
    limit: int = 10,
    offset: int = 0,
) -> HitPage:
    """A search with the vector in the direction of these numbers."""
    query = SearchQuery(
        text=text,
        mode=mode,
        vector=QueryVector(model=model, values=unit(*numbers)),
        bucket_ids=bucket_ids,
        source_ids=source_ids,
        limit=limit,
        offset=offset,
    )
    return provider.search(team_id, query)
