"""Downloads URLs, sends POST requests to URLs, and checks URLs without a request."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from svc_daemon.core.access.urls import AddressPolicy, file_name, join_url, parse_url
from svc_daemon.fetch import contract
from svc_daemon.fetch.connections import Connector, Resolver, SystemResolver
from svc_daemon.fetch.responses import ACCEPTED_CODING, NOT_MODIFIED, REDIRECTS, SUCCESSES, FetchedResponse, receive
from svc_daemon.wire.light.urls import Url
from svc_daemon.wire.light.versions import VERSION

USER_AGENT = f"svc/{VERSION}"


class Fetcher:
    """Sends requests to hosts that the address policy permits. It keeps no connections, so it needs no closing."""

    def __init__(
        self,
        policy: AddressPolicy,
        limits: contract.FetchLimits | None = None,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits or contract.FetchLimits()
        self._connector = Connector(policy, resolver or SystemResolver(), self._limits.connect_s, tls)

    async def check(self, url: str) -> None:
        """Check a URL, such as that of a new webhook, without a request.

        Raises `url_fetch_blocked` if the policy refuses it, FetchFailed if its name does not resolve.
        """
        async with _deadline(self._limits.post_s):
            await self._connector.judged_addresses(parse_url(url))

    async def fetch(
        self, url: str, sink: contract.Sink, validators: contract.Validators | None = None, accept: str = "*/*"
    ) -> contract.Fetched | contract.NotModified:
        """Download the URL into the sink, following redirects. Returns NotModified if the content is unchanged.

        Raises `url_fetch_blocked`, FetchFailed, `file_too_large`, or an error of the sink. On any error, the sink is
        discarded.
        """
        try:
            async with _deadline(self._limits.fetch_s):
                return await self._follow(parse_url(url), sink, validators, {"Accept": accept})
        except BaseException:
            await sink.discard()
            raise

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Send the body in a POST request, and return the response's status, even of an error.

        Redirects are not followed, and the response's body is not read. Raises `url_fetch_blocked` or FetchFailed.
        """
        async with (
            _deadline(self._limits.post_s),
            self._exchange("POST", parse_url(url), {"Accept": "*/*", **headers}, body) as response,
        ):
            return response.status

    async def _follow(
        self, url: Url, sink: contract.Sink, validators: contract.Validators | None, headers: Mapping[str, str]
    ) -> contract.Fetched | contract.NotModified:
        """Follow redirects, even from https to http: the requests contain no secrets."""
        for _ in range(self._limits.redirects + 1):
            conditions = validators.headers() if validators and validators.url == str(url) else {}
            async with self._exchange("GET", url, {**headers, **conditions}) as response:
                location = response.header("Location")
                if response.status not in REDIRECTS or not location:
                    return await self._take(url, response, sink, is_conditional=bool(conditions))
            url = join_url(url, location)
        raise contract.FetchFailed(
            contract.Reason.REDIRECTS, f"The URL redirects more than {self._limits.redirects} times."
        )

    async def _take(
        self, url: Url, response: FetchedResponse, sink: contract.Sink, *, is_conditional: bool
    ) -> contract.Fetched | contract.NotModified:
        etag, last_modified = response.validator("ETag"), response.validator("Last-Modified")
        if is_conditional and response.status == NOT_MODIFIED:
            return contract.NotModified(final_url=str(url), etag=etag, last_modified=last_modified)
        if response.status not in SUCCESSES:
            asked_s = response.retry_after_s()
            asked = {} if asked_s is None else {"host_retry_after_seconds": asked_s}
            message = f"The remote host answered {response.status}."
            raise contract.FetchFailed(contract.Reason.STATUS, message, http_status=response.status, **asked)
        return contract.Fetched(
            final_url=str(url),
            http_status=response.status,
            content_type=response.header("Content-Type"),
            etag=etag,
            last_modified=last_modified,
            size_bytes=await receive(response, sink, self._limits.file_bytes),
            file_name=file_name(url, response.header("Content-Disposition")),
        )

    @asynccontextmanager
    async def _exchange(
        self, method: str, url: Url, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[FetchedResponse]:
        """Send one request on its own connection. Raises FetchFailed for httpcore's errors."""
        sent = {
            "Host": url.authority,
            "User-Agent": USER_AGENT,
            "Accept-Encoding": ACCEPTED_CODING,
            "Connection": "close",
        }
        with contract.translated():
            async with self._connector.exchange(url, method, [*sent.items(), *headers.items()], body) as response:
                yield FetchedResponse(response)


@asynccontextmanager
async def _deadline(timeout_s: float) -> AsyncIterator[None]:
    """Limit the block's total time, however slowly bytes arrive. Raises FetchFailed."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise contract.FetchFailed(
            contract.Reason.TIMEOUT, f"The remote host did not finish within {timeout_s:g} seconds."
        ) from error
