"""The HTTP handler for OpenAI's Responses API.

A stream has these events, in this order, numbered from 0:

    response.created, response.in_progress, response.output_item.added, response.content_part.added
    response.output_text.delta                      for each piece of the text
      response.output_text.annotation.added         after each piece that is a citation mark
    response.output_text.done, response.content_part.done, response.output_item.done
    response.completed                              or response.incomplete if the model's answer was cut off

If an error occurs, the last two events are `error`, with the service's own error code, and `response.failed`.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import ANSWER, Endpoint
from svc_daemon.api.handlers.asking import (
    collect,
    error_halfway,
    read_guidance,
    read_turns,
    view_annotation,
    view_source,
)
from svc_daemon.api.middleware.response_headers import request_id_of
from svc_daemon.api.presenting import body_of, caller, context_of, respond
from svc_daemon.api.server_sent_events import EventStream, event
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.errors import ServiceError
from svc_daemon.operations.answers import AnswerOutcome, Ask, Cited, answer
from svc_daemon.store.keys import KeyRow
from svc_daemon.wire import responses as wire

Status = Literal["in_progress", "completed", "incomplete", "failed"]


async def create(request: Request) -> Response:
    key = caller(request, api_keys.ANSWER_CREATE)
    body = await body_of(request, wire.ResponseCreate)
    messages = [(message.role, "\n".join(part.text for part in message.content)) for message in body.input]
    ask = Ask(
        model=body.model,
        turns=read_turns("input", messages, context_of(request).limits),
        instructions=read_guidance([("system", body.instructions or ""), *messages]),
        buckets=None if body.buckets is None else tuple(body.buckets),
    )
    draft = _ResponseDraft(request, body)
    if body.stream:
        return EventStream(_stream(request, key, ask, draft))
    return respond(request, draft.end(await collect(request, key, ask)))


async def _stream(request: Request, key: KeyRow, ask: Ask, draft: "_ResponseDraft") -> AsyncGenerator[bytes, None]:
    async with aclosing(answer(context_of(request), key, ask)) as pieces:
        try:
            async for piece in pieces:
                for each in draft.events(piece):
                    yield each
        except Exception as error:
            if not draft.has_begun:
                raise
            for each in draft.fail(error_halfway(error)):
                yield each


class _ResponseDraft:
    """Builds a response of OpenAI's API, and the events of a stream, while the answer is written."""

    def __init__(self, request: Request, body: wire.ResponseCreate) -> None:
        context = context_of(request)
        self._body = body
        self._now = context.clock.now
        self._request_id = request_id_of(request.scope)
        self._id, self._message_id = context.ids.make(ids.RESPONSE), context.ids.make(ids.MESSAGE)
        self._created_at = int(self._now().timestamp())
        self._events = self._marks = 0

    @property
    def has_begun(self) -> bool:
        return self._events > 0

    def end(self, outcome: AnswerOutcome) -> wire.Response:
        """Return the complete response."""
        usage, reason = outcome.usage, "max_output_tokens" if outcome.cut == "length" else outcome.cut
        return self._response(
            "incomplete" if outcome.cut else "completed",
            output=[self._message(outcome)],
            completed_at=int(self._now().timestamp()),
            incomplete_details=None if reason is None else wire.IncompleteDetails(reason=reason),
            usage=wire.ResponseUsage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                total_tokens=usage.input_tokens + usage.output_tokens,
            ),
            grounded=outcome.grounded,
            sources=[view_source(cited) for cited in outcome.sources],
            warnings=list(outcome.warnings),
        )

    def events(self, piece: str | Cited | AnswerOutcome) -> Iterator[bytes]:
        """Yield the events for one piece of the answer. The first call also yields the events that begin a response."""
        if not self.has_begun:
            begun = self._response("in_progress", output=[]).model_dump()
            yield self._event("response.created", response=begun)
            yield self._event("response.in_progress", response=begun)
            message = wire.OutputMessage(id=self._message_id, status="in_progress", content=[])
            yield self._event("response.output_item.added", output_index=0, item=message.model_dump())
            part = wire.OutputText(text="", annotations=[])
            yield self._in_part("response.content_part.added", part=part.model_dump())
        if isinstance(piece, str):
            yield self._in_part("response.output_text.delta", delta=piece, logprobs=[])
        elif isinstance(piece, Cited):
            annotation = view_annotation(piece).model_dump()
            yield self._in_part(
                "response.output_text.annotation.added", annotation_index=self._marks, annotation=annotation
            )
            self._marks += 1
        else:
            message = self._message(piece)
            yield self._in_part("response.output_text.done", text=piece.text, logprobs=[])
            yield self._in_part("response.content_part.done", part=message.content[0].model_dump())
            yield self._event("response.output_item.done", output_index=0, item=message.model_dump())
            response = self.end(piece)
            yield self._event(f"response.{response.status}", response=response.model_dump())

    def fail(self, error: ServiceError) -> Iterator[bytes]:
        """Yield the events that report an error during the stream."""
        yield self._event("error", code=error.code, message=error.message, param=None)
        fault = wire.ResponseFault(message=error.message)
        yield self._event("response.failed", response=self._response("failed", output=[], error=fault).model_dump())

    def _in_part(self, kind: str, **fields: Any) -> bytes:
        """Build an event about the answer's text. The response has only one message, with only this part."""
        return self._event(kind, item_id=self._message_id, output_index=0, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._events = self._events, self._events + 1
        return event({"type": kind, "sequence_number": number, **fields}, kind)

    def _message(self, outcome: AnswerOutcome) -> wire.OutputMessage:
        annotations = [view_annotation(cited) for cited in outcome.cited]
        return wire.OutputMessage(
            id=self._message_id,
            status="incomplete" if outcome.cut else "completed",
            content=[wire.OutputText(text=outcome.text, annotations=annotations)],
        )

    def _response(self, status: Status, **fields: Any) -> wire.Response:
        return wire.Response(
            id=self._id,
            created_at=self._created_at,
            status=status,
            instructions=self._body.instructions,
            metadata=self._body.metadata,
            model=self._body.model,
            user=self._body.user,
            request_id=self._request_id,
            **fields,
        )


# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/responses", create, "Answer a question, as OpenAI's Responses do",
             {200: wire.Response}, body=wire.ResponseCreate, reads=True, streams=True, errors=ANSWER),
)
# fmt: on
