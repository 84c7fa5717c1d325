"""Sends HTTP requests with retries, and raises failures as errors of `svc_cli.errors`.

Server-sent events are read by hand, in ten lines: httpx-sse imports httpx, which takes 130 ms of a processor.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from svc_cli.client import retries
from svc_cli.client.connection_pools import ConnectionFailed, ConnectionPool, MakeTls, Proof
from svc_cli.daemon.probes import tls_context
from svc_cli.deadlines import Deadline
from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError
from svc_cli.http_responses import LimitedResponse, OddResponse, parse_answer
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.versions import API_RANGE, VERSION

if TYPE_CHECKING:
    from http.client import HTTPMessage

T = TypeVar("T")
Body = TypeVar("Body")

CONNECT_S = 5.0
#: The hint for a broken connection.
AWAY = "`svc daemon status` shows whether the daemon is running; it is safe to run the same command again."
#: The media type sent with every file. It makes the service detect the actual type, in the same way for all clients.
UNKNOWN_TYPE = "application/octet-stream"
#: Bytes not allowed in an idempotency key. Each is sent as 0xFF, so that the service refuses the key.
_UNSENDABLE = re.compile(rb"[^!-~]")
#: Characters that can't be in the file name of a multipart header. They are percent-encoded, as HTML5 prescribes.
_UNQUOTABLE = re.compile(r"[\x00-\x1f]")
#: Characters that have a meaning there, and percent signs that look like those of an encoded character.
_QUOTED = re.compile(r'["\\]|%(?=22|0[AaDd])')


class Request(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    params: Mapping[str, str | int] | None = None
    json: Any = None
    #: Text fields of a multipart body.
    form: Mapping[str, str] | None = None
    #: Name and bytes of the file in a multipart body.
    file: tuple[str, bytes] | None = None
    idempotency_key: str | None = None
    #: Whether the rate limit counts this request, because it adds a source, or opens a session or batch.
    is_create: bool = False
    headers: Mapping[str, str] = MappingProxyType({})
    #: Maximum seconds to wait for the next bytes of the response.
    silence_s: float = 60.0
    #: Whether the response is a stream of events, which is not tried again if it is silent.
    is_stream: bool = False


class Reply(NamedTuple, Generic[Body]):
    """A successful response."""

    status: int
    body: Body
    headers: "HTTPMessage"

    @property
    def is_replay(self) -> bool:
        """Whether this repeats the answer to an earlier request with the same idempotency key."""
        return self.headers.get(headers.IDEMPOTENT_REPLAYED, "").lower() == "true"


class Transport:
    """Sends requests to one origin with one key. Threads may share it."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        policy: retries.RetryPolicy | None = None,
        make_tls: MakeTls = tls_context,
        proof: Proof | None = None,
    ) -> None:
        self.base_url = base_url.partition("#")[0].rstrip("/")
        self.pacer = retries.CreatePacer()
        self._policy = policy or retries.RetryPolicy()
        #: The time in which all requests have to end.
        self.deadline = Deadline()
        self._pool = ConnectionPool(CONNECT_S, make_tls, proof)
        self._headers: dict[str, str | bytes] = {
            headers.AUTHORIZATION: f"Bearer {api_key}",
            headers.SVC_API: API_RANGE,
            headers.SVC_VERSION: VERSION,
            "User-Agent": f"svc/{VERSION}",
            "Accept": "*/*",
        }

    def close(self) -> None:
        self._pool.close()

    def use(self, connection: HTTPConnection) -> None:
        """Use this open connection to the origin, which has passed the proof, for the next request."""
        self._pool.add(urlsplit(self.base_url).netloc, connection)

    def send(self, request: Request) -> Reply[Any]:
        """Send the request, with retries, and return the reply.

        Raises ApiError, NetworkFailed if the connection keeps breaking, and BadAnswer if the response is not JSON.
        Retries are safe, because create requests have an idempotency key.
        """
        return self._settle(request, self._try)

    def stream(self, request: Request) -> Iterator[dict[str, Any]]:
        """Yield the events of the response as they arrive. Retries only before the first event; raises like `send`."""
        with ExitStack() as stack:
            response = self._settle(request, partial(self._try_to_open, stack))
            try:
                for line in response.lines():
                    if line.startswith(b"data: {"):
                        yield parse_answer(line.removeprefix(b"data: "), object_hook=ReplyBody)
            except ValueError:
                raise self._no_answer(request, response) from None
            except (OSError, HTTPException) as error:
                raise self._failure(request, error) from error

    @contextmanager
    def follow(self, request: Request) -> "Iterator[StreamedEvents]":
        """Open a stream of events that does not end. Retries and raises like `send`."""
        with ExitStack() as stack:
            response = self._settle(request, partial(self._try_to_open, stack))
            if not (response.getheader("Content-Type") or "").startswith("text/event-stream"):
                raise self._no_answer(request, response)
            yield StreamedEvents(response, partial(self._failure, request))

    def blocks(self, request: Request) -> Iterator[bytes]:
        """Yield the bytes of the response as they arrive. Retries only before the first bytes; raises like `send`."""
        with ExitStack() as stack:
            response = self._settle(request, partial(self._try_to_open, stack))
            try:
                yield from response.blocks()
            except (OSError, HTTPException) as error:
                raise self._failure(request, error) from error

    def _settle(self, request: Request, try_once: "Callable[[Request], T | SvcError]") -> T:
        """Send the request until it succeeds. Raises the last error if no retry is allowed."""
        attempts = retries.Attempts(self._policy, self.deadline, self.pacer.stopped)
        while True:
            self.deadline.check()
            outcome = try_once(request)
            # The service's rate limit counts neither refused nor repeated requests. It may have counted a request whose
            # connection broke.
            is_counted = isinstance(outcome, NetworkFailed) or (isinstance(outcome, Reply) and not outcome.is_replay)
            if request.is_create and not is_counted:
                self.pacer.give_back()
            if not isinstance(outcome, SvcError):
                return outcome
            if isinstance(outcome, ApiError) and request.is_create and outcome.code in retries.PACED_CODES:
                asked, most = outcome.details.get("requested_bytes"), outcome.details.get("limit_bytes")
                if isinstance(asked, int) and isinstance(most, int) and asked > most:
                    raise outcome  # no pause helps a request that is larger than the quota for a minute
                asked_s = retries.wait_s(outcome) or 1.0
                attempts.accept(outcome, asked_s, retries.LONGEST_TURN_S)
                self.pacer.hold(asked_s)
            elif request.is_stream and isinstance(outcome.__cause__, TimeoutError):
                raise outcome
            else:
                attempts.pause(outcome)

    def _try(self, request: Request) -> "Reply[Any] | SvcError":
        if request.is_create:
            self.pacer.wait(self.deadline)
        with ExitStack() as stack:
            try:
                response = self._open(stack, request)
                return self._read_reply(request, response)
            except (ConnectionFailed, OSError, HTTPException) as error:
                return self._failure(request, error)

    def _try_to_open(self, stack: ExitStack, request: Request) -> "LimitedResponse | SvcError":
        try:
            response = self._open(stack, request)
            if 200 <= response.status < 300:
                return response
            refusal = self._read_reply(request, response)
        except (ConnectionFailed, OSError, HTTPException) as error:
            return self._failure(request, error)
        return refusal if isinstance(refusal, SvcError) else self._no_answer(request, response)

    def _open(self, stack: ExitStack, request: Request) -> LimitedResponse:
        """Send a request and return the response, readable until `stack` is closed."""
        body, described = _encode(request)
        if request.idempotency_key is not None:
            described[headers.IDEMPOTENCY_KEY] = _UNSENDABLE.sub(b"\xff", request.idempotency_key.encode())
        address = urlsplit(self._url(request))
        sent_headers = {**self._headers, **described, **request.headers}
        within_s = self.deadline.grace_s
        silence_s = min(request.silence_s, within_s)
        sent = self._pool.exchange(request.method, address, body, sent_headers, silence_s, within_s)
        return stack.enter_context(sent)

    def _url(self, request: Request) -> str:
        # Don't escape commas, which join ids: `quote` is much faster if it need not escape anything.
        query = f"?{urlencode(request.params, safe=',', quote_via=quote)}" if request.params else ""
        return f"{self.base_url}{request.path}{query}"

    def _no_answer(self, request: Request, response: LimitedResponse) -> SvcError:
        return retries.foreign_response(self._url(request), response.status, response.headers)

    def _failure(self, request: Request, error: Exception) -> SvcError:
        """Return the error for a broken connection. Raises WaitTimedOut if the deadline broke it."""
        self.deadline.check()
        if isinstance(error, OddResponse):
            return retries.odd_response(self._url(request), error)
        cause = error.__cause__ if isinstance(error, ConnectionFailed) else error
        what = str(cause).strip() or type(cause).__name__
        failure = NetworkFailed(
            f"{request.method} {request.path} failed at {self.base_url}: {what}.",
            hint=AWAY,
        )
        failure.is_dead = isinstance(error, ConnectionFailed)
        failure.__cause__ = cause
        return failure

    def _read_reply(self, request: Request, response: LimitedResponse) -> "Reply[Any] | SvcError":
        """Read the response, and return ApiError if the service refuses the request."""
        content = response.read_whole()
        try:
            body = parse_answer(content, object_hook=ReplyBody)
        except ValueError:
            # 204 is the only success without a body.
            body = ReplyBody() if response.status == 204 else None
        if 200 <= response.status < 300 and isinstance(body, dict):
            return Reply(response.status, body, response.headers)
        return retries.refusal(self._url(request), response.status, body, response.headers)


