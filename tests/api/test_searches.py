"""Search over the API: results, scopes, filters, validation, and the isolation of teams and keys."""

from typing import Any

import pytest

from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import Daemon

HARBOUR = b"# Harbour\n\nThe umber quay was built of grey stone in 1880.\n"
MARKET = b"# Market\n\nThe market hall sells grey mullet.\n"


@pytest.fixture(scope="module")
def filled(shared: Daemon) -> Daemon:
    """A daemon with harbour and market in `inbox` and a copy of harbour in `other`; the workers have stopped."""
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


def test_result_has_the_text_its_source_and_its_location(filled: Daemon) -> None:
    page = body_of(filled.search("umber quay", buckets=["inbox"]))
    (result,) = page["data"]
    assert (page["object"], page["query"], page["agent"]) == ("search_results.page", "umber quay", None)
    assert (page["has_more"], page["warnings"]) == (False, [])
    expected: dict[str, Any] = {"filename": "harbour.md", "title": "harbour.md", "tags": ["sea", "stone"]}
    expected |= {"metadata": {"year": 1880, "open": True}, "bucket_ids": [filled.make_bucket()]}
    expected |= {"score": 1.0, "source_url": None}
    assert {name: result[name] for name in expected} == expected
    assert "umber quay" in result["text"]
    location = result["location"]
    assert (location["page"], location["headings"]) == (None, ["Harbour"])
    assert location["line_start"] <= 3 <= location["line_end"]
    text = filled.show(f"/v1/sources/{result['source_id']}/text")["text"]
    assert text[location["char_start"] : location["char_end"]] == result["text"]


ALL = {"harbour.md", "market.md", "copy.md"}
SCOPES: list[tuple[set[str], list[dict[str, Any]]]] = [
    (ALL, [{}, {"buckets": ["inbox", "other", "inbox"]}, {"tags": []}, {"score_threshold": 0}]),
    (set(), [{"buckets": []}, {"source_ids": []}, {"source_ids": ["src_missing"]}, {"tags": ["se"]}]),
    ({"copy.md"}, [{"buckets": ["other"]}, {"buckets": ["empty", "other"]}, {"tags": ["sea"], "buckets": ["other"]}]),
    ({"harbour.md", "market.md"}, [{"buckets": ["inbox"]}]),
    ({"harbour.md", "copy.md"}, [{"tags": ["sea"]}]),
    ({"harbour.md"}, [{"tags": ["sea", "stone"]}]),
]


@pytest.mark.rule("service.buckets")
def test_search_finds_only_sources_in_its_buckets_source_ids_and_tags(filled: Daemon) -> None:
    for expected, bodies in SCOPES:
        for body in bodies:
            assert names(filled, **body) == expected, body


@pytest.mark.rule("metadata_filter_too_large")
def test_search_finds_only_the_named_sources_and_accepts_at_most_200(filled: Daemon) -> None:
    (market,) = filled.found("mullet")
    for ids in ([market], [*[f"src_{number}" for number in range(199)], market]):
        assert names(filled, source_ids=ids) == {"market.md"}
    assert (
        names(filled, source_ids=[market], buckets=["other"])
        == names(filled, source_ids=[market], tags=["sea"])
        == set()
    )
    answer = filled.search("grey", source_ids=[f"src_{number}" for number in range(201)])
    assert details_of(answer, "metadata_filter_too_large") == {"max_source_ids": 200}
    page = filled.show("/v1/search", q="grey", source_ids=["src_missing", market])
    assert [result["source_id"] for result in page["data"]] == [market]


OPEN = {"type": "eq", "key": "open", "value": True}
FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"type": "gt", "key": "year", "value": 1900}, {"market.md"}),
    ({"type": "in", "key": "filename", "value": ["copy.md", "x"]}, {"copy.md"}),
    ({"type": "nin", "key": "year", "value": [1950, "1880"]}, {"harbour.md"}),
]
FILTERS.append(({"type": "or", "filters": [FILTERS[0][0], {"type": "and", "filters": [OPEN]}]}, ALL - {"copy.md"}))


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
def test_metadata_filters_select_sources(filled: Daemon, filters: dict[str, Any], expected: set[str]) -> None:
    assert names(filled, filters=filters) == expected


