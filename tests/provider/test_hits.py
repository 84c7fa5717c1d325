"""What a search returns of a hit: its words, and where they are."""

from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.provider.samples import put, search


def test_a_hit_tells_in_which_parts_its_words_are_and_where_in_the_text(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "A fox. Foxes, and a dog!", title="fox", buckets=["bkt_1"])
    (hit,) = search(provider, "dog fox unicorn", explain=True).hits
    assert [(match.term, match.parts) for match in hit.matches] == [("dog", ("text",)), ("fox", ("title", "text"))]
    assert [hit.chunk.text[slice(*span)] for span in hit.highlights] == ["fox", "Foxes", "dog"]


def test_a_word_without_spaces_around_it_is_listed_with_the_parts_that_have_it(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "東京都に住む人", "駅の人", title="東京の案内", buckets=["bkt_1"])
    hits = search(provider, "東京 住む", explain=True).hits
    parts = [{match.term: match.parts for match in hit.matches} for hit in hits]
    assert parts == [{"東京": ("title", "text"), "住む": ("text",)}, {"東京": ("title",)}]
