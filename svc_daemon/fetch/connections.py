"""Resolves names, and connects to hosts only at addresses that the policy permits."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, Protocol

import certifi
import httpcore

from svc_daemon.core.access.urls import LOOPBACKS, AddressPolicy, IpAddress, blocked
from svc_daemon.fetch.contract import FetchFailed, Reason
from svc_daemon.wire.light.urls import Url

#: Maximum number of lookups at once. A lookup without an answer keeps its thread busy.
MAX_LOOKUPS = 16


class Resolver(Protocol):
    """Looks up the addresses of host names."""

    async def resolve(self, name: str) -> Sequence[str]:
        """Return a name's addresses, in the order to try. Raises OSError if there are none."""
        ...


class SystemResolver:
    """Looks up names with `getaddrinfo` in daemon threads.

    The event loop's own threads aren't used, because lookups without an answer would use them up. At exit, Python
    doesn't wait for daemon threads.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    async def resolve(self, name: str) -> Sequence[str]:
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def settle(set_answer: Callable[[], None]) -> None:
            # The lookup may have gone on after its caller was cancelled.
            self._slots.release()
            if not answer.done():
                set_answer()

        def look_up() -> None:
            try:
                found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
                set_answer = partial(answer.set_result, [str(address[0]) for *_, address in found])
            except OSError as error:
                set_answer = partial(answer.set_exception, error)
            # If the event loop is closed, nothing waits for the answer any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, set_answer)

        threading.Thread(target=look_up, name="resolver", daemon=True).start()
        return await answer


#: Maximum number of addresses of a name to try, in the resolver's order.
MAX_TRIED = 4

#: Maximum number of bytes until a response's head is complete, interim responses such as 103 included. httpcore limits
#: each of these, but not their number.
MAX_HEAD_BYTES = 256 * 1024
#: How many bytes of it are parsed in one step. A hundred interim responses take some milliseconds.
HEAD_PIECE_BYTES = 4 * 1024

#: A socket option, as in httpcore.
SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class Connector:
    """Connects to the hosts of URLs, if the policy permits their addresses."""

    def __init__(
        self, policy: AddressPolicy, resolver: Resolver, connect_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._connect_s = connect_s
        self._tls = tls

    async def judged_addresses(self, url: Url) -> Sequence[IpAddress]:
        """Return the addresses of the URL's host, all permitted by the policy.

        Raises `url_fetch_blocked` if the policy refuses one, FetchFailed if there are none.
        """
        if not self._policy.may_permit_port(url.port):
            raise blocked(
                f"A URL's port must be 80 or 443, not {url.port}; the operator can allow others with SVC_FETCH_ALLOW, "
                f"such as 127.0.0.0/8:{url.port}.",
                "port",
            )
        addresses = await self._addresses(url)
        if not all(self._policy.permits(address, url.port) for address in addresses):
            raise blocked(
                "The URL leads to an address that the fetch policy refuses; the operator can allow its network with "
                "SVC_FETCH_ALLOW.",
                "address",
            )
        return addresses

    @asynccontextmanager
    async def exchange(
        self, url: Url, method: str, headers: Sequence[tuple[str, str]], body: bytes | None = None
    ) -> AsyncIterator[httpcore.Response]:
        """Send one request on its own connection, and yield the response once its head is complete.

        Raises the errors of `judged_addresses` and of httpcore.
        """
        network = _JudgedNetwork(await self.judged_addresses(url), self._connect_s)
        is_tls = url.scheme == "https"
        if is_tls and self._tls is None:
            # Certificates load slowly, so load them on first use. `cafile` overrides those named in the environment.
            self._tls = ssl.create_default_context(cafile=certifi.where())
        connection = httpcore.AsyncHTTPConnection(
            origin=_remote(url).origin,
            ssl_context=self._tls if is_tls else None,
            network_backend=network,
        )
        try:
            async with connection.stream(method, _remote(url), headers=headers, content=body) as response:
                network.head.is_complete = True
                yield response
        finally:
            await network.aclose()

    async def _addresses(self, url: Url) -> Sequence[IpAddress]:
        if url.address is not None:
            return (url.address,)
        if url.is_local:
            # Don't look up `localhost`. If the operator has allowed only one of its addresses, use that address.
            return [address for address in LOOPBACKS if self._policy.permits(address, url.port)] or LOOPBACKS
        try:
            found = await self._resolver.resolve(url.host)
        except OSError as error:
            raise _unresolved() from error
        if not found:
            raise _unresolved()
        return [ip_address(text) for text in found]


def _remote(url: Url) -> httpcore.URL:
    """Build httpcore's URL without parsing it again."""
    return httpcore.URL(
        scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode("ascii")
    )


@dataclass(slots=True)
class _Head:
    """How much of a response's head, and of the interim responses before it, has arrived."""

    received_bytes: int = 0
    is_complete: bool = False


class _LimitedStream(httpcore.AsyncNetworkStream):
    """Limits what is read until a response's head is complete."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, head: _Head) -> None:
        self._stream, self._head = stream, head

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  (as in the library)
        """Raises RemoteProtocolError if there is too much before the end of the head."""
        if self._head.is_complete:
            return await self._stream.read(max_bytes, timeout)
        data = await self._stream.read(min(max_bytes, HEAD_PIECE_BYTES), timeout)
        self._head.received_bytes += len(data)
        if self._head.received_bytes > MAX_HEAD_BYTES:
            raise httpcore.RemoteProtocolError("the head of the response is too long")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  (as in the library)
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (as in the library)
    ) -> httpcore.AsyncNetworkStream:
        return _LimitedStream(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._head)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _JudgedNetwork(httpcore.AsyncNetworkBackend):
    """Connects httpcore to the given addresses, without looking up the name.

    It closes all streams at the end, because httpcore leaves a stream open if the TLS handshake is cancelled.
    """

    def __init__(self, addresses: Sequence[IpAddress], connect_s: float) -> None:
        self._addresses = addresses[:MAX_TRIED]
        self._connect_s = connect_s
        self._network = httpcore.AnyIOBackend()
        self._opened: list[httpcore.AsyncNetworkStream] = []
        self.head = _Head()

    async def aclose(self) -> None:
        for stream in self._opened:
            await stream.aclose()

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002  (the name is for TLS and the Host header; resolving it again would undo the check)
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109, ARG002  (the library's signature; ours is per address)
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        *others, last = self._addresses
        for address in others:
            try:
                return await self._connect(address, port, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._connect(last, port, local_address, socket_options)

    async def _connect(
        self,
        address: IpAddress,
        port: int,
        local_address: str | None,
        socket_options: Iterable[SocketOption] | None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._network.connect_tcp(
            str(address),
            port,
            timeout=self._connect_s,
            local_address=local_address,
            socket_options=socket_options,
        )
        self._opened.append(stream)
        return _LimitedStream(stream, self.head)


def _unresolved() -> FetchFailed:
    return FetchFailed(Reason.UNRESOLVED, "The host name of the URL can't be resolved.")
