"""The HTTP handler that creates a Q&A source: a question with its answer."""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import BUCKET, DRY, FIELDS, NO_BUCKET, NO_SOURCE, QUOTAS, Endpoint
from svc_daemon.api.requests import body_of, context_of, creation_of, is_dry_run, path_destination
from svc_daemon.api.responses import created, view_destinations, would_create
from svc_daemon.core.access import api_keys
from svc_daemon.core.uploads import questions, source_fields
from svc_daemon.operations.ingest.files import check_replaces
from svc_daemon.operations.ingest.questions import QaPair, create_question, question_fingerprint
from svc_daemon.operations.shared.idempotency import find_earlier
from svc_daemon.wire.sources import DryRun, QaCreate, SourceAnswer


async def create(request: Request) -> Response:
    context = context_of(request)
    creation = creation_of(request, api_keys.FILE_CREATE)
    destination = path_destination(request, creation.key)
    body = await body_of(request, QaCreate)
    alternates = [
        questions.check_question(text, context.limits, f"alternate_questions.{place}")
        for place, text in enumerate(body.alternate_questions)
    ]
    asked = questions.check_question(body.question, context.limits)
    question = QaPair(
        answer=questions.check_answer(body.answer),
        alternate_questions=tuple(dict.fromkeys(alternates)),
        **source_fields.check_description(body, asked, context.limits),
    )
    creation = replace(creation, fingerprint=question_fingerprint(destination, question))
    if is_dry_run(request, body.dry_run):
        if find_earlier(context, creation) is not None:
            return would_create(request, None)
        context.read(lambda connection: check_replaces(connection, creation.key, destination.ids, question.replaces))
        fields = {
            "object": "knowledge_file",
            "type": "qa",
            "bucket_id": destination.ids[0],
            **view_destinations(destination),
            "title": question.title,
            "size_bytes": len(question.text.encode()),
        }
        return would_create(request, fields)
    outcome = await create_question(context, creation, destination, question)
    return created(request, outcome, waits_for=None)


# fmt: off
ENDPOINTS = (
    Endpoint("POST", BUCKET + "/qa", create, "Add a question and its answer",
             {201: SourceAnswer, 200: SourceAnswer | DryRun},
             body=QaCreate, query=DRY, repeatable=True, errors=(*NO_BUCKET, *NO_SOURCE, *FIELDS, *QUOTAS)),
)
# fmt: on