#: Invalid values by the path that the refusal names.
REFUSED: dict[str, list[Any]] = {
    "query": ["", "  \n", None, 1, ["grey"], "g" * 10_001],
    "max_num_results": [0, 51, "5", 1.5, True],
    "score_threshold": [1.1, -0.1, "0.5"],
    "buckets": ["inbox", ["inbox"] * 201],
    "filters.type": [{"type": "like", "key": "a", "value": 1}],
    "filters.filters": [{"type": "and", "filters": []}],
}
REFUSED |= {"buckets.0": [[1]], "source_ids.0": [[None]], "filters": [[]]}
REFUSED |= {"mode": ["fuzzy"], "tags": ["sea"], "explain": ["yes"], "team_id": ["team_x"]}


@pytest.mark.parametrize("path", REFUSED)
def test_invalid_search_is_refused_with_the_path_of_the_field(filled: Daemon, path: str) -> None:
    for value in REFUSED[path]:
        body = {"query": "grey", path.partition(".")[0]: value}
        assert refused_field(filled.ask("POST", "/v1/search", json=body)) == path, value


def test_null_fields_are_ignored_and_unknown_ones_named(filled: Daemon) -> None:
    fields = ("buckets", "source_ids", "filters", "tags", "max_num_results", "mode", "score_threshold", "explain")
    nothing: dict[str, Any] = dict.fromkeys(fields)
    page = body_of(filled.search("grey", **nothing, shape=None, colour="red", **{"x" * 99: 1}))
    assert {result["filename"] for result in page["data"]} == ALL
    assert page["warnings"][-1] == f"A search has no such field, so this had no effect: colour, {'x' * 40}."


def test_filter_by_tags_is_warned_of_since_it_compares_metadata(filled: Daemon) -> None:
    page = body_of(filled.search("grey", filters={"type": "ne", "key": "tags", "value": "sea"}))
    assert {result["filename"] for result in page["data"]} == ALL
    assert "`tags` chooses sources" in page["warnings"][-1]


def test_filters_that_nothing_in_the_scope_can_pass_are_named_if_nothing_is_found(filled: Daemon) -> None:
    def warned(**body: Any) -> list[str]:
        page = body_of(filled.search("grey", **body))
        return [each for each in page["warnings"] if each.startswith("`filters` compares")]

    absent = {"type": "eq", "key": "created_at", "value": "2024"}
    assert warned(filters=absent) == ["`filters` compares 'created_at' with a text: nothing that is searched has it."]
    wrong = {"type": "and", "filters": [{"type": "in", "key": "filename", "value": ["market.md", 7]}, absent]}
    assert warned(filters=wrong) == [
        "`filters` compares 'filename' with a number: what is searched has it as a text, never as a number.",
        "`filters` compares 'created_at' with a text: nothing that is searched has it.",
    ]
    # There are such values, and a denial holds without one.
    assert warned(filters={"type": "eq", "key": "filename", "value": "none.md"}) == []
    assert warned(filters={"type": "nin", "key": "created_at", "value": ["2024"]}) == []
    # Of what is outside of the scope, nothing is said.
    year = {"type": "gt", "key": "year", "value": 9999}
    assert warned(filters=year) == []
    assert warned(filters=year, source_ids=[]) == []
    assert warned(filters=year, buckets=["other"]) == [
        "`filters` compares 'year' with a number: what is searched has it as a text, never as a number."
    ]


def test_page_has_at_most_the_requested_number_of_results(filled: Daemon) -> None:
    for asked, found, has_more in ((2, 2, True), (50, 3, False)):
        page = body_of(filled.search("grey", max_num_results=asked))
        assert (len(page["data"]), page["has_more"]) == (found, has_more)


def test_score_threshold_drops_results_with_lower_scores(filled: Daemon) -> None:
    page = body_of(filled.search("grey mullet", buckets=["inbox"]))
    scores = {result["filename"]: result["score"] for result in page["data"]}
    assert scores["market.md"] == 1.0 > scores["harbour.md"] > 0
    assert names(filled, "grey mullet", score_threshold=1) == {"market.md"}
    assert names(filled, "grey", score_threshold=1.0) == ALL


