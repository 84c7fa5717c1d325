"""Search over the API: what is asked, where is looked, what comes back."""

from typing import Any

import pytest

from svc_daemon.provider.errors import ProviderFailed, SearchTimeout
from svc_daemon.wire.searches import SearchPage
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon

HARBOUR = b"# Harbour\n\nThe umber quay was built of grey stone in 1880.\n"
MARKET = b"# Market\n\nThe market hall sells grey mullet.\n"


@pytest.fixture(scope="module")
def filled(shared: Daemon) -> Daemon:
    """Two buckets: `inbox` with harbour and market, `other` with a second harbour; the workers have stopped."""
    shared.start()
    shared.make_bucket("other")
    shared.make_bucket("empty")
    shared.add_ready(HARBOUR, filename="harbour.md", tags="sea,stone", metadata='{"year": 1880, "open": true}')
    shared.add_ready(MARKET, filename="market.md", tags="food", metadata='{"year": 1950}')
    shared.add_ready(HARBOUR, filename="copy.md", bucket="other", tags="sea", metadata='{"year": "1880"}')
    shared.stop()
    return shared


def names(daemon: Daemon, query: str = "grey", **body: Any) -> set[str]:
    return {result["filename"] for result in body_of(daemon.search(query, **body))["data"]}


def test_a_result_tells_what_was_found_and_where(filled: Daemon) -> None:
    page = body_of(filled.search("umber quay", buckets=["inbox"]))
    assert SearchPage.model_validate(page, extra="forbid")
    assert (page["object"], page["query"], page["agent"]) == ("search_results.page", "umber quay", None)
    assert (page["has_more"], page["warnings"]) == (False, [])
    (result,) = page["data"]
    assert (result["filename"], result["title"], result["source_url"]) == ("harbour.md", "harbour.md", None)
    assert (result["tags"], result["metadata"]) == (["sea", "stone"], {"year": 1880, "open": True})
    assert result["bucket_ids"] == [filled.make_bucket()]
    assert result["score"] == 1.0
    assert "umber quay" in result["text"]
    place = result["location"]
    assert (place["page"], place["headings"]) == (None, ["Harbour"])
    assert place["line_start"] <= 3 <= place["line_end"]
    text = filled.show(f"/v1/sources/{result['source_id']}/text")["text"]
    assert text[place["char_start"] : place["char_end"]] == result["text"]


SCOPES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"harbour.md", "market.md", "copy.md"}),
    ({"buckets": ["inbox"]}, {"harbour.md", "market.md"}),
    ({"buckets": ["other"]}, {"copy.md"}),
    ({"buckets": ["inbox", "other", "inbox"]}, {"harbour.md", "market.md", "copy.md"}),
    ({"buckets": ["empty", "other"]}, {"copy.md"}),
    ({"buckets": []}, set()),
    ({"source_ids": []}, set()),
    ({"source_ids": ["src_missing"]}, set()),
    ({"tags": ["sea"]}, {"harbour.md", "copy.md"}),
    ({"tags": ["sea", "stone"]}, {"harbour.md"}),
    ({"tags": ["sea"], "buckets": ["other"]}, {"copy.md"}),
    ({"tags": ["se"]}, set()),
    ({"tags": []}, {"harbour.md", "market.md", "copy.md"}),
    ({"score_threshold": 0}, {"harbour.md", "market.md", "copy.md"}),
]


def test_a_search_keeps_to_its_scope(filled: Daemon) -> None:
    for body, expected in SCOPES:
        assert names(filled, **body) == expected


def test_named_sources_are_the_only_ones(filled: Daemon) -> None:
    (market,) = filled.found("mullet")
    assert names(filled, source_ids=[market]) == {"market.md"}
    assert names(filled, source_ids=[market], buckets=["other"]) == set()
    assert names(filled, source_ids=[market], tags=["sea"]) == set()
    assert names(filled, source_ids=[*[f"src_{number}" for number in range(199)], market]) == {"market.md"}


def test_over_200_sources_are_too_many(filled: Daemon) -> None:
    answer = filled.search("grey", source_ids=[f"src_{number}" for number in range(201)])
    assert details_of(answer, "metadata_filter_too_large") == {"max_source_ids": 200}


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"type": "eq", "key": "year", "value": 1880}, {"harbour.md"}),
    ({"type": "eq", "key": "year", "value": "1880"}, {"copy.md"}),
    ({"type": "gt", "key": "year", "value": 1900}, {"market.md"}),
    ({"type": "lte", "key": "year", "value": 1950}, {"harbour.md", "market.md"}),
    ({"type": "ne", "key": "open", "value": True}, {"market.md", "copy.md"}),
    ({"type": "in", "key": "filename", "value": ["copy.md", "x"]}, {"copy.md"}),
    ({"type": "nin", "key": "year", "value": [1950, "1880"]}, {"harbour.md"}),
    (
        {
            "type": "or",
            "filters": [
                {"type": "eq", "key": "year", "value": 1950},
                {"type": "and", "filters": [{"type": "eq", "key": "open", "value": True}]},
            ],
        },
        {"harbour.md", "market.md"},
    ),
]


