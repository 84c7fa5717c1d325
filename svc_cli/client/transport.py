"""One HTTP exchange with the daemon: headers, retries, and every failure as one of our errors."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

import httpx

from svc_cli.client.pacing import Gate
from svc_cli.client.retries import PACED_CODES, RetryPolicy, may_pass, parse_retry_after, wait_s
from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError
from svc_daemon.wire import headers
from svc_daemon.wire.versions import API_RANGE, VERSION

T = TypeVar("T")

CONNECT_S = 5.0
#: As many as the most threads of one upload use at a time.
POOL = httpx.Limits(max_connections=200, max_keepalive_connections=100, keepalive_expiry=2.0)
#: The service judges a file by its bytes and name; a guess from this machine's table would differ from the next one's.
UNKNOWN_TYPE = "application/octet-stream"
#: What no header can carry, or may be stripped from one; in its place goes what the service refuses in a key.
_UNSENDABLE = re.compile(rb"[^!-~]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it goes out, as often as needed."""

    method: str
    path: str
    params: Mapping[str, str | int] | None = None
    json: Any = None
    #: Fields and the file of a multipart body.
    form: Mapping[str, str] | None = None
    file: tuple[str, bytes] | None = None
    idempotency_key: str | None = None
    #: Creates wait at the gate and are held back together.
    is_create: bool = False
    #: How long the answer may let us wait for its next bytes.
    silence_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A success: status, body and headers."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def is_replay(self) -> bool:
        """The answer of an earlier request with the same idempotency key."""
        return self.headers.get(headers.IDEMPOTENT_REPLAYED, "").lower() == "true"


