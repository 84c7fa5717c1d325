"""`svc-upload-files-batch`: uploads up to 100 files as one batch, and stores none twice."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from pydantic import Field

from svc_daemon.tools.api_calls import Call, CallAnswer, CallFailed, File, ToolService
from svc_daemon.tools.arguments import ToolResult
from svc_daemon.tools.files import GONE, DestinationArguments, FileGiven, IdempotencyKey, derived_key, gone, read, store
from svc_daemon.wire import Json
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.errors import ErrorBody

BATCHES = "/v1/knowledge/files:batch/upload-session"
#: Maximum number of concurrent uploads.
AT_ONCE = 4
#: Maximum total size of files that are joined in memory and sent in one request.
PACK_BYTES = 32 * 1024 * 1024


class BatchFileGiven(FileGiven, DestinationArguments):
    """One file of a batch. The file must name its buckets, unless the batch names the buckets for all files."""


class UploadFilesBatch(DestinationArguments):
    """Arguments of `svc-upload-files-batch`."""

    files: Annotated[list[BatchFileGiven], Field(min_length=1)] = Field(
        description="The files to upload, 1 to 100. Set the destination bucket either for all files, in the arguments "
        "outside this list, or in each file."
    )
    idempotency_key: IdempotencyKey = None


class FileOutcome(ToolResult):
    """What happened to one file of the batch."""

    filename: str
    #: The id of the file's source; null if the file was not stored.
    source_id: str | None
    #: Whether an earlier call stored the file.
    replayed: bool
    #: Why the file was not stored; null if the file was stored.
    error: ErrorBody | None

    def text(self) -> str:
        """Format the result as one line."""
        if self.error:
            return f"{self.filename} was not stored: {self.error['code']}: {self.error['message']}"
        return f"{self.filename} {'was stored already' if self.replayed else 'is stored'} as {self.source_id}."


class UploadedBatch(ToolResult):
    """What happened to each file, in the order of the arguments."""

    #: `GET /v1/knowledge/batches/{batch_id}` returns the status of the batch.
    batch_id: str
    stored: int
    failed: int
    files: list[FileOutcome]

    def text(self) -> str:
        """Format the result as several lines."""
        head = f"{self.stored} of {len(self.files)} files are stored. Ask svc-source-status until they are ready."
        return "\n".join([head, *(outcome.text() for outcome in self.files)])


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file of the batch, with its bytes in memory."""

    #: Made from the file's position, so that a repeated call uses the same id.
    id: str
    given: BatchFileGiven
    file: File

    def manifest(self) -> Json:
        """Build the file's entry in the manifest."""
        return {"client_file_id": self.id, **self.given.description(self.file), **self.given.destination()}

    def size(self) -> Json:
        """Build the file's entry in `files`: id, name and size."""
        name = self.given.filename or self.file.name
        return {"client_file_id": self.id, "filename": name, "size_bytes": len(self.file.data)}


async def upload_batch(service: ToolService, asked: UploadFilesBatch) -> UploadedBatch:
    """Upload the files as one batch. Raises CallFailed if no file can be read, or the API refuses the whole batch."""
    loaded = [await _load(service, place, given) for place, given in enumerate(asked.files)]
    items = [each for each in loaded if isinstance(each, LoadedFile)]
    unread = {place: each for place, each in enumerate(loaded) if isinstance(each, CallFailed)}
    if not items:
        raise unread[0]
    manifest = {"version": 1, "items": [item.manifest() for item in items], **asked.destination()}
    is_packed = sum(len(item.file.data) for item in items) <= PACK_BYTES
    body = {"manifest": manifest, "files": [item.size() for item in items], "pack": is_packed}
    key = asked.idempotency_key
    if key is None:
        key = derived_key(asked.destination(), manifest["items"])
    opened = await service.call(Call(method="POST", path=BATCHES, body=body, idempotency_key=key))
    made = await _finish(service, opened, items)
    outcomes = [
        FileOutcome(
            filename=item.given.filename or item.file.name,
            source_id=made[item.id].get("knowledge_id"),
            replayed=made[item.id].get("replayed", False),
            error=made[item.id].get("error"),
        )
        for item in items
    ]
    if opened.is_replay and asked.idempotency_key is None:
        outcomes = [await _renewed(service, asked, item, each) for item, each in zip(items, outcomes, strict=True)]
    for place, failure in unread.items():
        given = asked.files[place]
        name = given.filename or PurePath(str(given.path)).name
        outcome = {"filename": name, "source_id": None, "replayed": False, "error": failure.error}
        outcomes.insert(place, FileOutcome.model_validate(outcome))
    stored = sum(outcome.error is None for outcome in outcomes)
    return UploadedBatch(batch_id=opened.body["batch_id"], stored=stored, failed=len(outcomes) - stored, files=outcomes)


