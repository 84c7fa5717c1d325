"""A server of the operator's own that makes the vectors: whatever speaks OpenAI's `/v1/embeddings`.

Its address is the operator's word, so no policy judges it; but redirects are not followed, nothing of the environment
is read, and the key goes into one header and nowhere else. A deadline runs over each call with all its retries. What it
says of an error may quote the text that it was asked, and failures are told to everyone: so its words are repeated only
where it was asked nothing but a sentence of our own.

The server alone knows which model answers: it may be exchanged while its name stays. So one known sentence goes along
with each call, and its vector has to be the one that it was (`generations`). Where it isn't, nothing of the answer is
used, and the server has to be opened anew.
"""

import asyncio
import json
import random
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from math import hypot, isfinite
from pathlib import Path
from typing import Any

import certifi
import httpx

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.embed.generations import PROBE, Generation, Vector, recognise
from svc_daemon.settings import EmbedSettings

#: Texts in one call: what small servers take, and enough for large ones.
BATCH = 32
#: Tries of one call, and the pause after the first; it doubles.
ATTEMPTS, PAUSE_S = 4, 0.5
#: A server that takes no connection for so long is not there.
CONNECT_S = 10
#: How long a connection is kept for the next call: making another costs a handshake.
KEPT_S = 30
#: Tries of a query, which somebody waits for, and its whole time where it has no deadline.
QUERY_ATTEMPTS, QUERY_S = 2, 10
#: After a query for which the server was not there, others don't wait for it for so long.
QUIET_S = 10
#: More than any answer to one call has: vectors of 10,000 numbers.
MAX_ANSWER_BYTES = 8 * 1024 * 1024
#: A text that is refused is tried again at half its length, down to this.
LEAST_CHARACTERS = 200
#: Of what the server says about an error, so much is told.
TOLD_CHARACTERS = 200
#: Answers that may be others a moment later.
_TEMPORARY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
#: Answers that may be about the length of a text.
_REFUSALS = frozenset({400, 413, 422})
_CLOSED = "The embedding server is no longer in use."


class TextRefused(EmbedFailed):
    """The server does not take one of the texts; a shorter one may do."""


class ServerEmbedder:
    """An Embedder: asks the server, on an event loop that others wait for."""

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
        """Asks nothing yet. `memory` is the file that keeps which model answered; `timeout_s` is for a whole call."""
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
        #: Those under way; None once it is closed.
        self._calls: set[Future[bytes]] | None = set()
        self._lock = threading.Lock()
        self._generation: Generation | None = None
        #: Whether the server has shown that it runs another model than it did.
        self.is_stale = False
        self._quiet_until_s = 0.0

    def start(self) -> None:
        """Find out which model answers; raises EmbedFailed."""
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
        """Give up what is under way, and close the connections. Not on the loop's own thread."""
        with self._lock:
            calls, self._calls = self._calls, None
        for call in calls or ():
            call.cancel()
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()

    def _embed_cut(self, texts: list[str]) -> list[Vector]:
        """As `_embed`; of a text that is too long for the server, its beginning counts."""
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
            raise EmbedFailed(f"The embedding server runs another model as {self._server.model} than before.")
        return vectors

    def _call(self, texts: list[str], timeout_s: float, attempts: int = ATTEMPTS) -> list[Vector]:
        """Wait for the loop to do it, and read the answer here, where nobody else waits."""
        with self._lock:
            if self._calls is None:
                raise EmbedFailed(_CLOSED)
            call = asyncio.run_coroutine_threadsafe(self._within(texts, timeout_s, attempts), self._loop)
            self._calls.add(call)
        try:
            answer = call.result()
        except CancelledError as error:
            raise EmbedFailed(_CLOSED) from error
        finally:
            with self._lock:
                (self._calls or set()).discard(call)
        return _parse(answer, len(texts))

    async def _within(self, texts: list[str], timeout_s: float, attempts: int) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._try_on(texts, attempts)
        except TimeoutError as error:
            raise EmbedFailed(f"The embedding server was not done within {timeout_s:.1f} s.") from error

    async def _try_on(self, texts: list[str], attempts: int) -> bytes:
        for attempt in range(attempts - 1):
            try:
                return await self._ask(texts)
            except EmbedFailed as failure:
                if not failure.retryable:
                    raise
            # With jitter, so that what was refused together does not come back together.
            await asyncio.sleep(PAUSE_S * 2**attempt * random.SystemRandom().uniform(0.5, 1.0))
        return await self._ask(texts)

    async def _ask(self, texts: list[str]) -> bytes:
        body = {"model": self._server.model, "input": texts, "encoding_format": "float"}
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                answer = await _read(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EmbedFailed(f"The embedding server can't be reached: {type(error).__name__}.") from error
        if response.status_code != httpx.codes.OK:
            raise self._refused(response.status_code, self._told(answer) if texts == [PROBE] else "")
        return answer

    def _refused(self, status: int, said: str) -> EmbedFailed:
        told = f"The embedding server answered {status}{said}."
        if status in _REFUSALS:
            return TextRefused(told, retryable=False)
        if status == httpx.codes.NOT_FOUND:
            told += " Is its address SVC_EMBED_BASE_URL, with /v1, and its model SVC_EMBED_MODEL?"
        return EmbedFailed(told, retryable=status in _TEMPORARY)

    def _told(self, answer: bytes) -> str:
        """What the server says of its error, without the key, which some of them repeat."""
        try:
            message = str(json.loads(answer)["error"]["message"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""
        hidden = message.replace(self._server.api_key, "***") if self._server.api_key else message
        return f": {' '.join(hidden.split())[:TOLD_CHARACTERS]}"


async def _read(response: httpx.Response) -> bytes:
    answer = bytearray()
    async for piece in response.aiter_raw():
        answer += piece
        if len(answer) > MAX_ANSWER_BYTES:
            raise EmbedFailed(
                f"The embedding server's answer is over {MAX_ANSWER_BYTES // 1024**2} MB.", retryable=False
            )
    return bytes(answer)


def _parse(answer: bytes, count: int) -> list[Vector]:
    """The vectors in the order of their texts, each of length 1; raises EmbedFailed."""
    try:
        rows = {int(row["index"]): row["embedding"] for row in json.loads(answer)["data"]}
        vectors = [_of_length_1(rows[place]) for place in range(count)]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        # What is wrong with it, told in detail, could be a piece of it.
        raise EmbedFailed(
            f"The embedding server's answer does not have a vector for each of {count} texts.", retryable=False
        ) from error
    if len({len(vector) for vector in vectors}) > 1:
        raise EmbedFailed("The embedding server's vectors are not all of one length.", retryable=False)
    return vectors


def _of_length_1(numbers: Any) -> Vector:
    vector = [float(number) for number in numbers]
    length = hypot(*vector)
    if not length > 0 or not isfinite(length):
        raise ValueError("one has no direction")
    return [number / length for number in vector]


def _packed(vector: Vector) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)