class Transport:
    """Sends requests to one origin with one key. Threads may share it."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        policy: RetryPolicy | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.gate = Gate()
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        #: A request was interrupted, and may have kept a lock of the connections.
        self._was_interrupted = False
        # Proxies of the environment are not for a daemon on this machine, and a key must not pass one by accident.
        self._http = httpx.Client(
            base_url=self.base_url,
            headers={
                headers.AUTHORIZATION: f"Bearer {api_key}",
                headers.SVC_API: API_RANGE,
                headers.SVC_VERSION: VERSION,
                "User-Agent": f"svc/{VERSION}",
            },
            limits=POOL,
            # Reading the certificates takes 20 ms, which only https has a use for.
            verify=self.base_url.startswith("https:"),
            trust_env=False,
        )

    def close(self) -> None:
        if not self._was_interrupted:
            self._http.close()

    def send(self, request: Request) -> Reply:
        """Send until it is answered for good.

        Raises ApiError for an error answer, NetworkFailed when the connection breaks once too often, BadAnswer for what
        is not JSON. Everything sent here may be sent twice: creates carry an idempotency key.
        """
        return self._settle(request, self._try)

    def send_json(self, method: str, path: str, body: Any) -> Reply:
        """As `send`, for a JSON body that is no create."""
        return self.send(Request(method=method, path=path, json=body))

    def stream(self, request: Request) -> Iterator[dict[str, Any]]:
        """The events of the answer as they come. Sent again only while none has come; raises as `send` does."""
        with ExitStack() as stack:
            response = self._settle(request, partial(self._try_to_open, stack))
            try:
                for line in response.iter_lines():
                    if line.startswith("data: {"):
                        yield json.loads(line.removeprefix("data: "))
            except ValueError:
                raise _no_answer(response) from None
            except httpx.TransportError as error:
                raise self._network_failed(request, error) from error

    def blocks(self, request: Request) -> Iterator[bytes]:
        """The bytes of the answer as they come. Sent again only while none has come; raises as `send` does."""
        with ExitStack() as stack:
            response = self._settle(request, partial(self._try_to_open, stack))
            try:
                yield from response.iter_bytes()
            except httpx.TransportError as error:
                raise self._network_failed(request, error) from error

    def _settle(self, request: Request, try_once: "Callable[[Request], T | SvcError]") -> T:
        """What the first try gives that is no refusal, after as many as make sense."""
        attempt = 0
        while True:
            attempt += 1
            outcome = try_once(request)
            # Replays and refusals cost no token of the service's; a broken line may have.
            is_counted = isinstance(outcome, NetworkFailed) or (isinstance(outcome, Reply) and not outcome.is_replay)
            if request.is_create and not is_counted:
                self.gate.give_back()
            if not isinstance(outcome, SvcError):
                return outcome
            if isinstance(outcome, ApiError) and request.is_create and _has_a_turn(outcome):
                self.gate.hold(wait_s(outcome) or 1.0)
                attempt -= 1
                continue
            delay_s = self._policy.delay_s(attempt, wait_s(outcome)) if may_pass(outcome) else None
            if delay_s is None:
                raise outcome
            self._sleep(delay_s)

    def _try(self, request: Request) -> "Reply | ApiError | NetworkFailed | BadAnswer":
        if request.is_create:
            self.gate.wait()
        key_header = None
        if request.idempotency_key is not None:
            key_header = {headers.IDEMPOTENCY_KEY.encode(): _UNSENDABLE.sub(b"\xff", request.idempotency_key.encode())}
        try:
            response = self._http.request(
                request.method,
                request.path,
                params=request.params,
                json=request.json,
                data=request.form,
                files={"file": (*request.file, UNKNOWN_TYPE)} if request.file else None,
                headers=key_header,
                timeout=_timeout(request),
            )
        except httpx.TransportError as error:
            return self._network_failed(request, error)
        except KeyboardInterrupt:
            self._was_interrupted = True
            raise
        return read_reply(response)

    def _try_to_open(self, stack: ExitStack, request: Request) -> "httpx.Response | SvcError":
        try:
            opened = self._http.stream(request.method, request.path, json=request.json, timeout=_timeout(request))
            response = stack.enter_context(opened)
            if response.is_success:
                return response
            response.read()
        except httpx.TransportError as error:
            return self._network_failed(request, error)
        refusal = read_reply(response)
        return refusal if isinstance(refusal, SvcError) else _no_answer(response)

    def _network_failed(self, request: Request, error: httpx.TransportError) -> NetworkFailed:
        what = str(error) or type(error).__name__
        failure = NetworkFailed(
            f"{request.method} {request.path} failed at {self.base_url}: {what}.",
            hint="`svc daemon status` shows whether the daemon runs; the same command may be run again.",
        )
        failure.is_dead = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        return failure


class ReplyBody(dict[str, Any]):
    """An object of a reply. A field that it lacks is a BadAnswer and no bug of the caller."""

    def __missing__(self, name: str) -> NoReturn:
        raise BadAnswer(f"An answer of the service lacks `{name}`; something on the way may have changed it.")


def read_reply(response: httpx.Response) -> "Reply | ApiError | BadAnswer":
    """A success, a refusal, or the error for something that is no answer of this API."""
    try:
        body = response.json(object_hook=ReplyBody) if response.content else {}
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return _no_answer(response)
    if response.is_success:
        return Reply(response.status_code, body, response.headers)
    found = body.get("error")
    error = found if isinstance(found, dict) else {}
    wait = response.headers.get(headers.RETRY_AFTER)
    # The routes of OpenAI's clients have these two in headers alone.
    error.setdefault("retryable", response.headers.get(headers.SHOULD_RETRY) == "true")
    request_id = body.get("request_id") or response.headers.get(headers.REQUEST_ID)
    refusal = ApiError(response.status_code, error, request_id)
    if wait:
        refusal.details.setdefault("retry_after_seconds", parse_retry_after(wait))
    return refusal


def _no_answer(response: httpx.Response) -> BadAnswer:
    return BadAnswer(f"{response.request.url} answered {response.status_code} with something that is not this API.")


def _timeout(request: Request) -> httpx.Timeout:
    return httpx.Timeout(request.silence_s, connect=CONNECT_S)


def _has_a_turn(refusal: ApiError) -> bool:
    """Whether waiting helps: what is larger than a whole minute's quota never gets its turn."""
    asked, most = refusal.details.get("requested_bytes"), refusal.details.get("limit_bytes")
    is_too_much = isinstance(asked, int) and isinstance(most, int) and asked > most
    return refusal.code in PACED_CODES and not is_too_much
