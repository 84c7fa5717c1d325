"""The HTTP handler for OpenAI's chat completions API, and what it shares with that for responses.

A stream begins with a chunk for the role, followed by the pieces of the text. The last chunks have the annotations and
sources, and the usage if requested. `[DONE]` ends the stream.
"""

import logging
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import ANSWER, Endpoint
from svc_daemon.api.handlers.sources import view_freshness, view_location
from svc_daemon.api.middleware.error_responses import openai_error, service_error
from svc_daemon.api.middleware.response_headers import request_id_of
from svc_daemon.api.requests import body_of, caller, context_of
from svc_daemon.api.responses import respond
from svc_daemon.api.server_sent_events import DONE, EventStream, event, until_gone
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.answers.conversations import ASSISTANT, USER, Turn, up_to_question
from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.operations.retrieve.answers import AnswerOutcome, Ask, Cited, answer
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.wire.openai import completions as wire
from svc_daemon.wire.openai.completions import Annotation, AnswerSource
from svc_daemon.wire.openai.responses import InputMessage, ResponseCreate
from svc_daemon.wire.requests import list_unknown

logger = logging.getLogger(__name__)

#: Roles of messages that are instructions on how to answer.
_GUIDING = ("system", "developer")


def read_ask(
    request: Request,
    body: wire.CompletionCreate | ResponseCreate,
    path: str,
    messages: Iterable[wire.ChatMessage | InputMessage],
    guidance: str | None = None,
) -> Ask:
    """Return what a body asks, whose messages are at this path.

    Raises `invalid_request` if the question, the last message of the user, is missing or too long.
    """
    texts = [(message.role, "\n".join(part.text for part in message.content)) for message in messages]
    turns = up_to_question([Turn(role, text.strip()) for role, text in texts if role in (USER, ASSISTANT)])
    if not turns:
        raise refusal(path, "has no message of the user; the last of them is the question.")
    if not turns[-1].text:
        raise refusal(path, "ends with an empty question: the last message of the user has no text.")
    size, most = len(turns[-1].text), context_of(request).limits.query_characters
    if size > most:
        raise refusal(path, f"ends with a question of {size} characters; the limit is {most}.")
    guiding = (guidance or "", *(text for role, text in texts if role in _GUIDING))
    return Ask(
        model=body.model,
        turns=turns,
        instructions="\n\n".join(text for text in guiding if text.strip()),
        unheeded=wire.list_unheeded(body),
        unknown=list_unknown(body, wire.OPENAIS),
        buckets=None if body.buckets is None else tuple(body.buckets),
    )


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
        location=view_location(cited.found.source, cited.place),
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
        location=view_location(source, cited.place),
        **view_freshness(source),
    )


async def create(request: Request) -> Response:
    key = caller(request, api_keys.ANSWER_CREATE)
    body = await body_of(request, wire.CompletionCreate)
    ask = read_ask(request, body, "messages", body.messages)
    draft = _CompletionDraft(request, body)
    if body.stream:
        return EventStream(_stream(request, key, ask, draft))
    return respond(request, draft.end(await collect(request, key, ask)))


async def _stream(request: Request, key: KeyRow, ask: Ask, draft: "_CompletionDraft") -> AsyncGenerator[bytes, None]:
    has_begun = False
    async with aclosing(answer(context_of(request), key, ask)) as pieces:
        try:
            async for piece in pieces:
                if not has_begun:
                    yield draft.chunk({"role": "assistant", "content": "", "refusal": None})
                    has_begun = True
                if isinstance(piece, str):
                    yield draft.chunk({"content": piece})
                elif isinstance(piece, AnswerOutcome):
                    for each in draft.finish(piece):
                        yield each
        except Exception as error:
            if not has_begun:
                raise
            yield event(openai_error(error_halfway(error)))


class _CompletionDraft:
    """Builds a chat completion, and the chunks of a stream, while the answer is written."""

    def __init__(self, request: Request, body: wire.CompletionCreate) -> None:
        context = context_of(request)
        self._body = body
        self._request_id = request_id_of(request.scope)
        # OpenAI's ids begin with `chatcmpl-`, but our ids have an underscore after the prefix.
        self._id = context.ids.make(ids.COMPLETION).replace("_", "-")
        self._created = int(context.clock.now().timestamp())

    def end(self, outcome: AnswerOutcome) -> wire.Completion:
        """Return the complete chat completion."""
        usage = outcome.usage
        message = wire.CompletionMessage(
            role="assistant",
            content=outcome.text,
            refusal=None,
            annotations=[view_annotation(each) for each in outcome.cited],
        )
        choice = wire.CompletionChoice(index=0, message=message, logprobs=None, finish_reason=outcome.cut or "stop")
        return wire.Completion(
            id=self._id,
            object="chat.completion",
            created=self._created,
            model=self._body.model,
            choices=[choice],
            usage=wire.CompletionUsage(
                prompt_tokens=usage.input_tokens,
                completion_tokens=usage.output_tokens,
                total_tokens=usage.input_tokens + usage.output_tokens,
            ),
            system_fingerprint=None,
            grounded=outcome.grounded,
            sources=[view_source(cited) for cited in outcome.sources],
            unmatched=list(outcome.unmatched),
            related=[view_source(cited) for cited in outcome.related],
            warnings=list(outcome.warnings),
            request_id=self._request_id,
        )

    def chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._body.stream_options.include_usage else {}
        return self._event(choices=[choice], **usage, **more)

    def finish(self, outcome: AnswerOutcome) -> Iterator[bytes]:
        """Yield the chunks after the text: annotations and sources, the usage if requested, and `[DONE]`."""
        whole = self.end(outcome)
        annotations = whole["choices"][0]["message"]["annotations"]
        added = {
            name: whole[name] for name in ("grounded", "sources", "unmatched", "related", "warnings", "request_id")
        }
        yield self.chunk({"annotations": annotations}, outcome.cut or "stop", **added)
        if self._body.stream_options.include_usage:
            yield self._event(choices=[], usage=whole["usage"])
        yield DONE

    def _event(self, **fields: Any) -> bytes:
        head = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._body.model,
            "system_fingerprint": None,
        }
        return event({**head, **fields})


# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/chat/completions", create, "Answer a question, as OpenAI's chat does",
             {200: wire.Completion}, body=wire.CompletionCreate, reads=True, streams=True, errors=ANSWER),
)
# fmt: on
