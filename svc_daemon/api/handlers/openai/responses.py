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
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import ANSWER, Endpoint
from svc_daemon.api.handlers.openai.completions import (
    collect,
    error_halfway,
    read_ask,
    view_annotation,
    view_source,
)
from svc_daemon.api.middleware.response_headers import request_id_of
from svc_daemon.api.requests import body_of, caller, context_of
from svc_daemon.api.responses import respond
from svc_daemon.api.server_sent_events import EventStream, event
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.errors import ServiceError
from svc_daemon.operations.retrieve.answers import AnswerOutcome, Ask, Cited, answer
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.wire.openai import responses as wire
from svc_daemon.wire.openai.completions import Annotation


async def create(request: Request) -> Response:
    key = caller(request, api_keys.ANSWER_CREATE)
    body = await body_of(request, wire.ResponseCreate)
    ask = read_ask(request, body, "input", body.input, body.instructions)
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
        usage = outcome.usage
        status: wire.MessageStatus = "incomplete" if outcome.cut else "completed"
        text = _part(outcome.text, [view_annotation(cited) for cited in outcome.cited])
        response = self._response(status)
        response["completed_at"] = int(self._now().timestamp())
        if outcome.cut:
            response["incomplete_details"] = {"reason": "max_output_tokens" if outcome.cut == "length" else outcome.cut}
        response["output"] = [self._message(status, text)]
        response["usage"] = {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
        response["grounded"] = outcome.grounded
        response["sources"] = [view_source(cited) for cited in outcome.sources]
        response["unmatched"] = list(outcome.unmatched)
        response["related"] = [view_source(cited) for cited in outcome.related]
        response["warnings"] = list(outcome.warnings)
        return response

    def events(self, piece: str | Cited | AnswerOutcome) -> Iterator[bytes]:
        """Yield the events for one piece of the answer. The first call also yields the events that begin a response."""
        if not self.has_begun:
            begun = self._response("in_progress")
            yield self._event("response.created", response=begun)
            yield self._event("response.in_progress", response=begun)
            yield self._event("response.output_item.added", output_index=0, item=self._message("in_progress"))
            yield self._in_part("response.content_part.added", part=_part("", []))
        if isinstance(piece, str):
            yield self._in_part("response.output_text.delta", delta=piece, logprobs=[])
        elif isinstance(piece, Cited):
            marked = {"annotation_index": self._marks, "annotation": view_annotation(piece)}
            yield self._in_part("response.output_text.annotation.added", **marked)
            self._marks += 1
        else:
            response = self.end(piece)
            message = response["output"][0]
            yield self._in_part("response.output_text.done", text=piece.text, logprobs=[])
            yield self._in_part("response.content_part.done", part=message["content"][0])
            yield self._event("response.output_item.done", output_index=0, item=message)
            yield self._event(f"response.{response['status']}", response=response)

    def fail(self, error: ServiceError) -> Iterator[bytes]:
        """Yield the events that report an error during the stream."""
        yield self._event("error", code=error.code, message=error.message, param=None)
        failed = self._response("failed")
        failed["error"] = {"code": "server_error", "message": error.message}
        yield self._event("response.failed", response=failed)

    def _in_part(self, kind: str, **fields: Any) -> bytes:
        """Build an event about the answer's text. The response has only one message, with only this part."""
        return self._event(kind, item_id=self._message_id, output_index=0, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        number, self._events = self._events, self._events + 1
        return event({"type": kind, "sequence_number": number, **fields}, kind)

    def _message(self, status: wire.MessageStatus, *content: wire.OutputText) -> wire.OutputMessage:
        return {
            "type": "message",
            "id": self._message_id,
            "status": status,
            "role": "assistant",
            "content": list(content),
        }

    def _response(self, status: wire.ResponseStatus) -> wire.Response:
        return wire.Response(
            id=self._id,
            object="response",
            created_at=self._created_at,
            completed_at=None,
            status=status,
            background=False,
            error=None,
            incomplete_details=None,
            instructions=self._body.instructions,
            max_output_tokens=None,
            metadata=self._body.metadata,
            model=self._body.model,
            output=[],
            parallel_tool_calls=False,
            previous_response_id=None,
            store=False,
            temperature=None,
            text={"format": {"type": "text"}},
            tool_choice="none",
            tools=[],
            top_p=None,
            truncation="disabled",
            usage=None,
            user=self._body.user,
            grounded=None,
            sources=[],
            unmatched=[],
            related=[],
            warnings=[],
            request_id=self._request_id,
        )


def _part(text: str, annotations: list[Annotation]) -> wire.OutputText:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/responses", create, "Answer a question, as OpenAI's Responses do",
             {200: wire.Response}, body=wire.ResponseCreate, reads=True, streams=True, errors=ANSWER),
)
# fmt: on
