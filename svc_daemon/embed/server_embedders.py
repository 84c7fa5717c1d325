"""A client for an embedding server that the operator chose (OpenAI's `/v1/embeddings`).

- The fetch policy doesn't apply, because the operator chose the address.
- The server may switch models under one name. So each call also asks for the vector of a fixed probe sentence. If this
  vector has changed, the response is discarded, and a new embedder is needed.
- All users see failures, and the server's error message may quote a user's text. So the server's message is
  shown only for a call that sends nothing but the probe sentence.
"""

import asyncio
import random
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from math import hypot, isfinite
from pathlib import Path

import certifi
import httpx

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.embed.server_models import PROBE, Generation, Vector, recognise
from svc_daemon.settings.servers import EmbedSettings
from svc_daemon.wire.light.parsing import parse_json

#: Maximum number of texts per call. Even small servers accept this many.
BATCH = 32
#: Attempts per call, and seconds before the first retry. The pause doubles with each further retry.
ATTEMPTS, PAUSE_S = 4, 0.5
#: Time limit for connecting, in seconds.
CONNECT_S = 10
#: Seconds for which an idle connection is kept.
KEPT_S = 30
#: Attempts for a query, and its default time limit in seconds. Both are low, because a user waits.
QUERY_ATTEMPTS, QUERY_S = 2, 10
#: After the server has failed to answer a query, all queries fail at once for this many seconds.
QUIET_S = 10
#: Maximum size of a response in bytes; real responses are much smaller.
MAX_ANSWER_BYTES = 8 * 1024 * 1024
#: A text that the server refuses is shortened to its first half, again and again, down to this many characters.
LEAST_CHARACTERS = 200
#: Maximum length of a server's error message that is shown.
REASON_CHARACTERS = 200
#: HTTP statuses of failures that may be temporary.
_TEMPORARY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
#: HTTP statuses that may mean that a text is too long.
_REFUSALS = frozenset({400, 413, 422})
_CLOSED = "The embedding server is no longer in use."


class TextRefused(EmbedFailed):
    """The server refuses a text, but may accept a shorter one."""


