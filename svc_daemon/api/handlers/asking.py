"""Reads conversations and collects answers, for the handlers of `responses` and `completions`."""

import logging
from collections.abc import Iterable
from contextlib import aclosing

from starlette.requests import Request

from svc_daemon.api.middleware.error_responses import service_error
from svc_daemon.api.presenting import context_of
from svc_daemon.api.server_sent_events import until_gone
from svc_daemon.core.answers.conversations import ASSISTANT, USER, Turn, up_to_question
from svc_daemon.core.answers.passages import QuotePlace
from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.operations.answers import AnswerOutcome, Ask, Cited, answer
from svc_daemon.settings.limits import Limits
from svc_daemon.store.keys import KeyRow
from svc_daemon.wire.answers import Annotation, AnswerSource
from svc_daemon.wire.sources import Location

logger = logging.getLogger(__name__)

#: Roles of messages that are instructions on how to answer.
_GUIDING = ("system", "developer")


def read_turns(path: str, messages: Iterable[tuple[str, str]], limits: Limits) -> tuple[Turn, ...]:
    """Return the messages of the user and the assistant, up to the question at the end.

    Raises `invalid_request` if the question is missing or too long.
    """
    turns = up_to_question([Turn(role, text.strip()) for role, text in messages if role in (USER, ASSISTANT)])
    if not turns:
        raise refusal(path, "has no message of the user; the last of them is the question.")
    if not turns[-1].text:
        raise refusal(path, "ends with an empty question: the last message of the user has no text.")
    size = len(turns[-1].text)
    if size > limits.query_characters:
        raise refusal(path, f"ends with a question of {size} characters; the limit is {limits.query_characters}.")
    return turns


def read_guidance(messages: Iterable[tuple[str, str]]) -> str:
    """Return the texts of the system and developer messages."""
    return "\n\n".join(text for role, text in messages if role in _GUIDING and text.strip())


async def collect(request: Request, key: KeyRow, ask: Ask) -> AnswerOutcome:
    """Wait for the complete answer. Raises ClientDisconnect."""

    async def last() -> AnswerOutcome:
        async with aclosing(answer(context_of(request), key, ask)) as pieces:
            return [piece async for piece in pieces if isinstance(piece, AnswerOutcome)][-1]

    return await until_gone(request.receive, last())


def error_halfway(error: Exception) -> ServiceError:
    """Convert an exception to the error that ends a stream. Logs unexpected exceptions."""
    if not isinstance(error, ServiceError):
        logger.error("unexpected %s in a stream", type(error).__name__, exc_info=error)
    return service_error(error)


def view_annotation(cited: Cited) -> Annotation:
    return Annotation(
        type="file_citation",
        file_id=cited.found.source.id,
        filename=cited.found.source.filename,
        index=cited.citation.index,
        number=cited.citation.number,
        quote=cited.quote,
        location=_view_place(cited.place),
    )


def view_source(cited: Cited) -> AnswerSource:
    hit, source = cited.found.hit, cited.found.source
    return AnswerSource(
        number=cited.citation.number,
        source_id=source.id,
        chunk_id=hit.chunk_id,
        bucket_ids=list(cited.found.bucket_ids),
        filename=source.filename,
        title=source.title,
        source_url=source.source_url,
        score=hit.score,
        quote=cited.quote,
        location=_view_place(cited.place),
    )


def _view_place(place: QuotePlace) -> Location:
    return Location(
        page=place.page,
        line_start=place.line_start,
        line_end=place.line_end,
        char_start=place.char_start,
        char_end=place.char_end,
        headings=list(place.headings),
    )