def test_filters_choose_sources(filled: Daemon) -> None:
    for filters, expected in FILTERS:
        assert names(filled, filters=filters) == expected


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"query": ""}, "query"),
    ({"query": "  \n"}, "query"),
    ({"query": None}, "query"),
    ({"query": ["grey"]}, "query"),
    ({"query": "g" * 10_001}, "query"),
    ({"max_num_results": 0}, "max_num_results"),
    ({"max_num_results": 51}, "max_num_results"),
    ({"max_num_results": "5"}, "max_num_results"),
    ({"max_num_results": 1.5}, "max_num_results"),
    ({"mode": "fuzzy"}, "mode"),
    ({"score_threshold": 1.1}, "score_threshold"),
    ({"score_threshold": -0.1}, "score_threshold"),
    ({"buckets": "inbox"}, "buckets"),
    ({"buckets": [1]}, "buckets.0"),
    ({"source_ids": [None]}, "source_ids.0"),
    ({"tags": "sea"}, "tags"),
    ({"explain": "yes"}, "explain"),
    ({"filters": []}, "filters"),
    ({"filters": {"type": "like", "key": "a", "value": 1}}, "filters.type"),
    ({"filters": {"type": "and", "filters": []}}, "filters.filters"),
    ({"team_id": "team_x"}, "team_id"),
]


def test_a_question_that_does_not_fit_is_refused(filled: Daemon) -> None:
    for body, path in REFUSED:
        assert refused_field(filled.ask("POST", "/v1/search", json={"query": "grey", **body})) == path


def test_null_and_unknown_fields_are_as_if_not_sent(filled: Daemon) -> None:
    fields = ("buckets", "source_ids", "filters", "tags", "max_num_results", "mode", "score_threshold", "explain")
    nothing: dict[str, Any] = dict.fromkeys(fields)
    assert names(filled, **nothing, colour="red") == {"harbour.md", "market.md", "copy.md"}


def test_a_page_is_as_long_as_asked_for(filled: Daemon) -> None:
    page = body_of(filled.search("grey", max_num_results=2))
    assert (len(page["data"]), page["has_more"]) == (2, True)
    page = body_of(filled.search("grey", max_num_results=50))
    assert (len(page["data"]), page["has_more"]) == (3, False)


def test_a_threshold_drops_what_scores_less(filled: Daemon) -> None:
    page = body_of(filled.search("grey mullet", buckets=["inbox"]))
    scores = {result["filename"]: result["score"] for result in page["data"]}
    assert scores["market.md"] == 1.0 > scores["harbour.md"] > 0
    assert names(filled, "grey mullet", score_threshold=1) == {"market.md"}
    assert names(filled, "grey", score_threshold=1.0) == {"harbour.md", "market.md", "copy.md"}


def test_an_explanation_is_given_when_asked_for(filled: Daemon) -> None:
    first = body_of(filled.search("mullet", explain=True))["data"][0]["explain"]
    assert (first["rank"], [match["term"] for match in first["terms"]]) == (1, ["mullet"])
    assert body_of(filled.search("mullet"))["data"][0]["explain"] is None


def test_every_mode_answers(filled: Daemon) -> None:
    for mode in ["hybrid", "keyword", "semantic"]:
        page = body_of(filled.search("mullet", mode=mode))
        assert [result["filename"] for result in page["data"]] == ["market.md"]
        assert bool(page["warnings"]) == (mode == "semantic")


ASKED: list[dict[str, Any]] = [
    {"buckets": ["inbox", "other"], "max_num_results": 2, "mode": "keyword"},
    {"tags": ["sea", "stone"]},
    {"tags": ["food"], "buckets": ["inbox"]},
    {"source_ids": ["src_missing"]},
    {"score_threshold": 0.5, "explain": True},
    {"agent": "svc-agent", "score_threshold": 1},
]


def test_the_query_string_asks_the_same(filled: Daemon) -> None:
    for body in ASKED:
        page = body_of(filled.ask("GET", "/v1/search", params={"q": "grey mullet", **body}))
        posted = filled.search("grey mullet", **body)
        assert {**page, "request_id": ""} == {**body_of(posted), "request_id": ""}


def test_the_query_string_names_sources(filled: Daemon) -> None:
    (market,) = filled.found("mullet")
    page = filled.show("/v1/search", q="grey", source_ids=["src_missing", market])
    assert [result["source_id"] for result in page["data"]] == [market]


