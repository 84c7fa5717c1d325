"""Files as tools are given them, and `svc-upload-file`: one file into buckets, never twice.

Calls may be repeated: clients retry timeouts, and models repeat calls that they have forgotten. So every upload has an
idempotency key, derived from the file and its destination if the caller sends none. A key is tied to what it made for a
week; where that is gone by now (deleted, or taken out of the bucket), the key of the next epoch makes it again.
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
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.errors import ErrorBody

UPLOADS = "/v1/knowledge/files/upload-session"
#: States of an upload session.
FINALIZED, CANCELED = "finalized", "canceled"
#: Codes that mean that an earlier call made it, and that it is gone.
GONE = (ErrorCode.SOURCE_NOT_FOUND, ErrorCode.BUCKET_NOT_FOUND, ErrorCode.SESSION_CANCELED)
#: A file that was removed and sent again so often within the life of a key is a loop, not a wish.
MOST_EPOCHS = 100

Buckets = Annotated[list[str], Field(default_factory=list)]


class DestinationArguments(Arguments):
    """Where files go: one of the first three names at least one bucket."""

    bucket_ids: Buckets = Field(description="Destination buckets by id (bkt_…).")
    bucket_slugs: Buckets = Field(description="Destination buckets by slug.")
    bucket: str = Field(
        "", description="One destination bucket, by slug or id. Give exactly one of bucket, bucketSlugs and bucketIds."
    )
    create_missing_buckets: bool = Field(False, description="Make buckets for slugs that don't exist yet.")

    def destination(self) -> Json:
        """Build the destination fields of a legacy body, without unset ones."""
        return self.model_dump(include=set(DestinationArguments.model_fields), exclude_defaults=True)


class FileGiven(Arguments):
    """A file and its description."""

    filename: str | None = Field(None, description="Name with extension, such as report.pdf; it shows the format.")
    content_base64: str | None = Field(
        None, description="The file's bytes in base64: the original (PDF, DOCX, HTML, Markdown, …), 25 MB at most."
    )
    path: str | None = Field(
        None, description="A file on this machine instead of contentBase64, within the folders that were allowed."
    )
    title: str | None = Field(None, description="Title that search results show; the file name without one.")
    tags: list[str] = Field(default_factory=list, description="Up to 20 tags that a search can ask for.")
    metadata: Json = Field(default_factory=dict, description="Facts about the file that a search can filter by.")

    @model_validator(mode="before")
    @classmethod
    def _without_webhook(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and "webhook" in fields:
            raise ValueError("Uploads have no webhook; ask svc-source-status.")
        return fields

    def description(self, file: File) -> Json:
        """Build the fields of a create, without unset ones."""
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

    idempotency_key: str | None = Field(
        None, description="A call with the same key is answered as the first one was. Leave it out: the content is one."
    )


class UploadedFile(SourceState):
    """What became of it: stored, and on its way to being searchable."""

    #: An earlier call has stored it.
    replayed: bool

    def text(self) -> str:
        """The result in lines."""
        how = "was stored already" if self.replayed else "is stored"
        step = (
            "It can be searched." if self.ready else f"Ask svc-source-status about {self.source_id} until it is ready."
        )
        return f"{self.filename} {how} as {self.source_id} in {', '.join(self.bucket_ids)}. {step}"


def without_paths(schema: Json) -> Json:
    """Return the schema for a server that can't read paths: bytes and a name are required."""
    for part in (schema, schema["properties"].get("files", {}).get("items", {})):
        if part.get("properties", {}).pop("path", None) is not None:
            part["required"] = [*part.get("required", ()), "filename", "contentBase64"]
    return schema


async def read(service: ToolService, given: FileGiven, at: str = "") -> File:
    """The file's bytes, from either origin; `at` is its path among the arguments, with a dot."""
    if (given.path is None) is (given.content_base64 is None):
        raise refused((f"{at}contentBase64", "Give the file's bytes in base64, or its path; one of both."))
    if given.content_base64 is None:
        return await service.read_file(str(given.path))
    if not given.filename:
        raise refused((f"{at}filename", "Give the name that goes with contentBase64."))
    data = await asyncio.to_thread(_decode, given.content_base64)
    if data is None:
        raise refused((f"{at}contentBase64", "This is not base64."))
    return File(given.filename, data)


def _decode(text: str) -> bytes | None:
    """Lines may be broken, as mail programs do; nothing else may come between."""
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
    """Store the file. Raises CallFailed with the API's error if it is refused."""
    file = await read(service, asked)
    return await store(service, asked.description(file), asked.destination(), file.data, asked.idempotency_key)


async def store(
    service: ToolService, described: Json, destination: Json, data: bytes, key: str | None = None
) -> UploadedFile:
    """The same of a file and its destination as a create takes them."""
    body = {**described, **destination, "size_bytes": len(data)}
    keys = [key] if key is not None else (derived_key(destination, described, epoch) for epoch in range(MOST_EPOCHS))
    for each in keys:
        opened = await service.call(Call(method="POST", path=UPLOADS, body=body, idempotency_key=each))
        made = await _finish(service, opened, data)
        if made is not None:
            return UploadedFile(**fields_of(made.body), replayed=made.is_replay)
    raise gone()


async def _finish(service: ToolService, opened: CallAnswer, data: bytes) -> CallAnswer | None:
    """Return the source of an upload session; None if an earlier call created it and it has since been deleted."""
    session = opened.body
    if session["status"] == CANCELED:  # or failed for good
        return None
    if session["status"] != FINALIZED:
        await service.send_bytes(session["upload_url"], data)
    path = f"/v1/buckets/{session['bucket_ids'][0]}/uploads/{session['session_id']}/finalize"
    try:
        made = await service.call(Call(method="POST", path=path, body={}))
    except CallFailed as error:
        if opened.is_replay and error.code in GONE:
            return None
        raise
    if opened.is_replay and not set(session["bucket_ids"]) <= set(made.body["bucket_ids"]):
        return None
    failure = made.body["error"]
    if not (made.is_replay and failure and failure["retryable"]):
        return made
    # It was made by an earlier call and failed since: it is queued again, which can help.
    again = await service.call(Call(method="POST", path=f"/v1/sources/{made.body['id']}/retry", body={}))
    return CallAnswer(again.body, is_replay=True)


def gone() -> CallFailed:
    """What ends the search for a key whose source is still there."""
    error = ErrorBody(
        code=ErrorCode.SOURCE_NOT_FOUND,
        message="What was stored under this idempotency key is gone by now; use another key.",
        retryable=False,
        details={},
    )
    return CallFailed(error.model_dump())
