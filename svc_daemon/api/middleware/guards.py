"""Refuses dangerous requests before they are routed, and limits how long a client may take to send a body.

For example, a web page can make a browser send requests to a local daemon. Such requests are recognized by the headers
Host, Origin and Sec-Fetch-Site.

Only time spent waiting for the client counts. `connections.protocols` limits request heads and idle connections.
"""

import asyncio
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.api.middleware.response_headers import Header
from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode

#: Headers that `Guards` checks. If a header is repeated, all its values are checked.
_WATCHED = frozenset({b"host", b"origin", b"sec-fetch-site", b"transfer-encoding", b"content-length"})

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class FramingFault(ServiceError):
    """Raised if it is unclear where a request ends, so that the connection must be closed."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message, errors=[{"path": "", "message": message}])


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """Hosts and origins that may use this daemon, and the maximum size of a request head."""

    #: Accepted host names besides those of the local machine, on any port; IPv6 addresses in brackets.
    hosts: Collection[str] = ()
    #: Origins of web pages that may use this daemon, such as `https://docs.example.org`.
    origins: Collection[str] = ()
    #: Maximum total size of the request line and the headers.
    max_head_bytes: int = 16 * 1024
    #: Returns whether all pages may send a request: its path has a token, or it reads a static file of the console.
    exempt: Callable[[Scope], bool] | None = None


class Guards:
    """Middleware that refuses dangerous requests by raising ServiceError.

    It must run inside `ErrorResponses`, which turns the error into a response.
    """

    def __init__(self, app: ASGIApp, rules: GuardRules) -> None:
        self.app = app
        self.rules = rules
        self.origins = frozenset(origin.lower().encode() for origin in rules.origins)
        names = "|".join(re.escape(host) for host in (*LOOPBACK_HOSTS, *rules.hosts))
        self.is_our_host = re.compile(rf"(?:{names})(?::\d{{1,5}})?".encode(), re.IGNORECASE).fullmatch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Approximate the size of the head: each header has four bytes for colon, space and line break.
        target_bytes = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        headers = scope["headers"]
        head_bytes = target_bytes + 4 * len(headers) + sum(map(len, chain.from_iterable(headers)))
        if head_bytes > self.rules.max_head_bytes:
            raise ServiceError(ErrorCode.HEADERS_TOO_LARGE, max_bytes=self.rules.max_head_bytes)
        watched = [header for header in headers if header[0] in _WATCHED]
        hosts = [value for name, value in watched if name == b"host"]
        # A request line with a whole URL also names a host.
        named = [*hosts, scope["authority"]] if "authority" in scope else hosts
        if len(hosts) != 1 or not all(map(self.is_our_host, named)):
            raise ServiceError(ErrorCode.HOST_NOT_ALLOWED)
        # Most requests have only one of the watched headers: Host.
        if len(watched) > 1:
            _refuse_odd_framing({name for name, _ in watched}, scope)
            self._refuse_foreign_pages(watched, hosts[0], scope)
        query = scope["query_string"]
        # C code such as SQLite may ignore everything after NUL.
        if b"%00" in query or b"\0" in query:
            raise refusal("", "The query string has NUL in it.")
        if query and any(name == "team_id" for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)):
            raise refusal("team_id", "The team follows from the API key; team_id is not accepted.")
        await self.app(scope, receive, send)

    def _refuse_foreign_pages(self, watched: list[Header], host: bytes, scope: Scope) -> None:
        origins = [value.lower() for name, value in watched if name == b"origin"]
        # The console is a page of this service. A proxy in front of it may speak HTTPS, but never the other way round.
        schemes = (b"https",) if scope.get("scheme") == "https" else (b"http", b"https")
        ours = self.origins.union(scheme + b"://" + host.lower() for scheme in schemes)
        sites = [value.strip().lower() for name, value in watched if name == b"sec-fetch-site"]
        # Origin takes precedence over Sec-Fetch-Site, which is `cross-site` for allowed origins too.
        is_foreign = not ours.issuperset(origins) if origins else b"cross-site" in sites
        exempt = self.rules.exempt
        if is_foreign and not (exempt and exempt(scope)):
            raise ServiceError(ErrorCode.ORIGIN_NOT_ALLOWED)


def _refuse_odd_framing(names: set[bytes], scope: Scope) -> None:
    """Refuse Transfer-Encoding in HTTP/1.0, or together with Content-Length (request smuggling, RFC 9112, 6.1)."""
    if b"transfer-encoding" not in names:
        return
    if b"content-length" in names:
        raise FramingFault("A request has either Transfer-Encoding or Content-Length, not both.")
    if scope["http_version"] == "1.0":
        raise FramingFault("HTTP/1.0 has no Transfer-Encoding.")


#: Only requests with a body have these headers.
_FRAMING = (b"content-length", b"transfer-encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """The limits of one connection."""

    #: Maximum seconds until the head of a request has arrived.
    head_s: float = Limits.header_seconds
    #: Extra seconds for each body, in addition to the time that follows from the minimum rate.
    body_grace_s: float = 10
    #: Minimum average rate at which a body must arrive.
    body_bytes_per_s: float = Limits.body_bytes_per_second
    #: Maximum seconds for a body, whatever its rate.
    body_total_s: float = Limits.body_seconds
    #: Seconds that an idle connection stays open for another request.
    keep_alive_s: int = 15
    #: Seconds that a client may leave a response unread, once the network buffers are full.
    unread_answer_s: float = 60
    #: Seconds that a client may continue to send a request that was already answered.
    linger_s: float = 5
    #: Bytes that a client may still send of a request that was already answered.
    linger_bytes: int = 64 * 1024 * 1024
    #: Maximum number of open connections.
    max_connections: int = 800


class Deadlines:
    """Middleware that raises ServiceError `request_timeout` from `receive` if a body arrives too slowly.

    It must run inside `ErrorResponses`, which turns the error into a response.
    """

    def __init__(self, app: ASGIApp, limits: ClientLimits, clock: Callable[[], float]) -> None:
        self.app = app
        self.limits = limits
        #: Returns the seconds of a monotonic clock.
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and any(name in _FRAMING for name, _ in scope["headers"]):
            receive = _PacedBody(receive, self.limits, self.clock).receive
        await self.app(scope, receive, send)


class _PacedBody:
    """A request body that must arrive at a minimum rate."""

    def __init__(self, receive: Receive, limits: ClientLimits, clock: Callable[[], float]) -> None:
        self._receive = receive
        self._limits = limits
        self._clock = clock
        self._received_bytes = 0
        self._waited_s = 0.0
        self._more = True

    async def receive(self) -> Message:
        if not self._more:
            # The body is complete. The application now waits for the client to disconnect, without a deadline.
            return await self._receive()
        began, limits = self._clock(), self._limits
        pace_s = limits.body_grace_s + self._received_bytes / limits.body_bytes_per_s
        try:
            async with asyncio.timeout(max(0, min(limits.body_total_s, pace_s) - self._waited_s)):
                message = await self._receive()
        except TimeoutError as error:
            raise ServiceError(ErrorCode.REQUEST_TIMEOUT, "The body did not arrive in time.") from error
        self._waited_s += self._clock() - began
        self._received_bytes += len(message.get("body", b""))
        self._more = message.get("more_body", False)
        return message
