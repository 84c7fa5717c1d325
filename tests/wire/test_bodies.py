"""Models of requests and responses, the codes of the contract, and the text of tools' answers."""

import re
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from svc_daemon.tools.searches import NOT_AT_ALL, PARTLY, AnswerCitation, Answered
from svc_daemon.wire import batches, buckets, sessions, sources
from svc_daemon.wire.buckets import Chunking
from svc_daemon.wire.light.error_codes import ErrorCode, SourceErrorCode

SIZES = ("min", "target", "max", "overlap")


@pytest.mark.parametrize(
    "sizes", [(800, 1000, 1100, 0), (800, 800, 800, 0), (100, 100, 8000, 50), (800, 1000, 1100, 400)], ids=str
)
def test_chunking_takes_ordered_sizes_and_an_overlap_of_at_most_half(sizes: tuple[int, ...]) -> None:
    options = dict(zip(SIZES, sizes, strict=True))
    assert Chunking(**options).model_dump() == options


@pytest.mark.parametrize(
    "sizes",
    [
        (800, 1000, 1100, 401),
        (101, 101, 101, 51),
        (801, 800, 1100, 0),
        (800, 1101, 1100, 0),
        (99, 1000, 1100, 0),
        (800, 1000, 8001, 0),
        (800, 1000, 1100, -1),
    ],
    ids=str,
)
def test_chunking_refuses_other_sizes(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError):
        Chunking(**dict(zip(SIZES, sizes, strict=True)))


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