ASKED: list[dict[str, Any]] = [
    {"buckets": ["inbox", "other"], "max_num_results": 2, "mode": "keyword"},
    {"tags": ["sea", "stone"]},
    {"tags": ["food"], "buckets": ["inbox"]},
    {"source_ids": ["src_missing"]},
    {"score_threshold": 0.5, "explain": True},
    {"agent": "svc-agent", "score_threshold": 1},
]


@pytest.mark.rule("agents.search")
@pytest.mark.parametrize("body", ASKED, ids=str)
def test_get_with_a_query_string_returns_the_same_page_as_post(filled: Daemon, body: dict[str, Any]) -> None:
    page = body_of(filled.ask("GET", "/v1/search", params={"q": "grey mullet", **body}))
    assert without_id(page) == without_id(body_of(filled.search("grey mullet", **body)))


@pytest.mark.rule("agents.search")
def test_unsupported_query_parameter_is_refused_with_a_hint_to_post(filled: Daemon) -> None:
    for name in ("filters", "filter", "vector_store_ids", "query", "dry_run", "colour"):
        answer = filled.ask("GET", "/v1/search", params={"q": "grey", name: "x"})
        assert refused_field(answer) == name
        assert "send POST /v1/search" in answer.json()["error"]["message"]


#: Invalid query strings by the parameter that the refusal names.
BAD_QUERIES = {
    "q": ["", "q=", "q=%20", f"q={'g' * 10_001}", "q=a&q=b"],
    "mode": ["q=a&mode=keyword&mode=hybrid", "q=a&mode=x"],
    "max_num_results": [f"q=a&max_num_results={value}" for value in ("x", "0", "51", "9" * 5000)],
    "score_threshold": [f"q=a&score_threshold={value}" for value in ("x", "1.1", "nan")],
    "explain": ["q=a&explain=x"],
    "team_id": ["q=a&team_id=x"],
}


@pytest.mark.parametrize("path", BAD_QUERIES)
def test_invalid_query_string_is_refused_with_the_name_of_the_parameter(filled: Daemon, path: str) -> None:
    for query in BAD_QUERIES[path]:
        assert refused_field(filled.ask("GET", f"/v1/search?{query}")) == path, query


@pytest.mark.rule("bucket_store_indexing_pending")
def test_search_without_indexed_sources_is_refused_as_pending_or_returns_an_empty_page(filled: Daemon) -> None:
    filled.make_bucket("void")
    pending = details_of(filled.search("grey", buckets=["empty"]), "bucket_store_indexing_pending")
    assert (pending["pending_member_count"], pending["retry_after_seconds"]) == (0, 1)
    assert filled.search("grey", buckets=["empty"]).json()["error"]["message"].endswith("content: nothing is in it.")
    assert names(filled, buckets=["empty", "void"]) == set()
    assert names(filled, "nothing-like-this", buckets=["inbox"]) == set()
    theirs = filled.add_team()
    assert body_of(filled.search("grey", key=theirs))["data"] == []
    filled.make_bucket("queue", key=theirs)
    filled.add_source(bucket="queue", key=theirs)
    refused = filled.search("grey", key=theirs)
    assert details_of(refused, "bucket_store_indexing_pending")["pending_member_count"] == 1
    message = "The bucket has no indexed content yet: 1 source is being indexed."
    assert refused.json()["error"]["message"] == message


def test_query_operators_are_searched_as_words(filled: Daemon) -> None:
    for query in ('"grey', "grey*", "grey OR", "NEAR(grey)", "text:grey", "(grey", "grey\\", "'; --", "-grey"):
        assert filled.search(query).status_code == 200, query
    assert names(filled, 'grey" AND "zzz') == ALL
    assert names(filled, 'log.info("grey zzz")') == ALL
    empty = body_of(filled.search('"grey zzz"'))
    assert (empty["data"], "without the marks" in empty["warnings"][0]) == ([], True)
