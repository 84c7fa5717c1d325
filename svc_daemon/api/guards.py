"""Guards before routing: requests that no handler should ever see are refused here.

A browser can be made to send requests to a local daemon, by a foreign page or by a name that was pointed at loopback;
Host, Origin and Sec-Fetch-Site give it away. Two framings of one body mean that something in between may read the
request in another way than we do.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from svc_daemon.core.refusals import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.errors import ErrorCode

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class FramingFault(ServiceError):
    """Nobody can say where this request ends, so nothing more may be read from its connection."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message, errors=[{"path": "", "message": message}])


def no_path(_path: str) -> bool:
    """The predicate that exempts nothing."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """Who may speak to this daemon, and how much may stand before the body."""

    #: Host names taken besides the loopback ones, on any port; an IPv6 address stands in brackets.
    hosts: Collection[str] = ()
    #: Origins of web pages that may drive this daemon, such as `https://docs.example.org`.
    origins: Collection[str] = ()
    #: Largest request line and headers together, in bytes; h11's own bound counts only incomplete ones.
    max_head_bytes: int = 16 * 1024
    #: Paths (as decoded by the server) on which the Origin isn't looked at: the token in them is the authority.
    exempt: Callable[[str], bool] = field(default=no_path)


class Guards:
    """Refuses by raising ServiceError, so it stands inside Faults."""

    def __init__(self, app: ASGIApp, rules: GuardRules) -> None:
        self.app = app
        self.rules = rules
        self.origins = frozenset(origin.lower().encode() for origin in rules.origins)
        names = "|".join(re.escape(host) for host in (*LOOPBACK_HOSTS, *rules.hosts))
        self.is_our_host = re.compile(rf"(?:{names})(?::\d{{1,5}})?".encode(), re.IGNORECASE).fullmatch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._inspect(scope)
        await self.app(scope, receive, send)

    def _inspect(self, scope: Scope) -> None:
        head = _Head.of(scope)
        if head.size_bytes > self.rules.max_head_bytes:
            raise ServiceError(ErrorCode.HEADERS_TOO_LARGE, max_bytes=self.rules.max_head_bytes)
        if len(head.hosts) != 1 or not self.is_our_host(head.hosts[0]):
            raise ServiceError(ErrorCode.HOST_NOT_ALLOWED)
        if head.transfer_encodings:
            _refuse_odd_framing(head, scope)
        if (head.origins or head.fetch_sites) and not self.rules.exempt(scope["path"]):
            self._refuse_foreign_pages(head)
        if scope["query_string"]:
            _refuse_team(scope["query_string"])

    def _refuse_foreign_pages(self, head: "_Head") -> None:
        if head.origins and not all(origin.lower() in self.origins for origin in head.origins):
            raise ServiceError(ErrorCode.ORIGIN_NOT_ALLOWED)
        # A page of a configured origin is cross-site too; its browser names the origin with all that changes something.
        if not head.origins and b"cross-site" in (site.strip().lower() for site in head.fetch_sites):
            raise ServiceError(ErrorCode.ORIGIN_NOT_ALLOWED)


def _refuse_odd_framing(head: "_Head", scope: Scope) -> None:
    """RFC 9112, section 6.1: both framings, or chunks in HTTP/1.0, are how requests are smuggled."""
    if head.content_lengths:
        raise FramingFault("A request has either Transfer-Encoding or Content-Length, not both.")
    if scope["http_version"] == "1.0":
        raise FramingFault("HTTP/1.0 has no Transfer-Encoding.")


def _refuse_team(query_string: bytes) -> None:
    if any(name == "team_id" for name, _ in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)):
        raise refusal("team_id", "The team follows from the API key; team_id is not accepted.")


@dataclass(slots=True)
class _Head:
    """The headers that the guards look at, each with all its lines, and the size of the whole head."""

    size_bytes: int
    hosts: list[bytes] = field(default_factory=list)
    origins: list[bytes] = field(default_factory=list)
    fetch_sites: list[bytes] = field(default_factory=list)
    transfer_encodings: list[bytes] = field(default_factory=list)
    content_lengths: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, scope: Scope) -> "_Head":
        head = cls(len(scope.get("raw_path") or b"") + len(scope["query_string"]))
        lists = {
            b"host": head.hosts,
            b"origin": head.origins,
            b"sec-fetch-site": head.fetch_sites,
            b"transfer-encoding": head.transfer_encodings,
            b"content-length": head.content_lengths,
        }
        for name, value in scope["headers"]:
            # Four for the colon, the space and the end of the line.
            head.size_bytes += len(name) + len(value) + 4
            if name in lists:
                lists[name].append(value)
        return head
