"""What every search provider must do with vectors; a part of `ProviderContract`."""

import pytest

from svc_daemon.provider.contract import SearchProvider
from svc_daemon.provider.errors import ProviderFailed
from tests.provider.openings import OpenedProvider, Reopen
from tests.provider.samples import MODEL, TEAM, make_document, unit


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
        provider.drop_vectors(TEAM, None)
