"""Models of requests and responses, the codes and headers of the contract, and the text of tools' answers."""

import re
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from svc_daemon.tools.searches import NOT_AT_ALL, PARTLY, AnswerCitation, Answered
from svc_daemon.wire import batches, buckets, sessions, sources
from svc_daemon.wire.buckets import SLUG_PATTERN, BucketCreate, BucketFields, BucketUpdate, Chunking
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.error_codes import ErrorCode, SourceErrorCode
from svc_daemon.wire.light.errors import ErrorEnvelope
from svc_daemon.wire.light.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION
from svc_daemon.wire.searches import SearchRequest


def is_valid(model: type[BaseModel], body: Any) -> bool:
    try:
        model.model_validate(body)
    except ValidationError:
        return False
    return True


def test_slugs_are_validated_alike_in_paths_and_bodies() -> None:
    right = ("a", "0", "a-b", "a--b", "x" * 63, "2026-handbook")
    wrong = ("", "x" * 64, "-a", "a-", "-", "A", "a_b", "bkt_1", "a b", "a.b", "ü", "../a", "a\n", "\u0661")
    slugs = dict.fromkeys(right, True) | dict.fromkeys(wrong, False)
    assert {slug: re.fullmatch(SLUG_PATTERN, slug) is not None for slug in slugs} == slugs
    assert {slug: is_valid(BucketCreate, {"slug": slug}) for slug in slugs} == slugs


def test_chunking_requires_ordered_sizes_and_an_overlap_of_at_most_half() -> None:
    right = [(800, 1000, 1100, 0), (800, 800, 800, 0), (100, 100, 8000, 50), (800, 1000, 1100, 400)]
    wrong = [(800, 1000, 1100, 401), (101, 101, 101, 51), (801, 800, 1100, 0), (800, 1101, 1100, 0)]
    wrong += [(99, 1000, 1100, 0), (800, 1000, 8001, 0), (800, 1000, 1100, -1)]
    names = ("min", "target", "max", "overlap")
    for given in right:
        options = dict(zip(names, given, strict=True))
        assert Chunking(**options).model_dump() == options
    assert [given for given in wrong if is_valid(Chunking, dict(zip(names, given, strict=True)))] == []
    assert Chunking() == Chunking(target=1000, min=800, max=1100, overlap=0)


def test_bucket_fields_reject_wrong_types_and_sizes_and_ignore_unknown_fields() -> None:
    wrong: list[dict[str, Any]] = [{"name": ""}, {"name": "x" * 201}, {"name": 1}, {"description": "x" * 2001}]
    wrong += [{"metadata": []}, {"metadata": "{}"}, {"dry_run": "true"}, {"dry_run": 1}]
    wrong += [{"chunking": {"target": "1000"}}, {"chunking": {"target": 1000.5}}, {"chunking": []}]
    assert [body for body in wrong if is_valid(BucketFields, body)] == []
    assert BucketFields.model_validate({"colour": "red"}) == BucketFields(), "an unknown field was not ignored"


def test_bucket_update_has_only_the_sent_fields_and_rejects_unknown_statuses() -> None:
    assert [status for status in ("deleting", "Active", "", 1) if is_valid(BucketUpdate, {"status": status})] == []
    sent = {"description": "", "metadata": {}, "status": "archived"}
    assert BucketUpdate.model_validate(sent).model_dump(exclude_unset=True) == sent


def test_search_requires_a_query_and_rejects_invalid_fields() -> None:
    request = SearchRequest.model_validate({"query": "q"})
    defaults = (request.max_num_results, request.mode, request.buckets, request.score_threshold)
    assert defaults == (10, "hybrid", None, None)
    wrong: list[dict[str, Any]] = [{"query": each} for each in ("", None, 1)]
    fields: list[dict[str, Any]] = [{"buckets": "docs"}, {"buckets": [1]}, {"source_ids": {}}, {"filters": []}]
    fields += [{"tags": "a,b"}, {"mode": "fuzzy"}, {"explain": "yes"}]
    fields += [{"max_num_results": each} for each in (0, "10", 1.5, True)]
    fields += [{"score_threshold": each} for each in (-0.1, 1.1, "0.5")]
    wrong += [{}, *({"query": "q", **each} for each in fields)]
    assert [body for body in wrong if is_valid(SearchRequest, body)] == []
    assert all(is_valid(SearchRequest, {"query": "q", "score_threshold": each}) for each in (0, 1, 0.5))


