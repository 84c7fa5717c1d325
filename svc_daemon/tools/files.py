"""`svc-upload-file`: uploads one file to one or more buckets.

Every upload has an idempotency key, so a repeated call doesn't store the file twice. By default, the key is derived
from the file, the buckets and a counter. The counter increases if the source of an earlier call was deleted.
"""

import asyncio
import hashlib
import json
from base64 import b64decode
from typing import Annotated, Any

from pydantic import Field, model_validator

from svc_daemon.tools.api_calls import Call, CallAnswer, CallFailed, File, ToolService, refused
from svc_daemon.tools.arguments import Arguments
from svc_daemon.tools.sources import SourceState, fields_of
from svc_daemon.wire import Json
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.errors import ErrorBody
from svc_daemon.wire.requests import without_webhook

UPLOADS = "/v1/knowledge/files/upload-session"
#: Upload sessions with these statuses need no more bytes.
FINALIZED, CANCELED = "finalized", "canceled"
#: Error codes which mean that the source of an earlier call has been deleted.
GONE = (ErrorCode.SOURCE_NOT_FOUND, ErrorCode.BUCKET_NOT_FOUND, ErrorCode.SESSION_CANCELED)
#: Maximum number of idempotency keys to try for a file. A key can't be used again if its source was deleted.
MOST_EPOCHS = 100

Buckets = Annotated[list[str], Field(default_factory=list)]
IdempotencyKey = Annotated[
    str | None,
    Field(
        description="Idempotency key: a repeated call with the same key returns the result of the first call. By "
        "default, the key is derived from the content, so repeated calls are safe without it."
    ),
]


class DestinationArguments(Arguments):
    """The buckets to upload to. Exactly one of the first three fields must be set. No upload has a webhook."""

    bucket_ids: Buckets = Field(description="Destination buckets by id (bkt_…).")
    bucket_slugs: Buckets = Field(description="Destination buckets by slug.")
    bucket: str = Field(
        "", description="One destination bucket, by slug or id. Give exactly one of bucket, bucketSlugs and bucketIds."
    )
    create_missing_buckets: bool = Field(False, description="Create the buckets whose slugs don't exist yet.")

    @model_validator(mode="before")
    @classmethod
    def _without_webhook(cls, fields: Any) -> Any:
        return without_webhook(fields)

    def destination(self) -> Json:
        """Build the request fields that name the buckets, without unset ones."""
        return self.model_dump(include=set(DestinationArguments.model_fields), exclude_defaults=True)


class FileGiven(Arguments):
    """A file to upload, and its description."""

    filename: str | None = Field(None, description="File name such as report.pdf; its extension determines the format.")
    content_base64: str | None = Field(
        None, description="The original file (PDF, DOCX, HTML, Markdown, …) in base64, at most 25 MB."
    )
    path: str | None = Field(
        None, description="Path of a file on this machine, in an allowed folder; use it instead of contentBase64."
    )
    title: str | None = Field(None, description="Title to show in search results; the default is the file name.")
    tags: list[str] = Field(default_factory=list, description="Up to 20 tags by which searches can be limited.")
    metadata: Json = Field(default_factory=dict, description="Facts about the file by which searches can be filtered.")

    def description(self, file: File) -> Json:
        """Build the request fields that describe the file, without unset ones."""
        fields = {
            "filename": self.filename or file.name,
            "title": self.title,
            "tags": self.tags,
            "metadata": self.metadata,
            "sha256": file.sha256,
        }
        return {name: value for name, value in fields.items() if value}


class UploadFile(FileGiven, DestinationArguments):
    """Arguments of `svc-upload-file`."""

    idempotency_key: IdempotencyKey = None


class UploadedFile(SourceState):
    """The result of an upload."""

    #: Whether an earlier call stored the file.
    replayed: bool

    def text(self) -> str:
        """Format the result as several lines."""
        how = "was stored already" if self.replayed else "is stored"
        step = (
            "It can be searched." if self.ready else f"Ask svc-source-status about {self.source_id} until it is ready."
        )
        return f"{self.filename} {how} as {self.source_id} in {', '.join(self.bucket_ids)}. {step}"


