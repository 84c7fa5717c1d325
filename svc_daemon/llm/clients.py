"""A client for OpenAI's chat completions API, with streaming.

Time is limited for connecting, for the first piece of text, between two pieces, and in total. Failed requests are not
retried here.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from svc_daemon.core.answers.conversations import Message
from svc_daemon.llm.contract import Cut, Ending, LlmFailed, Usage
from svc_daemon.settings.limits import Limits
from svc_daemon.settings.servers import LlmSettings
from svc_daemon.wire.light.parsing import parse_json
from svc_daemon.wire.light.versions import VERSION

#: Maximum length of a line in bytes.
LINE_BYTES = 256 * 1024
#: Maximum token count that is accepted; larger numbers would not fit the database column.
MOST_TOKENS = 10**12
#: The finish reasons of an answer that was cut off. With any other finish reason, the answer is complete.
_CUTS: dict[str, Cut] = {"length": "length", "content_filter": "content_filter"}


class ChatStream:
    """Parses one stream, fed in pieces that may be split at any byte."""

    def __init__(self) -> None:
        self._line = b""
        self._reason: str | None = None
        self._usage: Usage | None = None
        #: Whether the end marker `[DONE]` has been read.
        self.is_done = False

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the new text in `data`. Raises LlmFailed if the stream is invalid."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            field, _, value = line.strip().partition(b":")
            # Ignore comments, event names, empty lines, and everything after the end.
            if field != b"data" or self.is_done:
                continue
            if value.strip() == b"[DONE]":
                self.is_done = True
                continue
            try:
                event = parse_json(value)
            except ValueError as error:
                raise _garbage() from error
            if not isinstance(event, dict) or not isinstance(event.get("choices") or [], list):
                raise _garbage()
            if event.get("error"):
                raise LlmFailed("The model's server failed while it wrote the answer.")
            self._usage = _usage(event) or self._usage
            for choice in event.get("choices") or ():
                yield self._take(choice)
        if len(self._line) > LINE_BYTES:
            raise LlmFailed("The model's server sent a line without an end.")

    def end(self) -> Ending:
        """Return how the answer ended. Raises LlmFailed if the stream broke off."""
        if self._reason is None and not self.is_done:
            raise LlmFailed("The model's server stopped in the middle of its answer.")
        return Ending(_CUTS.get(self._reason or ""), self._usage)

    def _take(self, choice: Any) -> str:
        try:
            self._reason = str(choice.get("finish_reason") or "") or self._reason
            text = (choice.get("delta") or {}).get("content") or ""
        except AttributeError as error:
            raise _garbage() from error
        if not isinstance(text, str):
            raise _garbage()
        # Replace surrogates: JSON can contain them, but UTF-8 can't.
        return text.encode("utf-8", "replace").decode()


def _usage(event: dict[str, Any]) -> Usage | None:
    usage = event.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    taken, given = (count if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0 for count in counts)
    return Usage(taken, given)


def _garbage() -> LlmFailed:
    return LlmFailed("The model's server sent something that is not a chat completion.")


T = TypeVar("T")

STOPPING = "The service is stopping; ask again."
NOBODY = "Nothing answers at the address of the model's server: start it, or check SVC_LLM_BASE_URL."
#: Time limit of `look` in seconds; short, because a user is waiting.
LOOK_S = 2.0


_REFUSING = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
_WRONG_KEY = " Is its key in SVC_LLM_API_KEY_FILE or SVC_LLM_API_KEY?"
#: What is most likely wrong with the settings, by the status of the response.
_LIKELY: dict[int, str] = {
    httpx.codes.UNAUTHORIZED: _WRONG_KEY,
    httpx.codes.FORBIDDEN: _WRONG_KEY,
    httpx.codes.NOT_FOUND: " Is its address SVC_LLM_BASE_URL, with /v1, and its model SVC_LLM_MODEL?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmLimits:
    """The limits of one answer."""

    connect_s: float
    first_word_s: float
    silent_s: float
    total_s: float
    answer_characters: int


def limits_of(limits: Limits) -> LlmLimits:
    return LlmLimits(
        connect_s=limits.llm_connect_seconds,
        first_word_s=limits.llm_first_word_seconds,
        silent_s=limits.llm_silent_seconds,
        total_s=limits.llm_seconds,
        answer_characters=limits.llm_answer_characters,
    )


class LlmClient:
    """A client for one model on one server. It can write several answers at the same time."""

    def __init__(self, server: LlmSettings, limits: LlmLimits, clock: Callable[[], float]) -> None:
        self.model = server.model
        self._server = server
        self._limits = limits
        #: Returns monotonic seconds.
        self._clock = clock
        self._is_stopping = False
        #: The timeouts of answers in progress; `stop` makes them expire.
        self._waits: set[asyncio.Timeout] = set()
        headers = {"User-Agent": f"svc/{VERSION}", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
        if server.api_key:
            headers["Authorization"] = f"Bearer {server.api_key}"
        self._http = httpx.AsyncClient(
            headers=headers,
            # Each keep-alive comment from the server would restart a read timeout, so `_within` limits the time.
            timeout=httpx.Timeout(None, connect=limits.connect_s),
            limits=httpx.Limits(max_connections=None),
            follow_redirects=False,
            trust_env=False,
        )

    async def write(self, messages: Sequence[Message]) -> AsyncGenerator[str | Ending, None]:
        started_s = self._clock()
        body = {
            "model": self._server.model,
            "messages": [message._asdict() for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
        request = self._http.build_request("POST", f"{self._server.base_url}/chat/completions", json=body)
        response = await self._within(self._http.send(request, stream=True), started_s, None)
        try:
            if fault := _fault(response):
                raise LlmFailed(fault)
            chunks = response.aiter_raw()
            stream, size, last_text_s = ChatStream(), 0, None
            while not stream.is_done and (chunk := await self._within(anext(chunks, b""), started_s, last_text_s)):
                for piece in stream.feed(chunk):
                    size += len(piece)
                    if size > self._limits.answer_characters:
                        raise LlmFailed(f"The model wrote more than {self._limits.answer_characters} characters.")
                    if piece:
                        yield piece
                    last_text_s = self._clock()
            yield stream.end()
        finally:
            await response.aclose()

    async def look(self) -> str | None:
        request = self._http.build_request("GET", f"{self._server.base_url}/models")
        try:
            async with asyncio.timeout(LOOK_S):
                response = await self._http.send(request, stream=True)
                await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            return f"The model's server does not answer within {LOOK_S:g} s."
        except httpx.ConnectError:
            return NOBODY
        except (httpx.HTTPError, httpx.StreamError):
            return "The connection to the model's server broke."
        # Some servers can't list their models. It is enough that the server accepts the key.
        return _fault(response) if response.status_code in _REFUSING else None

    def stop(self) -> None:
        self._is_stopping = True
        for wait in self._waits:
            with suppress(RuntimeError):  # it has just expired
                wait.reschedule(0.0)

    async def close(self) -> None:
        await self._http.aclose()

    async def _within(self, step: Awaitable[T], started_s: float, last_text_s: float | None) -> T:
        """Wait for one step of a request. Raises LlmFailed if the connection breaks or a time limit is reached."""
        limits = self._limits
        next_text_s = started_s + limits.first_word_s if last_text_s is None else last_text_s + limits.silent_s
        ends_s = min(next_text_s, started_s + limits.total_s)
        wait = asyncio.timeout(0.0 if self._is_stopping else max(0.0, ends_s - self._clock()))
        self._waits.add(wait)
        try:
            async with wait:
                return await step
        except (TimeoutError, httpx.TimeoutException) as error:
            if self._is_stopping:
                raise LlmFailed(STOPPING) from error
            raise LlmFailed("The model did not answer in time.", is_timeout=True) from error
        except httpx.ConnectError as error:
            # The address is wrong, or no server is running.
            raise LlmFailed(NOBODY) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise LlmFailed("The connection to the model's server broke.") from error
        finally:
            self._waits.discard(wait)


def _fault(response: httpx.Response) -> str | None:
    """Check status and headers; return an error message or None.

    The message omits the body, because it may contain the key.
    """
    if response.status_code != httpx.codes.OK:
        return f"The model's server answered {response.status_code}.{_LIKELY.get(response.status_code, '')}"
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return "The model's server answered without a stream."
    return None
