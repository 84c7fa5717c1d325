"""Fetching a URL's content: the request, redirects, the reported result, and failures."""

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.fetch.contract import Fetched, FetchFailed, NotModified, Validators
from svc_daemon.fetch.fetchers import Fetcher
from tests.acceptance.installations import PATIENCE_S
from tests.fetch.servers import Exchange, Kept, Server, serving

BODY = b"Refunds are paid within five days.\n" * 100
TIME = "Thu, 01 Jan 2026 00:00:00 GMT"


def get(
    server: Server, path: str = "/", sink: Kept | None = None, validators: Validators | None = None, accept: str = "*/*"
) -> Fetched:
    """Fetch a path of the server, assert that it has content, and return the result."""
    fetched = asyncio.run(Fetcher(server.policy).fetch(server.url(path), sink or Kept(), validators, accept))
    assert isinstance(fetched, Fetched)
    return fetched


def failure(server: Server, path: str = "/") -> FetchFailed:
    """Assert that fetching a path fails and discards the sink, and return the failure."""
    sink = Kept()
    with pytest.raises(FetchFailed) as failed:
        asyncio.run(Fetcher(server.policy).fetch(server.url(path), sink))
    assert (sink.is_discarded, bytes(sink.data)) == (True, b"")
    return failed.value


def answer(exchange: Exchange) -> None:
    exchange.answer(body=BODY)


def test_fetch_writes_the_body_to_the_sink_and_returns_the_headers_values() -> None:
    headers: dict[str, Any] = {"content_type": "text/plain; charset=utf-8", "etag": '"v1"', "last_modified": TIME}
    disposition, sink = 'attachment; filename="refunds.txt"', Kept()
    with serving(lambda exchange: exchange.answer(body=BODY, content_disposition=disposition, **headers)) as server:
        fetched = get(server, "/a?b=c#d", sink)
        url = server.url("/a?b=c")
        assert fetched == Fetched(
            final_url=url, http_status=200, size_bytes=len(BODY), file_name="refunds.txt", **headers
        )
    assert (bytes(sink.data), sink.is_discarded) == (BODY, False)


def test_fetch_request_has_only_the_necessary_headers() -> None:
    with serving(answer) as server:
        get(server, "/p%20q?x=%C3%A4")
        get(server, accept="text/html")
    request, page = server.requests
    assert page.headers["accept"] == "text/html"
    assert (request.method, request.path, request.body) == ("GET", "/p%20q?x=%C3%A4", b"")
    headers = dict(request.headers)
    assert re.fullmatch(r"svc/[\d.]+", headers.pop("user-agent"))
    expected = {"accept": "*/*", "accept-encoding": "gzip", "connection": "close"}
    assert headers == expected | {"host": f"127.0.0.1:{server.port}"}


def test_fetch_ignores_proxies_and_netrc_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login jo password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(answer) as server, serving(answer) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
            monkeypatch.setenv(name.upper(), proxy.url())
        get(server)
    (request,) = server.requests
    assert ("authorization" in request.headers, proxy.requests) == (False, [])


def redirects(exchange: Exchange) -> None:
    """Redirect `/302/5` to `/302/4` with a 302, and so on until `/302/0`, which has content."""
    status, left = map(int, exchange.request.path[1:].split("/"))
    if left:
        exchange.answer(status, b"moved", location=f"{left - 1}" if left % 2 else f"/{status}/{left - 1}")
    else:
        exchange.answer(body=b"end")


def test_fetch_follows_five_redirects_of_every_status_and_no_sixth() -> None:
    with serving(redirects) as server:
        for status in (301, 302, 303, 307, 308):
            server.requests.clear()
            assert get(server, f"/{status}/5", sink := Kept()).final_url == server.url(f"/{status}/0")
            assert bytes(sink.data) == b"end"
            sent = [(request.method, request.path) for request in server.requests]
            assert sent == [("GET", f"/{status}/{left}") for left in range(5, -1, -1)]
        assert failure(server, "/302/6").reason == "too_many_redirects"
        assert server.paths[-1] == "/302/1"