def without_paths(schema: Json) -> Json:
    """Return the schema for a server that can't read files: without `path`, and with name and bytes required."""
    for part in (schema, schema["properties"].get("files", {}).get("items", {})):
        if part.get("properties", {}).pop("path", None) is not None:
            part["required"] = [*part.get("required", ()), "filename", "contentBase64"]
    return schema


async def read(service: ToolService, given: FileGiven, at: str = "") -> File:
    """Read the file from base64 or its path. `at` is the prefix of argument names in errors, such as `files.0.`."""
    if (given.path is None) is (given.content_base64 is None):
        raise refused((f"{at}contentBase64", "Give either the file's bytes in base64 or its path."))
    if given.content_base64 is None:
        return await service.read_file(str(given.path))
    if not given.filename:
        raise refused((f"{at}filename", "Give the name that goes with contentBase64."))
    data = await asyncio.to_thread(_decode, given.content_base64)
    if data is None:
        raise refused((f"{at}contentBase64", "This is not base64."))
    return File(given.filename, data)


def _decode(text: str) -> bytes | None:
    """Decode base64, ignoring line breaks. Returns None if it is invalid."""
    try:
        return b64decode("".join(text.splitlines()) if "\n" in text else text, validate=True)
    except ValueError:
        return None


def derived_key(destination: Json, *parts: Any) -> str:
    """Derive an idempotency key that is the same for the same files and buckets."""
    named = {*destination.get("bucket_ids", ()), *destination.get("bucket_slugs", ()), destination.get("bucket", "")}
    text = json.dumps([sorted(named - {""}), *parts], sort_keys=True)
    return f"svc-mcp-{hashlib.sha256(text.encode()).hexdigest()}"


async def upload_file(service: ToolService, asked: UploadFile) -> UploadedFile:
    """Upload the file. Raises CallFailed."""
    file = await read(service, asked)
    return await store(service, asked.description(file), asked.destination(), file.data, asked.idempotency_key)


async def store(
    service: ToolService, described: Json, destination: Json, data: bytes, key: str | None = None
) -> UploadedFile:
    """Upload a file. `described` has the request fields that describe it, `destination` those that name its buckets."""
    body = {**described, **destination, "size_bytes": len(data)}
    keys = [key] if key is not None else (derived_key(destination, described, epoch) for epoch in range(MOST_EPOCHS))
    for each in keys:
        opened = await service.call(Call(method="POST", path=UPLOADS, body=body, idempotency_key=each))
        made = await _finish(service, opened, data)
        if made is not None:
            return UploadedFile(**fields_of(made.body), replayed=made.is_replay)
    raise gone()


async def _finish(service: ToolService, opened: CallAnswer, data: bytes) -> CallAnswer | None:
    """Send the bytes and finalize the session. Returns None if the source of an earlier call was deleted."""
    session = opened.body
    if session["status"] == CANCELED:
        # A session that could not be finalized also has this status.
        return None
    if session["status"] != FINALIZED:
        await service.send_bytes(session["upload_url"], data)
    path = f"/v1/buckets/{session['bucket_ids'][0]}/uploads/{session['session_id']}/finalize"
    try:
        made = await service.call(Call(method="POST", path=path, body={}))
        if opened.is_replay:
            # The answer to a repeated request has the source even if it was deleted since.
            source = await service.call(Call(method="GET", path=f"/v1/sources/{made.body['id']}"))
            made = CallAnswer(source.body, is_replay=made.is_replay)
    except CallFailed as error:
        if opened.is_replay and error.code in GONE:
            return None
        raise
    if opened.is_replay and not set(session["bucket_ids"]) <= set(made.body["bucket_ids"]):
        return None
    failure = made.body["error"]
    if not (made.is_replay and failure and failure["retryable"]):
        return made
    # The source of an earlier call failed with an error that a retry may fix.
    again = await service.call(Call(method="POST", path=f"/v1/sources/{made.body['id']}/retry", body={}))
    return CallAnswer(again.body, is_replay=True)


def gone() -> CallFailed:
    """Create the error for an upload whose idempotency keys all belong to deleted sources."""
    error = ErrorBody(
        code=ErrorCode.SOURCE_NOT_FOUND,
        message="The source stored under this idempotency key has been deleted; use another key.",
        retryable=False,
        details={},
    )
    return CallFailed(error)