class ServerEmbedder:
    """Computes vectors by calling an embedding server. The calls run on another thread's event loop."""

    model: str
    dimension: int

    def __init__(
        self,
        server: EmbedSettings,
        memory: Path,
        loop: asyncio.AbstractEventLoop,
        *,
        timeout_s: float = 60,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the embedder, without calling the server.

        The file `memory` identifies the server's model after a restart. `timeout_s` limits a call with all retries.
        """
        self._server = server
        self._timeout_s = timeout_s
        self._memory = memory
        self._loop = loop
        self._monotonic = monotonic
        headers = {"Accept-Encoding": "identity"}
        if server.api_key:
            headers["Authorization"] = f"Bearer {server.api_key}"
        self._client = httpx.AsyncClient(
            headers=headers,
            trust_env=False,
            follow_redirects=False,
            verify=ssl.create_default_context(cafile=certifi.where()),
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            limits=httpx.Limits(keepalive_expiry=KEPT_S),
        )
        self._url = f"{server.base_url}/embeddings"
        #: Running calls; None once the embedder is closed.
        self._calls: set[Future[bytes]] | None = set()
        self._lock = threading.Lock()
        self._generation: Generation | None = None
        #: Whether the server now runs another model.
        self.is_stale = False
        self._quiet_until_s = 0.0

    def start(self) -> None:
        """Find out which model the server runs. Raises EmbedFailed."""
        (probe,) = self._call([PROBE], self._timeout_s)
        self._generation = recognise(self._memory, self._server.model, probe)
        self.model, self.dimension = self._generation.name, len(probe)

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        batches = (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))
        return [_packed(vector) for batch in batches for vector in self._embed_cut(list(batch))]

    def embed_query(self, text: str, deadline_s: float | None) -> bytes:
        now_s = self._monotonic()
        if now_s < self._quiet_until_s:
            raise EmbedFailed("The embedding server did not answer a moment ago.")
        rest_s = QUERY_S if deadline_s is None else deadline_s - now_s
        if rest_s <= 0:
            raise EmbedFailed("The query was not embedded in time.")
        try:
            (vector,) = self._embed([text], rest_s, QUERY_ATTEMPTS)
        except EmbedFailed as failure:
            self._quiet_until_s = self._monotonic() + QUIET_S if failure.retryable else 0.0
            raise
        return _packed(vector)

    def close(self) -> None:
        """Cancel running calls and close all connections. Don't call it on the event loop's thread."""
        with self._lock:
            calls, self._calls = self._calls, None
        for call in calls or ():
            call.cancel()
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()

    def _embed_cut(self, texts: list[str]) -> list[Vector]:
        """Embed the texts, shortening those that are too long for the server."""
        try:
            return self._embed(texts, self._timeout_s)
        except TextRefused:
            if len(texts) > 1:
                middle = len(texts) // 2
                return self._embed_cut(texts[:middle]) + self._embed_cut(texts[middle:])
            if len(texts[0]) // 2 < LEAST_CHARACTERS:
                raise
            return self._embed_cut([texts[0][: len(texts[0]) // 2]])

    def _embed(self, texts: list[str], timeout_s: float, attempts: int = ATTEMPTS) -> list[Vector]:
        *vectors, probe = self._call([*texts, PROBE], timeout_s, attempts)
        if self._generation is None or not self._generation.is_of(probe):
            self.is_stale = True
            raise EmbedFailed(f"The embedding server now runs a different model under the name {self._server.model}.")
        return vectors

    def _call(self, texts: list[str], timeout_s: float, attempts: int = ATTEMPTS) -> list[Vector]:
        """Call the server on the event loop. The response is parsed on this thread, so that the loop isn't blocked."""
        with self._lock:
            if self._calls is None:
                raise EmbedFailed(_CLOSED)
            work = asyncio.wait_for(self._try_on(texts, attempts), timeout_s)
            call = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._calls.add(call)
        try:
            answer = call.result()
        except CancelledError as error:
            raise EmbedFailed(_CLOSED) from error
        except TimeoutError as error:
            raise EmbedFailed(f"The embedding server did not finish within {timeout_s:.1f} s.") from error
        finally:
            with self._lock:
                (self._calls or set()).discard(call)
        return _parse(answer, len(texts))

    async def _try_on(self, texts: list[str], attempts: int) -> bytes:
        for attempt in range(attempts - 1):
            try:
                return await self._ask(texts)
            except EmbedFailed as failure:
                if not failure.retryable:
                    raise
            # A random pause, so that failed calls aren't all retried at once.
            await asyncio.sleep(PAUSE_S * 2**attempt * random.SystemRandom().uniform(0.5, 1.0))
        return await self._ask(texts)

    async def _ask(self, texts: list[str]) -> bytes:
        body = {"model": self._server.model, "input": texts, "encoding_format": "float"}
        answer = bytearray()
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                async for piece in response.aiter_raw():
                    answer += piece
                    if len(answer) > MAX_ANSWER_BYTES:
                        raise EmbedFailed(
                            f"The embedding server's answer is over {MAX_ANSWER_BYTES // 1024**2} MB.", retryable=False
                        )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = "nothing answers" if isinstance(error, httpx.ConnectError) else type(error).__name__
            raise EmbedFailed(
                f"The embedding server can't be reached ({reason}): start it, or check SVC_EMBED_BASE_URL."
            ) from error
        status = response.status_code
        if status == httpx.codes.OK:
            return bytes(answer)
        message = f"The embedding server answered {status}"
        with suppress(ValueError, KeyError, TypeError):
            # All users see this error, and the server's message can quote the texts. So add that message only if
            # nothing but the probe was sent.
            reason = str(parse_json(answer if texts == [PROBE] else b"")["error"]["message"])
            # Some servers quote the API key.
            reason = reason.replace(self._server.api_key, "***") if self._server.api_key else reason
            message += f": {' '.join(reason.split())[:REASON_CHARACTERS]}"
        message += "."
        if status in _REFUSALS:
            raise TextRefused(message, retryable=False)
        if status == httpx.codes.NOT_FOUND:
            message += " Is its address SVC_EMBED_BASE_URL, with /v1, and its model SVC_EMBED_MODEL?"
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            message += " Is its key in SVC_EMBED_API_KEY_FILE or SVC_EMBED_API_KEY?"
        raise EmbedFailed(message, retryable=status in _TEMPORARY)


def _parse(answer: bytes, count: int) -> list[Vector]:
    """Parse the vectors in the order of their texts, scaled to length 1. Raises EmbedFailed."""
    vectors: list[Vector] = []
    try:
        rows = {int(row["index"]): row["embedding"] for row in parse_json(answer)["data"]}
        for place in range(count):
            vector = [float(number) for number in rows[place]]
            length = hypot(*vector)
            if not length > 0 or not isfinite(length):
                raise ValueError("one has no direction")  # noqa: TRY301 - one sentence for all that may be wrong with it
            vectors.append([number / length for number in vector])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        # Clients see this message, so it must not contain the message of `error`, which could quote the response.
        raise EmbedFailed(
            f"The embedding server's answer does not have a vector for each of {count} texts.", retryable=False
        ) from error
    if len({len(vector) for vector in vectors}) > 1:
        raise EmbedFailed("The embedding server's vectors are not all of one length.", retryable=False)
    return vectors


def _packed(vector: Vector) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)
