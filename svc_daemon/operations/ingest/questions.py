"""Creates Q&A sources: a question with its answer, stored as a short text."""

from dataclasses import dataclass, replace

from svc_daemon.core import readiness
from svc_daemon.core.idempotency import fingerprint
from svc_daemon.core.uploads.questions import CONTENT_TYPE, FILE_NAME, question_text
from svc_daemon.core.uploads.source_fields import Description
from svc_daemon.operations.ingest.files import FileUpload, admit, check_replaces, commit_source, keep_source, new_source
from svc_daemon.operations.shared.destination_buckets import Destination
from svc_daemon.operations.shared.idempotency import Creation, replaying
from svc_daemon.process.contexts import Context
from svc_daemon.store.files.contract import StagedBytes, discarding
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.wire.sources import QuestionFields


@dataclass(frozen=True, slots=True, kw_only=True)
class QaPair(Description):
    """A question, which is the title, and its answer, already checked."""

    answer: str
    alternate_questions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return question_text(self.title, self.answer, self.alternate_questions)


async def create_question(context: Context, request: Creation, destination: Destination, question: QaPair) -> Creation:
    """Store the question with its answer, and queue its indexing. Raises ServiceError if the request is refused.

    A repeated request gets the response of the first request.
    """
    async with replaying(context, request) as earlier, discarding(context.blobs.stage()) as staged:
        if earlier is not None:
            return earlier
        context.read(lambda connection: check_replaces(connection, request.key, destination.ids, question.replaces))
        data = question.text.encode()
        await admit(context, request.key.team_id, len(data))
        await staged.append(data)
        source = _new_source(context, request.key.team_id, question, staged)
        return await keep_source(
            context,
            staged,
            source,
            lambda connection: commit_source(connection, context, request, destination, source),
        )


def _new_source(context: Context, team_id: str, question: QaPair, staged: StagedBytes) -> SourceRow:
    upload = FileUpload(
        filename=FILE_NAME,
        content_type=CONTENT_TYPE,
        **question.description(),
    )
    qa = QuestionFields(
        question=question.title,
        answer=question.answer,
        alternate_questions=list(question.alternate_questions),
    )
    return replace(
        new_source(context, team_id, upload, size_bytes=staged.size_bytes, sha256=staged.sha256),
        type=readiness.QA,
        qa=qa,
    )


def question_fingerprint(destination: Destination, question: QaPair) -> str:
    """Return the fingerprint by which a repeated request to create this question is recognized."""
    return fingerprint(destination.identity, question.text, *question.meaning())
