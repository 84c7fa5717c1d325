"""The models of requests and responses have the fields and types that the specification names."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from svc_daemon.wire import batches, buckets, sources, uploads

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
    uploads.UploadCreate: "filename string, content_type string, size_bytes integer, title string, tags string[],"
    " metadata object",
    uploads.Upload: "session_id string, upload_strategy string, upload_url string, expires_at string,"
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
