"""What the embedded provider returns of a hit, where its ways of finding that out differ."""

from svc_daemon.provider.embedded.hits import WALKED
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.provider.samples import put, search, terms


def test_a_word_that_most_chunks_have_is_seen_in_those_of_a_page(provider: EmbeddedProvider) -> None:
    """So many that the page's chunks are looked up one by one, and not found by a walk through the word's."""
    texts = [f"fox {'dog' if number % 3 else 'cat'}" for number in range(3 * WALKED)]
    put(provider, "src_1", *texts, title="fox", buckets=["bkt_1"])
    assert terms(search(provider, "fox dog", limit=2)) == [["fox", "dog"]] * 2
    (hit, _) = search(provider, "cat fox", limit=2, explain=True).hits
    assert [(match.term, match.parts) for match in hit.matches] == [("cat", ("text",)), ("fox", ("title", "text"))]


def test_a_word_without_spaces_around_it_is_listed_with_the_parts_that_have_it(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "東京都に住む人", "駅の人", title="東京の案内", buckets=["bkt_1"])
    hits = search(provider, "東京 住む", explain=True).hits
    parts = [{match.term: match.parts for match in hit.matches} for hit in hits]
    assert parts == [{"東京": ("title", "text"), "住む": ("text",)}, {"東京": ("title",)}]
