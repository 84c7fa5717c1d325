"""Sends bytes to upload URLs with resumable PUTs.

Anyone who has an upload URL can use it without an API key, so upload URLs never appear in errors or logs.
"""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import SplitResult, urlsplit

from svc_cli.certificates import tls_context
from svc_cli.client.connection_pools import ConnectionFailed, ConnectionPool, MakeTls, Proof
from svc_cli.client.contents import Content
from svc_cli.client.pacing import Stopped
from svc_cli.client.retries import RetryPolicy, foreign_response, may_pass, parse_retry_after, wait_s
from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError
from svc_daemon.wire.parsing import parse_json

TIMEOUT_S = 60.0
#: A body up to this size is sent together with its headers.
SMALL_BYTES = 1024 * 1024

OnSent = Callable[[int], None]


class Storage:
    """Sends bytes to upload URLs. Threads may share it."""

    def __init__(
        self,
        policy: RetryPolicy | None = None,
        sleep: Callable[[float], None] = time.sleep,
        make_tls: MakeTls = tls_context,
        proof: Proof | None = None,
    ) -> None:
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._pool = ConnectionPool(TIMEOUT_S, make_tls, proof)
        self._stopped = threading.Event()

    def close(self) -> None:
        self._pool.close()

    def stop(self) -> None:
        """Make all calls of `send` raise `pacing.Stopped`, now and later. Sent bytes stay stored."""
        self._stopped.set()

    def send(self, url: str, content: Content, *, resume: bool = False, on_sent: OnSent | None = None) -> int:
        """Send the missing bytes, reconnecting if needed, and return how many were sent.

        With `resume`, ask first how many bytes the service has. Raises NetworkFailed and ApiError, such as
        `checksum_mismatch`.
        """
        offset: int | None = None if resume else 0
        first: int | None = offset
        attempt = 0
        while True:
            before = offset
            try:
                offset = self._exchange(url, content, offset, on_sent)
            except SvcError as error:
                attempt += 1
                delay_s = self._policy.delay_s(attempt, wait_s(error)) if may_pass(error) else None
                if delay_s is None:
                    raise
                self._sleep(delay_s)
                offset = None
                continue
            first = offset if first is None else first
            if offset >= content.size_bytes:
                return offset - first
            attempt = attempt + 1 if before == offset else 0
            if attempt >= self._policy.attempts:
                raise BadAnswer("The storage address accepts no more bytes, but reports that some are missing.")

    def _exchange(self, url: str, content: Content, offset: int | None, on_sent: OnSent | None) -> int:
        """PUT the bytes from `offset` on, and return how many bytes are stored. If `offset` is None, send none."""
        if self._stopped.is_set():
            raise Stopped
        total, address = content.size_bytes, urlsplit(url)
        span, length, blocks = f"bytes */{total}", 0, iter(list[bytes]())
        if offset is not None:
            span, length = f"bytes {offset}-{total - 1}/{total}", total - offset
            blocks = self._watched(content, offset, on_sent)
        headers = {"Content-Range": span, "Content-Length": str(length)}
        body = b"".join(blocks) if length <= SMALL_BYTES else blocks
        try:
            with self._pool.exchange("PUT", address, body, headers, TIMEOUT_S) as response:
                reply = response.read()
        except ConnectionFailed as failed:
            raise _network_failed(address, failed.__cause__ or failed) from failed
        except (OSError, http.client.HTTPException) as error:
            raise _network_failed(address, error) from error
        if response.status not in {200, 308}:
            raise _refusal(response, reply)
        # `Range: bytes=0-N` shows the stored bytes. Without this header, no bytes are stored.
        last = (response.getheader("Range") or "").removeprefix("bytes=0-")
        return total if response.status == 200 else int(last) + 1 if last.isdecimal() else 0

    def _watched(self, content: Content, offset: int, on_sent: OnSent | None) -> Iterator[bytes]:
        for block in content.blocks(offset):
            if self._stopped.is_set():
                raise Stopped
            yield block
            if on_sent is not None:
                on_sent(len(block))


def _refusal(response: http.client.HTTPResponse, body: bytes) -> SvcError:
    try:
        value = parse_json(body)
        error = dict(value["error"])
    except (ValueError, KeyError, TypeError):
        return foreign_response("The storage address", response.status)
    refusal = ApiError(response.status, error, value.get("request_id"))
    if wait := response.getheader("Retry-After"):
        refusal.details.setdefault("retry_after_seconds", parse_retry_after(wait))
    return refusal


def _network_failed(address: SplitResult, error: BaseException) -> NetworkFailed:
    what = str(error).strip() or type(error).__name__
    failure = NetworkFailed(
        f"Sending bytes to {address.hostname}:{address.port} failed: {what}.",
        hint="`svc daemon status` shows whether the daemon is running; it is safe to run the same command again.",
    )
    failure.is_dead = isinstance(error, ConnectionRefusedError)
    return failure
