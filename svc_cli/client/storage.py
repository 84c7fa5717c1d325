"""Bytes to storage addresses: resumable PUTs, without the machinery of the API's requests.

A folder of small files is thousands of PUTs, each of which has to be cheap: a kept connection, few headers, no key.
An address is a capability: whoever has it may send. So no error and no log names one.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from svc_cli.client.contents import Content
from svc_cli.client.pacing import Stopped
from svc_cli.client.retries import RetryPolicy, is_worth_retrying, parse_retry_after
from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError

TIMEOUT_S = 60.0
#: A kept connection older than this may have been closed by the other side; a new one is cheaper than finding out.
KEEP_S = 2.0
#: A body up to this size goes out together with its head.
SMALL_BYTES = 1024 * 1024

OnSent = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class _Told:
    """What an answer says."""

    status: int
    #: Bytes that are stored, where the status is 200 or 308.
    stored_bytes: int
    #: The error, where it is another.
    error: SvcError | None = None


class Storage:
    """Sends bytes to upload addresses over kept connections. Threads may share it."""

    def __init__(self, policy: RetryPolicy | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._lock = threading.Lock()
        self._kept: dict[str, list[tuple[float, http.client.HTTPConnection]]] = {}
        self._stopped = threading.Event()

    def close(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, {}
        for _, connection in (pair for pairs in kept.values() for pair in pairs):
            connection.close()

    def stop(self) -> None:
        """End what is being sent; it raises `pacing.Stopped`. What has arrived stays there."""
        self._stopped.set()

    def send(self, url: str, content: Content, *, resume: bool = False, on_sent: OnSent | None = None) -> int:
        """Send what is not yet stored, through cut connections too; how many bytes that were.

        With `resume` the service is asked first how much it has. Raises ApiError (`checksum_mismatch`,
        `session_expired`, …) and NetworkFailed.
        """
        offset: int | None = None if resume else 0
        first: int | None = offset
        attempt = 0
        while True:
            before = offset
            try:
                offset = self._ask(url, content) if offset is None else self._put(url, content, offset, on_sent)
            except SvcError as error:
                attempt += 1
                self._pause(error, attempt)
                offset = None
                continue
            first = offset if first is None else first
            if offset >= content.size_bytes:
                return offset - first
            attempt = attempt + 1 if before == offset else 0
            if attempt >= self._policy.attempts:
                raise BadAnswer("The storage address takes no more bytes, and says that some are missing.")

    def _pause(self, error: SvcError, attempt: int) -> None:
        delay_s = self._policy.delay_s(attempt, _wait_s(error)) if _may_pass(error) else None
        if delay_s is None:
            raise error
        self._sleep(delay_s)

    def _ask(self, url: str, content: Content) -> int:
        return self._exchange(url, f"bytes */{content.size_bytes}", 0, iter(()), content.size_bytes)

    def _put(self, url: str, content: Content, offset: int, on_sent: OnSent | None) -> int:
        size_bytes = content.size_bytes
        span = f"bytes {offset}-{size_bytes - 1}/{size_bytes}"
        return self._exchange(url, span, size_bytes - offset, self._watched(content, offset, on_sent), size_bytes)

    def _watched(self, content: Content, offset: int, on_sent: OnSent | None) -> Iterator[bytes]:
        for block in content.blocks(offset):
            if self._stopped.is_set():
                raise Stopped
            yield block
            if on_sent is not None:
                on_sent(len(block))

    def _exchange(self, url: str, span: str, length: int, blocks: Iterator[bytes], total: int) -> int:
        """One PUT; how many bytes are stored then."""
        if self._stopped.is_set():
            raise Stopped
        address = urlsplit(url)
        connection = self._take(address)
        is_whole = False
        try:
            told = self._try(connection, address, span, length, blocks)
            is_whole = told.error is None
        except (OSError, http.client.HTTPException) as error:
            raise _network_failed(address, error) from error
        finally:
            if is_whole:
                self._keep(address, connection)
            else:
                connection.close()
        if told.error is not None:
            raise told.error
        return total if told.status == 200 else told.stored_bytes

    def _try(
        self,
        connection: http.client.HTTPConnection,
        address: SplitResult,
        span: str,
        length: int,
        blocks: Iterator[bytes],
    ) -> _Told:
        headers = {"Content-Range": span, "Content-Length": str(length)}
        body = b"".join(blocks) if length <= SMALL_BYTES else blocks
        try:
            connection.request("PUT", address.path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # A refusal may come before the body is read; it says more than the broken pipe does.
            if connection.sock is None:
                raise
        return _read(connection.getresponse())

    def _take(self, address: SplitResult) -> http.client.HTTPConnection:
        """A kept connection that is surely still open, or a new one."""
        with self._lock:
            kept = self._kept.get(address.netloc, [])
            while kept:
                since_s, connection = kept.pop()
                if time.monotonic() - since_s < KEEP_S:
                    return connection
                connection.close()
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        return kind(address.hostname or "", address.port, timeout=TIMEOUT_S)

    def _keep(self, address: SplitResult, connection: http.client.HTTPConnection) -> None:
        if connection.sock is None:  # the other side wants it closed
            return
        with self._lock:
            self._kept.setdefault(address.netloc, []).append((time.monotonic(), connection))


def _read(response: http.client.HTTPResponse) -> _Told:
    body = response.read()
    if response.status in (200, 308):
        return _Told(response.status, _stored(response.getheader("Range")))
    return _Told(response.status, 0, _refusal(response, body))


def _stored(text: str | None) -> int:
    """How many bytes a `Range: bytes=0-N` speaks of; none without one."""
    last = (text or "").removeprefix("bytes=0-")
    return int(last) + 1 if last.isdecimal() else 0


def _refusal(response: http.client.HTTPResponse, body: bytes) -> SvcError:
    try:
        told = json.loads(body)
        error = dict(told["error"])
    except (ValueError, KeyError, TypeError):
        return BadAnswer(f"The storage address answered {response.status} with something that is not this API.")
    refusal = ApiError(response.status, error, told.get("request_id"))
    if wait := response.getheader("Retry-After"):
        refusal.details.setdefault("retry_after_seconds", parse_retry_after(wait))
    return refusal


def _network_failed(address: SplitResult, error: Exception) -> NetworkFailed:
    what = str(error) or type(error).__name__
    failure = NetworkFailed(
        f"Sending bytes to {address.hostname}:{address.port} failed: {what}.",
        hint="`svc daemon status` shows whether the daemon runs; the same command may be run again.",
    )
    failure.is_dead = isinstance(error, ConnectionRefusedError)
    return failure


def _wait_s(error: SvcError) -> float | None:
    value = error.details.get("retry_after_seconds")
    return float(value) if isinstance(value, int | float) else None


def _may_pass(error: SvcError) -> bool:
    if isinstance(error, ApiError):
        return error.code == "offset_mismatch" or is_worth_retrying(error.status, error.code, error.retryable)
    return isinstance(error, NetworkFailed)