#: From the tables of the specification; `[]` marks an array.
SPECIFIED: dict[type, str] = {
    buckets.BucketAnswer: "id string, teamId string, slug string, name string, status string, knowledgeIds string[],"
    " memberCount integer, counts object, bucketStore object, request_id string",
    buckets.BucketPutAnswer: "created boolean, request_id string",
    buckets.BucketCounts: "total integer, file integer, intents integer, website integer, qa integer,"
    " retrievable integer",
    buckets.BucketStore: "status string, member_count integer, indexed_member_count integer,"
    " pending_member_count integer",
    buckets.BucketList: "team_id string, buckets object[], request_id string",
    sources.SourceAnswer: "id string, object string, status string, ready boolean, bucket_sync_status string,"
    " title string, filename string, content_type string, size_bytes integer, sha256 string, task object,"
    " request_id string",
    sources.SourceVerified: "provider object",
    sources.SourceMember: "id string, type string, status string, ready boolean, bucketSyncStatus string",
    sources.TaskReference: "id string, type string, status string",
    sessions.UploadCreate: "filename string, content_type string, size_bytes integer, title string, tags string[],"
    " metadata object",
    sessions.Upload: "session_id string, upload_strategy string, upload_url string, expires_at string,"
    " request_id string",
    batches.BatchCreate: "manifest object, files object[]",
    batches.Manifest: "version integer, batch_idempotency_key string, items object[]",
    batches.ManifestItem: "client_file_id string, filename string, title string",
    batches.BatchFile: "client_file_id string, filename string, content_type string, size_bytes integer",
    batches.BatchTarget: "client_file_id string, upload_url string",
    batches.BatchFinalize: "mode string",
    batches.BatchFinalized: "batch_id string, status string, finalized object[], pending object[], failed object[],"
    " replayed object[], request_id string",
    batches.FinalizedItem: "client_file_id string, session_id string, knowledge_id string, task_id string",
    batches.PendingItem: "client_file_id string, session_id string, reason string",
    batches.FailedItem: "error object",
    batches.BatchCounters: "queued integer, indexing integer, active integer, failed integer",
    sources.UrlImport: "url string, webhook object, force boolean",
    sources.Webhook: "url string, metadata object",
}


def type_of(schema: dict[str, Any], models: dict[str, Any]) -> str:
    """Return the type of a field, without null if it is nullable."""
    if "$ref" in schema:
        return type_of(models[schema["$ref"].rpartition("/")[2]], models)
    if "anyOf" in schema:
        (schema,) = (each for each in schema["anyOf"] if each.get("type") != "null")
        return type_of(schema, models)
    if schema.get("type") == "array":
        return type_of(schema["items"], models) + "[]"
    return str(schema.get("type", "any"))


@pytest.mark.rule("bucket.fields", "bucket.list", "source.fields", "session.fields", "batch.items")
@pytest.mark.parametrize(("model", "text"), SPECIFIED.items())
def test_models_have_the_fields_of_the_specification(model: Any, text: str) -> None:
    schema = TypeAdapter(model).json_schema()
    fields = {name: type_of(each, schema.get("$defs", {})) for name, each in schema["properties"].items()}
    specified = dict(field.split() for field in text.split(","))
    assert {name: fields.get(name) for name in specified} == specified


PLACE: dict[str, Any] = {"source_url": None, "page": 3, "line_start": None, "line_end": None, "headings": []}
NAMES = {"source_id": "src_1", "title": "Handbook", "filename": "handbook.pdf", "citation": "handbook.pdf, page 3"}
CITATION = AnswerCitation.model_validate({"number": 1, "quote": "They get 30 days.", **NAMES, **PLACE})


def lines(grounded: bool, citations: list[AnswerCitation], *warnings: str) -> list[str]:
    answered = Answered(answer="30 days. [1]", grounded=grounded, citations=citations, warnings=list(warnings))
    return answered.text().split("\n")


def test_text_of_an_answer_ends_with_its_grounding_and_warnings() -> None:
    assert lines(True, [CITATION])[1:-1] == []
    assert lines(False, [CITATION])[1:-1] == [PARTLY]
    assert lines(False, [])[1:] == [NOT_AT_ALL]
    assert lines(True, [CITATION], "It went by keyword.")[-1] == "Warning: It went by keyword."


def test_error_codes_are_lowercase_words_and_unique_across_both_kinds() -> None:
    codes = [*ErrorCode, *SourceErrorCode]
    assert all(re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", code) for code in codes)
    assert len(set(codes)) == len(codes)
    assert all(code.name.lower() == code.value for code in codes)


@pytest.mark.rule("error.envelope")
def test_error_envelope_is_as_specified() -> None:
    error = {"code": "empty_file", "message": "m", "retryable": False, "details": {"a": 1}}
    envelope = {"error": error, "request_id": "req_1"}
    assert TypeAdapter(ErrorEnvelope).validate_python(envelope, extra="forbid") == envelope


def test_header_names_are_unique() -> None:
    names = [value for name, value in vars(headers).items() if name.isupper()]
    assert len({name.lower() for name in names}) == len(names)
    assert {"Idempotency-Key", "Idempotent-Replayed", "X-Request-Id", "Retry-After"} <= set(names)


def test_version_and_api_range_are_well_formed() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    assert API_OLDEST <= API_NEWEST
    assert f"{API_OLDEST}-{API_NEWEST}" == API_RANGE