def test_other_statuses_fail_and_report_only_the_status() -> None:
    statuses = (204, 206, 300, 302, 304, 305, 400, 401, 404, 410, 429, 500, 503)
    answers = iter(statuses)
    with serving(lambda exchange: exchange.answer(next(answers), b"secret words", x_note="secret")) as server:
        for status in statuses:
            failed = failure(server)
            assert (failed.code, failed.rule.status, failed.rule.retryable) == ("url_fetch_failed", 502, True), status
            assert failed.details == {"reason": "http_status", "http_status": status}
            assert not any(word in f"{failed} {failed.message}" for word in ("secret", str(server.port))), status


def test_fetch_accepts_an_empty_body() -> None:
    with serving(lambda exchange: exchange.answer()) as server:
        assert get(server).size_bytes == 0


def test_fetch_accepts_headers_that_are_not_ascii() -> None:
    latin = 'ETag: "\xe9"\r\nContent-Disposition: attachment; filename="caf\xe9.txt"\r\n'.encode("latin-1")
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n" + latin + b"\r\nx"
    with serving(lambda exchange: exchange.send(data)) as server:
        fetched = get(server)
    # An ETag that can't be sent back is dropped.
    assert (fetched.file_name, fetched.etag) == ("café.txt", None)


def versioned(exchange: Exchange) -> None:
    """Respond with 304 to a client that has version 1; redirect `/moved` to `/`."""
    if exchange.request.path == "/moved":
        exchange.answer(302, location="/")
    elif exchange.request.headers.get("if-none-match") == '"v1"':
        exchange.head(304, {"etag": '"v1"'})
    else:
        exchange.answer(body=BODY, etag='"v1"')


def test_validators_avoid_a_download_only_for_unchanged_content_of_the_same_url() -> None:
    sink = Kept()
    with serving(versioned) as server:
        validators = Validators(url=server.url(), etag='"v1"', last_modified=TIME)
        answer = asyncio.run(Fetcher(server.policy).fetch(server.url("/moved"), sink, validators))
        assert answer == NotModified(final_url=server.url(), etag='"v1"', last_modified=None)
        assert sink.pieces == []
        assert get(server, validators=Validators(url=server.url(), etag='"v0"')).size_bytes == len(BODY)
        assert get(server, validators=Validators(url=server.url("/other"), etag='"v1"')).size_bytes == len(BODY)
    assert ["if-none-match" in request.headers for request in server.requests] == [False, True, True, False]
    assert server.requests[1].headers["if-modified-since"] == TIME


def test_failing_sink_is_discarded_and_its_error_is_raised() -> None:
    class Full(Kept):
        async def append(self, data: bytes) -> None:
            raise MemoryError("full")

    with serving(answer) as server, pytest.raises(MemoryError):
        asyncio.run(Fetcher(server.policy).fetch(server.url(), sink := Full()))
    assert sink.is_discarded


def test_fetches_run_concurrently() -> None:
    barrier, sinks = threading.Barrier(8), [Kept() for _ in range(8)]

    def script(exchange: Exchange) -> None:
        barrier.wait(PATIENCE_S)
        exchange.answer(body=exchange.request.path.encode())

    async def scenario(server: Server) -> None:
        fetcher = Fetcher(server.policy)
        await asyncio.gather(*(fetcher.fetch(server.url(f"/{i}"), sink) for i, sink in enumerate(sinks)))

    with serving(script) as server:
        asyncio.run(scenario(server))
    assert [bytes(sink.data) for sink in sinks] == [f"/{i}".encode() for i in range(8)]


def test_fetch_from_a_host_that_refuses_connections_fails_as_unreachable() -> None:
    with serving(answer) as server:
        pass
    assert failure(server).reason == "unreachable"
