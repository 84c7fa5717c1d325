"""Scope fields under any name: searches, answers, agents, keys and tools apply or refuse them and ignore none."""

from itertools import product
from typing import Any

import httpx
import pytest

from svc_daemon.wire.requests import AGENT, BUCKETS, FILTERS, FOREIGN, PLAIN, SOURCES, TAGS
from tests.api.answers import details_of, refused_field, refused_param
from tests.api.daemons import Daemon
from tests.api.tool_callers import Caller

QUESTION = "Where is the umber quay?"
#: Scope fields of this API, of OpenAI's and of others, in spellings that a client may use.
SPELLED = ("bucket_ids", "bucketSlugs", "Bucket", "bucket-id", "vectorStoreIds", "store_ids", "SourceId", "source_ids")
NAMES = sorted({*SPELLED, *(name for table in (PLAIN, FOREIGN) for names in table.values() for name in names)})
#: Other names that look like a scope, in neither `PLAIN` nor `FOREIGN`.
OTHERS = (
    "bucket_name", "bucketNames", "allowed_buckets", "exclude_buckets", "buckets[]", "bucket.id", "Buckets ", "bkts",
    "bucket\u200b", "\uff42ucket", "source_name", "dataSources", "file_name", "filename", "filterBy", "tags_any",
    "bukets", "source_idd", "souce", "fliters", "agnet_",
)  # fmt: skip
#: `store` is another field of OpenAI's API, and `file` is a part of a message.
NAMES.remove("store")
NAMES.remove("file")


