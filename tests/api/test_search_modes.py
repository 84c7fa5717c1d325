"""Search modes over the API: keyword, semantic and hybrid, with warnings, explanations, failures and timeouts."""

from typing import Any

import httpx
import pytest

from svc_daemon.embed.contract import EmbedFailed
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.embedders import WordEmbedder
from tests.api.test_maintenance import switch
from tests.provider.samples import MODEL
from tests.workers.rebuilds import begin

HARBOUR = b"# Harbour\n\nThe umber pier was built in 1880.\n"
MARKET = b"# Market\n\nThe hall sells grey mullet.\n"
WALL = b"# Wall\n\nMade of granite alone.\n"


@pytest.fixture(scope="module")
def filled(shared: Daemon) -> Daemon:
    """A daemon with three sources in a bucket, of which `wall.md` has no vectors yet; the workers have stopped."""
    shared.start()
    shared.add_ready(HARBOUR, filename="harbour.md")
    shared.add_ready(MARKET, filename="market.md")
    embed(shared)
    shared.add_ready(WALL, filename="wall.md")
    shared.stop()
    return shared


@pytest.fixture
def model(filled: Daemon) -> WordEmbedder:
    """An embedding model, which the daemon uses in the test."""
    model = WordEmbedder()
    filled.embed_with(model)
    return model


def embed(daemon: Daemon) -> None:
    """Give every chunk a vector."""
    missing = daemon.provider.list_unembedded(daemon.team_id, MODEL, 100)
    vectors = WordEmbedder().embed([chunk.text for chunk in missing])
    names = [chunk.chunk_id for chunk in missing]
    daemon.provider.put_vectors(daemon.team_id, MODEL, list(zip(names, vectors, strict=True)))


def page_of(daemon: Daemon, query: str, **body: Any) -> dict[str, Any]:
    return body_of(daemon.search(query, **body))


def names(page: dict[str, Any]) -> list[str]:
    return [result["filename"] for result in page["data"]]


def test_refused_search_does_not_call_the_model(daemon: Daemon) -> None:
    model, asked = WordEmbedder(), []
    model.on_query = lambda: asked.append("query")
    daemon.embed_with(model)
    switch(daemon, enabled=False)
    details_of(daemon.search("jetty"), "search_disabled")
    switch(daemon, enabled=True)
    details_of(daemon.search("jetty", buckets=["nowhere"]), "bucket_not_found")
    begin(daemon)
    details_of(daemon.search("jetty"), "team_store_maintenance")
    assert asked == []


def test_each_mode_has_its_results_and_its_warning_about_missing_vectors(filled: Daemon, model: WordEmbedder) -> None:
    missing, both = "1 of 3 passages have no vectors yet", ["harbour.md", "market.md"]
    for mode, found, warnings in (
        ("hybrid", both, [f"{missing} and are found by their words alone."]),
        ("semantic", both, [f"{missing} and can't be found by meaning."]),
        ("keyword", [], []),
    ):
        page = page_of(filled, "jetty", mode=mode)
        assert (names(page), page["warnings"]) == (found, warnings), mode
    assert names(page_of(filled, "herring jetty herring", mode="semantic")) == both[::-1]
    assert names(page_of(filled, "granite"))[0] == "wall.md"


def test_explanation_shows_the_semantic_and_the_keyword_ranks_and_the_fused_score(
    filled: Daemon, model: WordEmbedder
) -> None:
    page = page_of(filled, "umber mullet", explain=True)
    explained = {result["filename"]: result["explain"] for result in page["data"]}
    assert names(page)[0] == "market.md"
    market, harbour = explained["market.md"], explained["harbour.md"]
    assert market["semantic"] == {"rank": 1, "cosine": pytest.approx(1.0, abs=0.01), "model": MODEL}
    assert market["keyword"]["rank"] in {1, 2}
    assert [(term["term"], term["parts"]) for term in market["terms"]] == [("mullet", ["text"])]
    assert market["fused"] == pytest.approx(1 / 61 + 1 / (60 + market["keyword"]["rank"]))
    assert (market["rank"], harbour["rank"]) == (1, 2)
    (plain,) = page_of(filled, "umber", mode="keyword", explain=True)["data"]
    assert (plain["explain"]["semantic"], plain["explain"]["fused"]) == (None, None)


@pytest.mark.rule("search_failed")
def test_hybrid_search_falls_back_to_keywords_if_the_model_fails_and_semantic_search_fails(
    filled: Daemon, model: WordEmbedder
) -> None:
    model.failure = EmbedFailed("The model is out to lunch.")
    page = page_of(filled, "umber jetty")
    warning = "The search used keywords only: The model is out to lunch."
    assert (names(page), page["warnings"]) == (["harbour.md"], [warning])
    answer = filled.search("umber", mode="semantic")
    details_of(answer, "search_failed")
    assert "out to lunch" in answer.json()["error"]["message"]
    assert page_of(filled, "umber", mode="keyword")["warnings"] == []


@pytest.mark.rule("search_timeout", "search_failed")
def test_search_fails_if_the_model_takes_too_long_or_returns_a_vector_of_another_size(
    filled: Daemon, model: WordEmbedder
) -> None:
    model.on_query = lambda: filled.leap(1)
    model.failure = EmbedFailed("The model took too long.")
    for mode in ("hybrid", "semantic"):
        assert details_of(filled.search("umber", mode=mode), "search_timeout") == {"budget_seconds": 10}
    model.embed_query = lambda text, deadline_s: b"\0" * 8  # type: ignore[method-assign]
    details_of(filled.search("umber"), "search_failed")


@pytest.mark.rule("search_timeout")
def test_running_search_is_interrupted_at_its_timeout(working: Daemon) -> None:
    """The clock jumps at its 3rd, 4th or 5th reading; the first two readings are before the query begins."""
    working.add_ready("\n\n".join(f"# Part {number}\n\nThe umber quay." for number in range(1400)).encode())
    embed(working)
    working.stop()
    working.embed_with(WordEmbedder())
    for mode in ("keyword", "hybrid"):
        for looks in (3, 4, 5):
            answer = wait_until(lambda: _search_interrupted(working, looks, mode), "a search is interrupted")  # noqa: B023
            assert details_of(answer, "search_timeout") == {"budget_seconds": 10}
            assert len(page_of(working, "quay", mode=mode)["data"]) == 10


def _search_interrupted(daemon: Daemon, looks: int, mode: str) -> httpx.Response | None:
    """Return the response of an interrupted search, or None if the search succeeded, so that the caller retries.

    In a cluster, the nodes' threads read the clock too, so it may jump before the search begins.
    """
    daemon.leap(looks)
    answer = daemon.search("quay", mode=mode)
    return None if answer.is_success else answer
