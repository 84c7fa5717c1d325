"""What every search provider must do with vectors; a part of `ProviderContract`."""

import math
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_daemon.provider.contract import SearchMode, SearchProvider, SemanticMatch
from svc_daemon.provider.errors import ProviderFailed
from tests.provider.samples import MODEL, TEAM, near, put, put_each, search, sources, texts, unit

KEYWORD, SEMANTIC, HYBRID = SearchMode.KEYWORD, SearchMode.SEMANTIC, SearchMode.HYBRID


Reopen = Callable[[], SearchProvider]


class OpenedProvider:
    """Every test gets a fresh provider; `reopen` closes it and opens what it left behind."""

    def open(self, folder: Path) -> SearchProvider:
        """A provider that keeps what it holds in this folder."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[list[SearchProvider]]:
        opened = [self.open(tmp_path / "index")]
        yield opened
        opened[-1].close()

    @pytest.fixture
    def provider(self, opened: list[SearchProvider]) -> SearchProvider:
        return opened[-1]

    @pytest.fixture
    def reopen(self, opened: list[SearchProvider], tmp_path: Path) -> Reopen:
        def reopen() -> SearchProvider:
            opened[-1].close()
            opened.append(self.open(tmp_path / "index"))
            return opened[-1]

        return reopen


class VectorContract(OpenedProvider):
    def test_chunks_without_a_vector_are_listed_ready_to_embed(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", "dog", title="Animals", headings=("Wild", "Red"))
        put(provider, "src_2", "cat", generation=3, title="Cats", headings=("Cats",))
        put(provider, "src_3")
        assert provider.list_unembedded(TEAM, MODEL, 9) == [
            ("chk_1_1_0", "Animals\nWild\nRed\nfox"),
            ("chk_1_1_1", "Animals\nWild\nRed\ndog"),
            ("chk_2_3_0", "Cats\ncat"),
        ]
        assert len(provider.list_unembedded(TEAM, MODEL, 2)) == 2

    def test_a_chunk_with_a_vector_of_the_model_is_listed_no_more(
        self, provider: SearchProvider, reopen: Reopen
    ) -> None:
        put(provider, "src_1", "fox", "dog", buckets=["bkt_1", "bkt_2"])
        put(provider, "src_2", "cat", buckets=["bkt_2"])
        for _ in range(2):
            provider.put_vectors(TEAM, MODEL, [("chk_1_1_1", unit(1, 2)), ("chk_2_1_0", unit(1, 3))])
        provider = reopen()
        assert [chunk.chunk_id for chunk in provider.list_unembedded(TEAM, MODEL, 9)] == ["chk_1_1_0"]
        assert len(provider.list_unembedded(TEAM, "other", 9)) == 3
        for buckets, counts in [(None, (1, 3)), (["bkt_1"], (1, 2)), (["bkt_1", "bkt_2"], (1, 3)), ([], (0, 0))]:
            assert provider.count_unembedded(TEAM, MODEL, buckets) == counts, buckets
        assert [provider.count_unembedded(TEAM, model) for model in ("other", "")] == [(3, 3)] * 2

    def test_a_vector_of_a_chunk_that_is_gone_is_passed_over(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", "old")
        put(provider, "src_1", "fox", generation=2)
        gone = [(name, unit(1, 0)) for name in ("chk_9_1_0", "chk_1_1_0", "chk_1_3_0", "chk_1_2_1")]
        for each in gone:
            provider.put_vectors(TEAM, MODEL, [each])
            assert provider.count_unembedded(TEAM, MODEL) == (1, 1), each
        provider.put_vectors(TEAM, MODEL, [*gone, ("chk_1_2_0", unit(1, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (0, 1)

    def test_a_vector_of_another_length_is_refused_with_all_that_came_with_it(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", "dog")
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0))])
        with pytest.raises(ProviderFailed, match="8 bytes"):
            provider.put_vectors(TEAM, MODEL, [("chk_1_1_1", unit(1, 0)), ("chk_1_1_0", unit(1, 0, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (1, 2)
        with pytest.raises(ProviderFailed, match="8"):
            near(provider, "fox", 1, 0, 0)

    def test_vectors_stay_with_other_buckets_or_another_title_and_go_with_their_generation(
        self, provider: SearchProvider
    ) -> None:
        put(provider, "src_1", "fox", "dog", buckets=["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_1", unit(1, 0))])
        provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
        provider.set_title(TEAM, "src_1", "new")
        assert provider.list_unembedded(TEAM, MODEL, 9) == [("chk_1_1_0", "new\nfox")]
        assert provider.count_unembedded(TEAM, MODEL, ["bkt_2"]) == (1, 2)
        put(provider, "src_1", "fox", generation=2)
        assert provider.count_unembedded(TEAM, MODEL) == (1, 1)
        provider.delete_document(TEAM, "src_1")
        assert provider.count_unembedded(TEAM, MODEL) == (0, 0)

    def test_another_model_takes_the_place_of_the_first(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", "dog")
        provider.put_vectors(TEAM, "old", [("chk_1_1_0", unit(1, 0)), ("chk_1_1_1", unit(1, 0))])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (1, 2)
        assert [chunk.chunk_id for chunk in provider.list_unembedded(TEAM, MODEL, 9)] == ["chk_1_1_1"]

    def test_dropped_vectors_are_missing_again(self, provider: SearchProvider) -> None:
        put_each(provider, src_1="fox", src_2="dog")
        for keep, missing in [(MODEL, [1, 2]), ("old", [2, 1]), ("unknown", [2, 2]), (None, [2, 2])]:
            provider.drop_vectors(TEAM, None)
            provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0))])
            provider.put_vectors(TEAM, "old", [("chk_2_1_0", unit(1, 0, 0))])
            provider.drop_vectors(TEAM, keep)
            assert [provider.count_unembedded(TEAM, model).missing for model in (MODEL, "old")] == missing, keep
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0)), ("chk_2_1_0", unit(1, 0))])
        assert provider.count_unembedded(TEAM, MODEL) == (0, 2)

    def test_where_nothing_is_there_are_no_vectors(self, provider: SearchProvider) -> None:
        assert (provider.list_unembedded(TEAM, MODEL, 9), provider.count_unembedded(TEAM, MODEL)) == ([], (0, 0))
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(1, 0))])
        provider.warm_up(TEAM, MODEL, ["bkt_1"])
        provider.drop_vectors(TEAM, None)

    def test_stored_vectors_are_read_as_they_were_put(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "fox", "dog", "cat", generation=3)
        put(provider, "src_2", "owl")
        exact = struct.pack("<2f", 0.1, 1 / 3)
        provider.put_vectors(TEAM, MODEL, [("chk_1_3_2", exact), ("chk_1_3_0", unit(1, 2)), ("chk_2_1_0", unit(3, 1))])
        provider.put_vectors(TEAM, "other", [("chk_1_3_1", unit(1, 0))])
        provider.set_title(TEAM, "src_1", "new")
        assert provider.get_vectors(TEAM, "src_1", MODEL) == {"chk_1_3_0": unit(1, 2), "chk_1_3_2": exact}
        for unknown in ((TEAM, "src_9", MODEL), (TEAM, "src_1", "none"), ("team_two", "src_1", MODEL)):
            assert provider.get_vectors(*unknown) == {}
        put(provider, "src_1", "fox", generation=4)
        assert provider.get_vectors(TEAM, "src_1", MODEL) == {}

    # Searching by meaning

    def test_what_was_read_beforehand_is_found_as_it_is_now(self, provider: SearchProvider) -> None:
        put_animals(provider)
        provider.warm_up(TEAM, MODEL, ["bkt_1", "bkt_unknown"])
        provider.warm_up(TEAM, "unknown", ["bkt_1"])
        provider.delete_document(TEAM, "src_1")
        put(provider, "src_9", "owl", buckets=["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [("chk_9_1_0", unit(1, 0.1))])
        assert texts(near(provider, "nothing of these", 1, 0.1))[0] == "owl"

    def test_a_semantic_search_goes_by_nearness(self, provider: SearchProvider) -> None:
        put_animals(provider)
        page = near(provider, "nothing of these", 1, 0.1)
        assert (texts(page), [hit.rank for hit in page.hits]) == (["fox", "dog", "cat"], [1, 2, 3])
        assert page.mode is SEMANTIC
        fox = page.hits[0]
        semantic = SemanticMatch(rank=1, cosine=fox.score, model=MODEL)
        assert (fox.semantic, fox.keyword, fox.fused, fox.matches) == (semantic, None, None, ())
        assert fox.score == pytest.approx(1 / math.hypot(1, 0.1))
        # What points away from the query is not found.
        assert texts(near(provider, "fox", 0, -1)) == []
        assert texts(near(provider, "fox", 1, -0.5)) == ["fox", "dog"]

    def test_a_semantic_search_keeps_to_buckets_and_sources(self, provider: SearchProvider) -> None:
        put_animals(provider)
        for bucket_ids, source_ids, found in [
            *((["bkt_1"], None, [2, 1]), (["bkt_1", "bkt_2"], None, [2, 1, 3]), (["bkt_3"], None, []), ([], None, [])),
            *((None, ["src_2"], [2]), (["bkt_2"], ["src_2", "src_3"], [2, 3]), (["bkt_2"], [], [])),
        ]:
            page = near(provider, "x", 1, 1, bucket_ids=bucket_ids, source_ids=source_ids)
            assert sources(page) == [f"src_{number}" for number in found], (bucket_ids, source_ids)

    def test_pages_join(self, provider: SearchProvider) -> None:
        put_animals(provider)
        pages = [near(provider, "x", 1, 0.1, limit=2, offset=offset) for offset in (0, 2)]
        assert [(texts(page), page.has_more) for page in pages] == [(["fox", "dog"], True), (["cat"], False)]
        assert [hit.rank for page in pages for hit in page.hits] == [1, 2, 3]
        pages = [near(provider, "cat", 1, 0.1, mode=HYBRID, limit=1, offset=n) for n in range(4)]
        assert [texts(page) for page in pages] == [["cat"], ["fox"], ["dog"], []]
        assert [page.has_more for page in pages] == [True, True, False, False]

    def test_a_hybrid_search_puts_first_what_is_found_both_ways(self, provider: SearchProvider) -> None:
        put_animals(provider)
        page = near(provider, "dog unicorn", 1, 0.1, mode=HYBRID)
        assert (texts(page), page.mode) == (["dog", "fox", "cat"], HYBRID)
        dog, fox, _ = page.hits
        assert dog.keyword and dog.semantic
        assert (dog.keyword.rank, dog.semantic.rank, fox.keyword) == (1, 2, None)
        assert [dog.fused, fox.fused] == pytest.approx([1 / 61 + 1 / 62, 1 / 61])
        covered = dog.matches[0].idf / (dog.matches[0].idf + math.log(1 + 3.5 / 0.5))
        assert dog.score == pytest.approx((covered + dog.semantic.cosine) / 2)
        # A query without words is still looked for by meaning.
        assert len(near(provider, "?!", 1, 0.1, mode=HYBRID).hits) == 3

    def test_what_is_quoted_must_occur_also_in_what_is_close_in_meaning(self, provider: SearchProvider) -> None:
        put_animals(provider)
        assert texts(near(provider, '"dog"', 1, 0.1, mode=HYBRID)) == ["dog"]
        page = near(provider, '"dog fox"', 1, 0.1, mode=HYBRID)
        assert (page.hits, "quotation marks" in page.warnings[0]) == ((), True)

    def test_a_chunk_without_a_vector_still_comes_by_its_words(self, provider: SearchProvider) -> None:
        put_animals(provider)
        put(provider, "src_4", "the heron", buckets=["bkt_2"])
        page = near(provider, "heron", 1, 0.1, mode=HYBRID)
        (heron,) = (hit for hit in page.hits if hit.source_id == "src_4")
        assert (heron.score, heron.semantic) == (1.0, None)
        assert page.warnings == ("1 of 4 passages have no vectors yet and are found by their words alone.",)
        assert near(provider, "heron", 1, 0.1, bucket_ids=["bkt_1"]).warnings == ()
        within = near(provider, "heron", 1, 0.1, source_ids=["src_4", "src_1"])
        assert within.warnings == ("1 of 2 passages have no vectors yet and can't be found by meaning.",)

    def test_what_points_away_is_scored_all_the_same_when_its_words_are_found(self, provider: SearchProvider) -> None:
        put_animals(provider)
        (hit,) = near(provider, "fox", -1, 0, mode=HYBRID).hits
        assert (hit.semantic, hit.score) == (SemanticMatch(rank=None, cosine=-1.0, model=MODEL), 0.5)

    def test_vectors_of_another_model_are_not_compared(self, provider: SearchProvider) -> None:
        put_animals(provider)
        page = near(provider, "fox", 1, 0, 0, mode=HYBRID, model="other")
        assert [(hit.chunk.text, hit.semantic, hit.score) for hit in page.hits] == [("fox", None, 1.0)]
        assert "3 of 3 passages have no vectors" in page.warnings[0]
        assert near(provider, "fox", 1, 0, 0, model="other").hits == ()

    def test_every_change_is_seen_by_the_next_semantic_search(self, provider: SearchProvider) -> None:
        put_animals(provider)

        def found() -> tuple[list[str], list[str]]:
            first, second = (texts(near(provider, "x", 1, 0.1, bucket_ids=[f"bkt_{number}"])) for number in (1, 2))
            return first, second

        assert found() == (["fox", "dog"], ["dog", "cat"])
        provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
        assert found() == (["dog"], ["fox", "dog", "cat"])
        provider.put_vectors(TEAM, MODEL, [("chk_1_1_0", unit(0.1, 1))])
        assert found() == (["dog"], ["dog", "fox", "cat"])
        put(provider, "src_2", "wolf", generation=2, buckets=["bkt_1"])
        assert found() == ([], ["fox", "cat"])
        provider.put_vectors(TEAM, MODEL, [("chk_2_2_0", unit(1, 1))])
        assert found() == (["wolf"], ["fox", "cat"])
        provider.delete_document(TEAM, "src_3")
        assert found() == (["wolf"], ["fox"])
        provider.drop_vectors(TEAM, None)
        assert found() == ([], [])
        provider.put_vectors(TEAM, MODEL, [("chk_2_2_0", unit(1, 1, 1))])
        assert texts(near(provider, "x", 1, 0, 0)) == ["wolf"]

    def test_a_team_that_starts_again_has_none_of_its_old_vectors(self, provider: SearchProvider) -> None:
        put_animals(provider)
        assert len(near(provider, "x", 1, 0.1).hits) == 3
        provider.delete_team(TEAM)
        put(provider, "src_9", "owl", buckets=["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [("chk_9_1_0", unit(0, 1))])
        assert texts(near(provider, "x", 1, 0.1)) == ["owl"]
        assert near(provider, "x", 1, 0.1, team_id="team_two").hits == ()

    def test_the_nearest_of_many_are_found(self, provider: SearchProvider) -> None:
        chance = random.Random(4)
        numbers = [[chance.gauss(0, 1) for _ in range(64)] for _ in range(1500)]
        put(provider, "src_1", *(f"n{number}" for number in range(1500)), buckets=["bkt_1"])
        provider.put_vectors(TEAM, MODEL, [(f"chk_1_1_{n}", unit(*each)) for n, each in enumerate(numbers)])
        for target in (0, 700, 1499):
            first = near(provider, "x", *numbers[target]).hits[0]
            assert first.chunk.ordinal == target
            assert first.score == pytest.approx(1, abs=1e-6)

    def test_a_search_without_a_vector_goes_by_keyword(self, provider: SearchProvider) -> None:
        put_animals(provider)
        missing = ("The search used keywords only, because the query has no vector.",)
        for mode, warnings in [(SEMANTIC, missing), (HYBRID, ()), (KEYWORD, ())]:
            page = search(provider, "fox", mode=mode)
            assert (sources(page), page.mode, page.warnings) == (["src_1"], KEYWORD, warnings), mode
            assert page.hits[0].semantic is None, mode

    def test_an_explained_hit_shows_where_its_words_are(self, provider: SearchProvider) -> None:
        put(provider, "src_1", "a red fox", title="Fox", headings=("Animals", "Red"))
        (hit,) = search(provider, "red foxes animals", explain=True, mode=HYBRID).hits
        parts = {"red": ("headings", "text"), "foxes": ("title", "text"), "animals": ("headings",)}
        assert [(match.term, match.parts) for match in hit.matches] == list(parts.items())
        (plain,) = search(provider, "red", mode=HYBRID).hits
        assert (plain.matches[0].parts, plain.keyword and plain.keyword.rank) == ((), 1)


def put_animals(provider: SearchProvider) -> None:
    """A fox in the first bucket, a cat in the second, a dog in both; with vectors, the dog's between the others'."""
    put(provider, "src_1", "fox", buckets=["bkt_1"])
    put(provider, "src_2", "dog", buckets=["bkt_1", "bkt_2"])
    put(provider, "src_3", "cat", buckets=["bkt_2"])
    vectors = [unit(1, 0), unit(1, 1), unit(0, 1)]
    provider.put_vectors(TEAM, MODEL, [(f"chk_{n}_1_0", vector) for n, vector in enumerate(vectors, start=1)])