async def _load(service: ToolService, place: int, given: BatchFileGiven) -> LoadedFile | CallFailed:
    """Read a file. Returns the error of one that can't be read by its path; raises CallFailed for wrong arguments."""
    try:
        return LoadedFile(f"file-{place + 1}", given, await read(service, given, f"files.{place}."))
    except CallFailed as failure:
        if failure.code == ErrorCode.INVALID_REQUEST:
            raise
        return failure


async def _finish(service: ToolService, opened: CallAnswer, items: Sequence[LoadedFile]) -> dict[str, Json]:
    """Send the missing bytes and finalize the batch.

    Returns the result for each file id: an object with `knowledge_id` or `error`.
    """
    batch = opened.body
    try:
        # If an earlier call created the batch, finalize first, to find out which files are stored already.
        made = await _finalize(service, batch) if opened.is_replay else {}
    except CallFailed as failure:
        # The bucket was deleted since the earlier call. Report this for each file.
        if failure.code not in GONE:
            raise
        made = {target["client_file_id"]: {"error": failure.error} for target in batch["items"]}
    missing = [target for target in batch["items"] if made.get(target["client_file_id"], _PENDING) is _PENDING]
    if missing:
        failed = await _send(service, batch, missing, {item.id: item.file.data for item in items})
        made = await _finalize(service, batch) | failed
    return made | {one["client_file_id"]: one for one in batch["rejected"]}


async def _send(
    service: ToolService, batch: Json, targets: Sequence[Json], bytes_of: Mapping[str, bytes]
) -> dict[str, Json]:
    """Send the bytes of the files. Returns the errors by file id.

    If possible, all files are sent in one request. Otherwise, or if that request fails, each file is sent by itself.
    """
    if "pack" in batch and len(targets) == len(batch["items"]):
        # If this request fails, send each file by itself, so that each file gets its own error.
        with suppress(CallFailed):
            joined = b"".join(bytes_of[target["client_file_id"]] for target in targets)
            await service.send_bytes(batch["pack"]["upload_url"], joined)
            return {}
    semaphore = asyncio.Semaphore(AT_ONCE)
    failed: dict[str, Json] = {}

    async def send(target: Json) -> None:
        file_id = target["client_file_id"]
        try:
            async with semaphore:
                await service.send_bytes(target["upload_url"], bytes_of[file_id])
        except CallFailed as failure:
            failed[file_id] = {"error": failure.error}

    await asyncio.gather(*map(send, targets))
    return failed


async def _finalize(service: ToolService, batch: Json) -> dict[str, Json]:
    path = f"/v1/buckets/{batch['bucket_ids'][0]}/batches/{batch['batch_id']}/finalize"
    report = (await service.call(Call(method="POST", path=path, body={}))).body
    made = {one["client_file_id"]: one for one in (*report["finalized"], *report["failed"])}
    for one in report["replayed"]:
        made[one["client_file_id"]] = (
            {"error": gone().error} if one["status"] == "deleted" else {**one, "replayed": True}
        )
    return made | {one["client_file_id"]: _PENDING for one in report["pending"]}


async def _renewed(
    service: ToolService, asked: UploadFilesBatch, item: LoadedFile, outcome: FileOutcome
) -> FileOutcome:
    """Upload a file again, without a batch, if its source was deleted since an earlier call."""
    if outcome.error is None or outcome.error["code"] not in GONE:
        return outcome
    destination = asked.destination() | item.given.destination()
    try:
        source = await store(service, item.given.description(item.file), destination, item.file.data)
    except CallFailed as failure:
        return outcome.model_copy(update={"error": failure.error})
    return outcome.model_copy(update={"source_id": source.source_id, "replayed": source.replayed, "error": None})


#: The result for a file whose bytes are not all stored. A repeated call of the tool sends the file again.
_PENDING: Json = {
    "error": ErrorBody(
        code=ErrorCode.BLOB_NOT_UPLOADED,
        message="The bytes have not all been stored; call again.",
        retryable=True,
        details={},
    )
}
