"""Handlers of questions and answers."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.presenting import body_of, caller, context_of, created, flag, idempotency_key, respond
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core import api_keys, questions, source_fields
from svc_daemon.operations.ingest import check_replaces
from svc_daemon.operations.keys import get_usable_bucket
from svc_daemon.operations.qa import Question, create_question
from svc_daemon.settings import Limits
from svc_daemon.store.buckets import Bucket
from svc_daemon.wire.qa import QaCreate
from svc_daemon.wire.sources import DryRun, SourceAnswer


async def create(request: Request) -> Response:
    context = context_of(request)
    key = caller(request, api_keys.FILE_CREATE)
    repeat_key = idempotency_key(request)
    bucket = context.look(lambda connection: get_usable_bucket(connection, key, request.path_params["bucket"]))
    body = await body_of(request, QaCreate)
    question = _checked(body, context.limits)
    if body.dry_run or flag("dry_run", request.query_params.get("dry_run")):
        context.read(lambda connection: check_replaces(connection, key, bucket, question.replaces))
        return _dry(request, bucket, question)
    return created(request, SourceAnswer, await create_question(context, key, bucket, question, repeat_key))


def _checked(body: QaCreate, limits: Limits) -> Question:
    source_fields.refuse_webhook(body.webhook)
    alternates = [
        questions.check_question(text, limits, f"alternate_questions.{place}")
        for place, text in enumerate(body.alternate_questions)
    ]
    return Question(
        question=questions.check_question(body.question, limits),
        answer=questions.check_answer(body.answer),
        alternate_questions=tuple(dict.fromkeys(alternates)),
        tags=source_fields.check_tags(body.tags, limits),
        metadata=source_fields.check_metadata(body.metadata, limits),
        mapping=source_fields.check_mapping(body.mapping, limits),
        replaces=body.replaces,
    )


def _dry(request: Request, bucket: Bucket, question: Question) -> Response:
    told = {
        "object": "knowledge_file",
        "type": "qa",
        "bucket_id": bucket.id,
        "title": question.question,
        "size_bytes": len(question.text.encode()),
    }
    return respond(request, DryRun(would_create=told, request_id=request_id_of(request.scope)))