def test_what_a_query_string_cannot_ask_is_refused_and_not_passed_over(filled: Daemon) -> None:
    cases: list[str] = ["filters", "filter", "vector_store_ids", "query", "dry_run", "colour"]
    for name in cases:
        answer = filled.ask("GET", "/v1/search", params={"q": "grey", name: "x"})
        assert refused_field(answer) == name
        assert "send POST /v1/search" in answer.json()["error"]["message"]


def test_a_query_string_that_does_not_fit_is_refused(filled: Daemon) -> None:
    cases: list[tuple[str, str]] = [
        ("", "q"),
        ("q=", "q"),
        ("q=%20", "q"),
        (f"q={'g' * 10_001}", "q"),
        ("q=a&q=b", "q"),
        ("q=a&mode=keyword&mode=hybrid", "mode"),
        ("q=a&max_num_results=x", "max_num_results"),
        ("q=a&max_num_results=0", "max_num_results"),
        ("q=a&max_num_results=51", "max_num_results"),
        (f"q=a&max_num_results={'9' * 5000}", "max_num_results"),
        ("q=a&score_threshold=x", "score_threshold"),
        ("q=a&score_threshold=1.1", "score_threshold"),
        ("q=a&score_threshold=nan", "score_threshold"),
        ("q=a&explain=x", "explain"),
        ("q=a&mode=x", "mode"),
        ("q=a&team_id=x", "team_id"),
    ]
    for query, path in cases:
        assert refused_field(filled.ask("GET", f"/v1/search?{query}")) == path


def test_a_bucket_that_is_not_there_is_told(filled: Daemon) -> None:
    theirs = filled.make_bucket("theirs", key=filled.add_team())
    for bucket in ("missing", theirs):
        details_of(filled.search("grey", buckets=["inbox", bucket]), "bucket_not_found")


def test_nothing_indexed_is_pending_or_empty(filled: Daemon) -> None:
    filled.make_bucket("void")
    told = details_of(filled.search("grey", buckets=["empty"]), "bucket_store_indexing_pending")
    assert (told["pending_member_count"], told["retry_after_seconds"]) == (0, 1)
    assert names(filled, buckets=["empty", "void"]) == set()
    assert names(filled, "nothing-like-this", buckets=["inbox"]) == set()
    theirs = filled.add_team()
    assert body_of(filled.search("grey", key=theirs))["data"] == []
    filled.make_bucket("queue", key=theirs)
    filled.add_source(bucket="queue", key=theirs)
    told = details_of(filled.search("grey", key=theirs), "bucket_store_indexing_pending")
    assert told["pending_member_count"] == 1


def test_no_team_finds_what_belongs_to_another(filled: Daemon) -> None:
    (mine,) = filled.found("mullet")
    theirs = filled.add_team()
    filled.make_bucket(key=theirs)
    filled.make_bucket("b", key=theirs)
    assert filled.found("mullet", key=theirs) == []
    assert filled.found("mullet", key=theirs, source_ids=[mine]) == []


def test_a_limited_key_searches_its_buckets(filled: Daemon) -> None:
    limited = filled.add_key(buckets=(filled.make_bucket("other"),))
    assert names(filled, key=limited) == {"copy.md"}
    details_of(filled.search("grey", key=limited, buckets=["inbox"]), "bucket_not_found")
    nowhere = filled.add_key(buckets=())
    assert names(filled, key=nowhere) == set()


def test_an_index_in_trouble_is_told(filled: Daemon) -> None:
    filled.provider.fail("search", ProviderFailed("The engine is on fire.", retryable=True))
    details_of(filled.search("grey"), "search_failed")
    filled.provider.fail("search", SearchTimeout())
    assert details_of(filled.search("grey"), "search_timeout") == {"budget_seconds": 10}
    assert names(filled) == {"harbour.md", "market.md", "copy.md"}


def test_what_looks_like_syntax_is_only_words(filled: Daemon) -> None:
    for query in ('"grey', "grey*", "grey OR", "NEAR(grey)", "text:grey", "(grey", "grey\\", "'; --", "-grey"):
        assert filled.search(query).status_code == 200, query
    assert names(filled, 'grey" AND "zzz') == {"harbour.md", "market.md", "copy.md"}


def test_the_default_agent_searches_every_active_bucket(filled: Daemon) -> None:
    for agent in ["svc-agent", "svc-rag-agent"]:
        page = body_of(filled.search("grey", agent=agent))
        assert page["agent"] == agent
        assert {result["filename"] for result in page["data"]} == names(filled)


def test_an_agent_that_does_not_exist_is_no_way_to_everything(filled: Daemon) -> None:
    cases: list[tuple[str, str]] = [("svc-agent:sales", "agent_not_found"), ("gpt-5", "model_not_found")]
    for agent, code in cases:
        answer = filled.search("grey", agent=agent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, code)


def test_a_search_names_no_endless_list_of_buckets(filled: Daemon) -> None:
    assert refused_field(filled.search("grey", buckets=["inbox"] * 201)) == "buckets"