class TwoBuckets:
    """A daemon with two buckets with similar documents; scopes in the tests mean the bucket `left`."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.left, self.right = daemon.make_bucket("left"), daemon.make_bucket("right")
        self.source = self._add("left", "The umber quay is on the left side.")
        self.other = self._add("right", "The umber quay is on the right side.")
        daemon.post("/v1/agents", 201, json={"agent_id": "left", "policy": {"bucket_ids": ["left"]}})

    def _add(self, bucket: str, text: str) -> str:
        about = {"bucket": bucket, "filename": f"{bucket}.md", "tags": bucket, "metadata": f'{{"side": "{bucket}"}}'}
        return self.daemon.add_ready(text.encode(), **about)

    def values(self, name: str, *, large: bool) -> list[Any]:
        """Return values of the field that mean the left bucket alone, and invalid ones."""
        kinds = {bare: kind for table in (PLAIN, FOREIGN) for kind, names in table.items() for bare in names}
        bare = name.lower().replace("_", "").replace("-", "")
        kind = kinds.get(bare) or kinds[bare.removesuffix("s")]
        one: dict[str, list[Any]] = {BUCKETS: ["left", self.left], SOURCES: [self.source], TAGS: ["left"]}
        one |= {AGENT: ["svc-agent:left", "left"], FILTERS: [{"type": "eq", "key": "side", "value": "left"}]}
        # An empty list of tags matches every source.
        nothing: list[Any] = [] if kind == TAGS else [[], {}]
        found = [value for each in one[kind] for value in (each, [each])]
        # A foreign name is refused whatever its value, but for null.
        is_foreign = bare not in PLAIN[kind] and not large
        return [*found[:2], []] if is_foreign else [*found, *nothing, "", {"id": self.left}, 7]

    def is_narrowed(self, answer: httpx.Response) -> bool:
        """Whether the request was refused, or the response has nothing of the right bucket."""
        return 400 <= answer.status_code < 500 or (answer.status_code == 200 and self.other not in answer.text)


@pytest.fixture(scope="module")
def two_buckets(shared: Daemon) -> TwoBuckets:
    shared.start()
    return TwoBuckets(shared)


def test_search_without_a_scope_finds_sources_of_both_buckets(two_buckets: TwoBuckets) -> None:
    assert {two_buckets.source, two_buckets.other} <= set(two_buckets.daemon.found("umber quay"))


ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/search", {"query": "umber quay"}),
    ("/v1/responses", {"model": "svc-agent", "input": QUESTION}),
    ("/v1/chat/completions", {"model": "svc-agent", "messages": [{"role": "user", "content": QUESTION}]}),
]


@pytest.mark.rule("agents.scope")
@pytest.mark.parametrize("name", NAMES)
def test_scope_field_of_any_known_name_is_applied_or_refused(two_buckets: TwoBuckets, name: str, large: bool) -> None:
    values = two_buckets.values(name, large=large)
    for (path, body), value in product(ROUTES, values):
        if path != "/v1/search" and value not in values[:2] and not large:
            # All routes share the code that reads a scope.
            continue
        answer = two_buckets.daemon.ask("POST", path, json=body | {name: value})
        assert two_buckets.is_narrowed(answer), (value, answer.text)
        if isinstance(value, str | list) and all(isinstance(each, str) for each in value):
            query = {name: value or ""}
            details_of(two_buckets.daemon.ask("POST", path, json=body, params=query), "invalid_request")
            answer = two_buckets.daemon.ask("GET", path, params={"q": "umber quay"} | query)
            assert path != "/v1/search" or two_buckets.is_narrowed(answer), value
        if value is not values[0] and not large:
            # A nested field is refused whatever its value.
            continue
        for inner in ({"type": "file_search", name: value}, {"type": "file_search", "file_search": {name: value}}):
            for outer in ({"tools": [inner]}, {"options": inner}, {"tool_resources": {"file_search": {name: value}}}):
                details_of(two_buckets.daemon.ask("POST", path, json=body | outer), "invalid_request")


def test_field_whose_name_resembles_a_scope_is_applied_or_refused(two_buckets: TwoBuckets) -> None:
    for name in OTHERS:
        daemon, body = two_buckets.daemon, {name: ["left"]}
        answers = [daemon.ask("POST", path, json=fields | body) for path, fields in ROUTES]
        answers += [daemon.ask("POST", "/v1/agents", json=fields) for fields in (body, {"policy": body})]
        for answer in answers:
            is_taken = answer.is_success and two_buckets.left in answer.text and two_buckets.other not in answer.text
            assert is_taken or answer.status_code == 400, answer.text
        key = daemon.ask("POST", "/v1/keys", json={"name": "x", "preset": "read", **body})
        assert key.status_code == 400 or key.json()["buckets"] == [two_buckets.left]
        result = Caller(daemon).call("svc-search", query="umber quay", **body)
        assert result.is_error or two_buckets.other not in str(result)


@pytest.mark.rule("agents.scope")
def test_property_of_documents_as_a_field_is_refused_by_searches_and_questions(two_buckets: TwoBuckets) -> None:
    names = ("content_type", "mimeType", "source_url", "language", "created_after", "date", "path", "exclude")
    for name in names:
        assert refused_field(two_buckets.daemon.search("umber quay", **{name: "x"})) == name
    for name, (path, body) in product((*names, "score_threshold"), ROUTES[1:]):
        assert refused_param(two_buckets.daemon.ask("POST", path, json={**body, name: "x"})) == name


@pytest.mark.rule("agents.scope")
@pytest.mark.parametrize("name", NAMES)
def test_tool_applies_or_refuses_a_scope_field_of_any_known_name(
    two_buckets: TwoBuckets, name: str, large: bool
) -> None:
    tools, values = Caller(two_buckets.daemon), two_buckets.values(name, large=large)
    for tool, arguments in (("svc-search", {"query": "umber quay"}), ("svc-ask", {"question": QUESTION})):
        # Both tools share the code that reads a scope.
        some = values if large or tool == "svc-search" else values[:2]
        tried = [value for value in some if (name, value) != ("agent", "")]
        results = tools.call_together(*((tool, {**arguments, name: value}) for value in tried))
        for value, result in zip(tried, results, strict=True):
            assert result.is_error or two_buckets.other not in str(result), (tool, value)


def test_search_accepts_synonyms_of_scope_fields(two_buckets: TwoBuckets) -> None:
    filters = {"type": "eq", "key": "side", "value": "left"}
    cases: list[tuple[str, Any]] = [("bucket", "left"), ("bucket", ["left"]), ("bucket_id", "left"), ("tag", "left")]
    cases += [("bucketSlugs", ["left"]), ("source", two_buckets.source), ("sourceIds", [two_buckets.source])]
    cases += [("filter", filters), ("model", "svc-agent:left")]
    for named, value in cases:
        assert two_buckets.daemon.found("umber quay", **{named: value}) == [two_buckets.source], (named, value)
        if isinstance(value, str):
            query = {"q": "umber quay", named: value}
            hits = two_buckets.daemon.show("/v1/search", **query)["data"]
            assert {hit["source_id"] for hit in hits} == {two_buckets.source}
        assert Caller(two_buckets.daemon).data("svc-search", query="umber quay", **{named: value})["results"]


def test_refusal_names_the_wrong_field_and_the_right_one(two_buckets: TwoBuckets) -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"vector_store_ids": ["left"]}, "vector_store_ids", "`buckets`"),
        ({"storeId": "left"}, "storeId", "`buckets`"),
        ({"knowledge_ids": ["x"]}, "knowledge_ids", "`source_ids`"),
        ({"metadata": {"side": "left"}}, "metadata", "`filters`"),
        ({"options": {"bucket": "left"}}, "options.bucket", "`buckets`"),
        ({"bucket": "left", "buckets": ["right"]}, "bucket", "`buckets`"),
        ({"bucket": "left", "bucket_id": "right"}, "bucket_id", "`buckets`"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["left"]}]}, "tools.0.vector_store_ids", "`buckets`"),
    ]
    for body, path, right in cases:
        (error,) = details_of(two_buckets.daemon.search("umber quay", **body), "invalid_request")["errors"]
        assert (error["path"], right in error["message"]) == (path, True)


def test_null_scope_is_ignored_and_an_empty_list_finds_nothing(two_buckets: TwoBuckets) -> None:
    for name in ("bucket", "vector_store_ids", "buckets"):
        assert len(two_buckets.daemon.found("umber quay", **{name: None})) == 2, name
    for name in ("buckets", "source_ids", "bucket"):
        nothing: dict[str, Any] = {name: []}
        assert two_buckets.daemon.found("umber quay", **nothing) == []
        refused = Caller(two_buckets.daemon).refuse("svc-search", query="umber quay", **nothing)
        assert refused["code"] == "invalid_request", name


@pytest.mark.rule("agents.scope")
@pytest.mark.parametrize("name", NAMES)
def test_creating_an_agent_or_key_applies_or_refuses_a_scope_field(
    two_buckets: TwoBuckets, name: str, large: bool
) -> None:
    daemon = two_buckets.daemon
    # An empty object is valid: as filters, and as a policy without changes.
    values = [value for value in two_buckets.values(name, large=large) if value != {}]
    for number, (value, at_top) in enumerate(product(values, (True, False))):
        scope = {name: value} if at_top else {"policy": {name: value}}
        body = {"agent_id": f"{name.replace('-', '.')}-{number}-{at_top}", **scope}
        made = daemon.ask("POST", "/v1/agents", json=body)
        if made.is_success and "agent" not in name:  # an agent's body may have its own id in it
            assert daemon.found("umber quay", agent=made.json()["model"]) in ([], [two_buckets.source]), body
        assert made.is_success or made.status_code == 400, made.text
        key = daemon.ask("POST", "/v1/keys", json={"name": "x", "preset": "admin", name: value})
        if key.is_success:
            assert daemon.search("umber quay", key=key.json()["key"], agent="svc-agent:left").is_success
            assert two_buckets.other not in daemon.search("umber quay", key=key.json()["key"]).text


def test_policy_and_key_accept_synonyms_of_scope_fields(two_buckets: TwoBuckets) -> None:
    body = {"agent_id": "plain", "policy": {"bucket": "left"}}
    policy = two_buckets.daemon.post("/v1/agents", 201, json=body)["policy"]
    assert (policy["scope"], policy["bucket_ids"]) == ("buckets", [two_buckets.left])
    body = {"name": "x", "preset": "read", "bucket_ids": "left"}
    assert two_buckets.daemon.post("/v1/keys", 201, json=body)["buckets"] == [two_buckets.left]