class StreamedEvents:
    """An open stream of server-sent events with ids."""

    def __init__(self, response: LimitedResponse, as_failure: Callable[[Exception], SvcError]) -> None:
        self._response = response
        self._as_failure = as_failure

    def records(self, silence_s: float) -> Iterator[tuple[str | None, dict[str, Any] | None]]:
        """Yield the id and content of each event. A comment has no content, but may have an id.

        After the first one, the stream may be silent for `silence_s`. Raises NetworkFailed if the connection breaks,
        and BadAnswer if the stream is not one of the service.
        """
        event_id, event = None, None
        try:
            for line in self._response.lines():
                name, _, value = line.rstrip(b"\r\n").partition(b": ")
                if name == b"id":
                    event_id = value.decode()
                elif name == b"data":
                    event = parse_answer(value, object_hook=ReplyBody)
                elif not name and not value:
                    self._response.limit_silence(silence_s)
                    yield event_id, event
                    event_id, event = None, None
        except (OSError, HTTPException, ValueError) as error:
            # ValueError: the connection broke within a line, so the line is not valid JSON.
            raise self._as_failure(error) from error

    def abort(self) -> None:
        """End the stream. Any thread may call this; the reading thread gets an error."""
        self._response.abort()


class ReplyBody(dict[str, Any]):
    """A JSON object of a reply. A missing field raises BadAnswer."""

    def __missing__(self, name: str) -> NoReturn:
        raise BadAnswer(
            f"A response of the service lacks `{name}`: the service is older than `svc`, or a proxy has changed it."
        )


def _encode(request: Request) -> tuple[bytes | list[bytes] | None, dict[str, str | bytes]]:
    """Return the encoded body of a request and its headers."""
    if request.json is not None:
        text = json.dumps(request.json, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode(), {"Content-Type": "application/json"}
    if request.file is None:
        return None, {}
    name, data = request.file
    boundary = secrets.token_hex(16)
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        for field, value in (request.form or {}).items()
    ]
    name = _UNQUOTABLE.sub(lambda match: f"%{ord(match[0]):02X}", _QUOTED.sub(r"\\\g<0>", name))
    parts.append(
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        f"Content-Type: {UNKNOWN_TYPE}\r\n\r\n"
    )
    # Joining the file's bytes with the rest would take time and memory.
    blocks = ["".join(parts).encode(), data, f"\r\n--{boundary}--\r\n".encode()]
    return blocks, {
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Content-Length": str(sum(map(len, blocks))),
    }
