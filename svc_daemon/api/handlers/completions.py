"""The HTTP handler for OpenAI's chat completions API.

A stream begins with a chunk for the role, followed by the pieces of the text. The last chunks have the annotations and
sources, and the usage if requested. `[DONE]` ends the stream.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

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
from svc_daemon.api.middleware.error_responses import openai_error
from svc_daemon.api.middleware.response_headers import request_id_of
from svc_daemon.api.presenting import body_of, caller, context_of, respond
from svc_daemon.api.server_sent_events import DONE, EventStream, event
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.operations.answers import AnswerOutcome, Ask, answer
from svc_daemon.store.keys import KeyRow
from svc_daemon.wire import completions as wire


async def create(request: Request) -> Response:
    key = caller(request, api_keys.ANSWER_CREATE)
    body = await body_of(request, wire.CompletionCreate)
    messages = [(message.role, "\n".join(part.text for part in message.content)) for message in body.messages]
    ask = Ask(
        model=body.model,
        turns=read_turns("messages", messages, context_of(request).limits),
        instructions=read_guidance(messages),
        buckets=None if body.buckets is None else tuple(body.buckets),
    )
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
        added = {name: whole[name] for name in ("grounded", "sources", "warnings", "request_id")}
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
