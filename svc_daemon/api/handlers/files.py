"""The HTTP handler for an upload in one request: `POST /v1/buckets/{bucket}/files`."""

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import refuse_in_query, refuse_team
from svc_daemon.api.endpoints import BUCKET, BYTES, DRY, FIELDS, NO_BUCKET, NO_SOURCE, QUOTAS, Endpoint
from svc_daemon.api.forms import Form, receive_form
from svc_daemon.api.requests import DRY_RUN, context_of, creation_of, flag, is_dry_run, path_destination
from svc_daemon.api.responses import created, view_destinations, would_create
from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import parse_object, refusal
from svc_daemon.core.text import media_types
from svc_daemon.core.uploads import source_fields
from svc_daemon.core.uploads.source_fields import clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.operations.ingest.files import FileUpload, check_bytes, check_replaces, create_file, file_fingerprint
from svc_daemon.operations.shared.destination_buckets import Destination
from svc_daemon.operations.shared.idempotency import Creation, find_earlier
from svc_daemon.settings.limits import Limits
from svc_daemon.store.files.contract import StagedBytes, discarding
from svc_daemon.wire.requests import NO_WEBHOOK, FileDescription, UploadBody
from svc_daemon.wire.sources import DryRun, SourceAnswer


async def upload(request: Request) -> Response:
    context = context_of(request)
    creation = creation_of(request, api_keys.FILE_CREATE)
    destination = path_destination(request, creation.key)
    refuse_in_query(request, UploadBody)
    form = await receive_form(request, context.blobs.stage, context.limits.file_bytes)
    async with discarding(form.file.sink) as staged:
        file = _read_fields(form, context.limits)
        creation = replace(creation, fingerprint=file_fingerprint(destination, file, staged))
        if is_dry_run(request, flag(DRY_RUN, form.fields.get(DRY_RUN))):
            return _try(request, creation, destination, file, staged)
        outcome = await create_file(context, creation, destination, file, staged)
    return created(request, outcome, waits_for=None)


def _read_fields(form: Form[StagedBytes], limits: Limits) -> FileUpload:
    fields = form.fields
    refuse_team(dict(fields))
    if "webhook" in fields:
        raise refusal("webhook", NO_WEBHOOK)
    filename = clean_file_name(form.file.filename)
    sent: dict[str, Any] = {name: fields[name] for name in FileDescription.model_fields if fields.get(name)}
    try:
        sent["metadata"] = parse_object(fields["metadata"].encode()) if fields.get("metadata") else {}
    except ServiceError as error:
        raise refusal("metadata", error.message.removeprefix("The body ")) from error
    sent["tags"] = source_fields.split_tags(fields.get("tags", ""))
    body = FileDescription.model_validate(sent)
    return FileUpload(
        filename=filename,
        declared_type=form.file.content_type,
        content_type=media_types.detect(form.file.sink.head, filename, form.file.content_type or ""),
        **source_fields.check_description(body, source_fields.choose_title(body.title, filename), limits),
        sha256=source_fields.check_sha256(body.sha256),
    )


def _try(
    request: Request, creation: Creation, destination: Destination, file: FileUpload, staged: StagedBytes
) -> Response:
    context = context_of(request)
    check_bytes(file, staged)
    if find_earlier(context, creation) is not None:
        return would_create(request, None)
    context.read(lambda connection: check_replaces(connection, creation.key, destination.ids, file.replaces))
    wanted = {
        "object": "knowledge_file",
        "bucket_id": destination.ids[0],
        **view_destinations(destination),
        "filename": file.filename,
        "title": file.title,
        "content_type": file.content_type,
        "size_bytes": staged.size_bytes,
        "sha256": staged.sha256,
    }
    return would_create(request, wanted)


_FORM = {
    "title": "Title; the file name by default.",
    "tags": "Tags, separated by commas.",
    "metadata": "A JSON object as text.",
    "sha256": "SHA-256 of the file in hex; the upload is refused if it differs.",
    "replaces": "The id of the source whose place this one takes when it is ready.",
    "mapping": "The name of the sync mapping that owns the source.",
    **DRY,
}

# fmt: off
ENDPOINTS = (
    Endpoint("POST", BUCKET + "/files", upload, "Upload a file", {201: SourceAnswer, 200: SourceAnswer | DryRun},
             form=_FORM, query=DRY, repeatable=True, errors=(*NO_BUCKET, *NO_SOURCE, *FIELDS, *QUOTAS, *BYTES)),
)
# fmt: on
