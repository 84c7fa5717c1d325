"""Getting a URL's content: what is asked, what is followed, what is told, what is given up."""

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from svc_daemon.fetch.downloads import Fetched, NotModified, Validators
from svc_daemon.fetch.failures import FetchFailed
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.paths import DataFiles
from svc_daemon.store.blobs import Blobs
from tests.fetch.servers import Exchange, Kept, Names, Server, serving

BODY = b"Refunds are paid within five days.\n" * 100


def get(
    server: Server,
    path: str = "/",
    sink: Kept | None = None,
    validators: Validators | None = None,
    accept: str = "*/*",
) -> Fetched:
    """Fetch a path of the server; the answer must be its content."""
    fetched = asyncio.run(Fetcher(server.policy).fetch(server.url(path), sink or Kept(), validators, accept))
    assert isinstance(fetched, Fetched)
    return fetched


def failure(server: Server, path: str = "/") -> FetchFailed:
    """The failure of fetching a path; the sink must be left empty."""
    sink = Kept()
    with pytest.raises(FetchFailed) as failed:
        asyncio.run(Fetcher(server.policy).fetch(server.url(path), sink))
    assert sink.is_discarded
    assert not sink.data
    return failed.value


def test_the_sink_gets_the_bytes_and_the_caller_what_was_said_about_them() -> None:
    def script(exchange: Exchange) -> None:
        exchange.answer(
            body=BODY,
            content_type="text/plain; charset=utf-8",
            etag='"v1"',
            last_modified="Thu, 01 Jan 2026 00:00:00 GMT",
            content_disposition='attachment; filename="refunds.txt"',
        )

    sink = Kept()
    with serving(script) as server:
        fetched = get(server, "/a?b=c#d", sink)
        assert fetched == Fetched(
            final_url=server.url("/a?b=c"),
            http_status=200,
            content_type="text/plain; charset=utf-8",
            etag='"v1"',
            last_modified="Thu, 01 Jan 2026 00:00:00 GMT",
            size_bytes=len(BODY),
            file_name="refunds.txt",
        )
    assert bytes(sink.data) == BODY
    assert not sink.is_discarded


def test_a_staged_file_is_a_sink(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    for folder in (files.blobs, files.staging):
        folder.mkdir(parents=True)

    async def scenario(server: Server, executor: ThreadPoolExecutor) -> bytes:
        blobs = Blobs(files, executor, random_name=lambda: "one")
        staged = blobs.stage()
        await Fetcher(server.policy).fetch(server.url(), staged)
        await staged.keep("src_1")
        return blobs.path("src_1").read_bytes()

    with serving(lambda exchange: exchange.answer(body=BODY * 1000)) as server, ThreadPoolExecutor() as executor:
        assert asyncio.run(scenario(server, executor)) == BODY * 1000


def test_the_request_says_no_more_than_it_must() -> None:
    with serving(lambda exchange: exchange.answer(body=b"x")) as server:
        get(server, "/p%20q?x=%C3%A4")
        get(server, accept="text/html")
    request, page = server.requests
    assert page.headers["accept"] == "text/html"
    assert (request.method, request.path, request.body) == ("GET", "/p%20q?x=%C3%A4", b"")
    assert re.fullmatch(r"svc/[\d.]+", request.headers["user-agent"])
    assert {name: value for name, value in request.headers.items() if name != "user-agent"} == {
        "host": f"127.0.0.1:{server.port}",
        "accept": "*/*",
        "accept-encoding": "gzip",
        "connection": "close",
    }


def test_nothing_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login jo password secret\n")
    with (
        serving(lambda exchange: exchange.answer(body=b"direct")) as server,
        serving(lambda exchange: exchange.answer(body=b"proxied")) as proxy,
    ):
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
            monkeypatch.setenv(name.upper(), proxy.url())
        monkeypatch.setenv("HOME", str(tmp_path))
        sink = Kept()
        get(server, sink=sink)
    assert (bytes(sink.data), proxy.requests) == (b"direct", [])
    assert "authorization" not in server.requests[0].headers


def hops(exchange: Exchange) -> None:
    """`/5` redirects to `/4` and so on; `/0` is the end."""
    left = int(exchange.request.path[1:])
    if left:
        exchange.answer(302, b"moved", location=f"/{left - 1}")
    else:
        exchange.answer(body=b"end")


def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    sink = Kept()
    with serving(hops) as server:
        assert get(server, "/5", sink).final_url == server.url("/0")
        assert (bytes(sink.data), server.paths) == (b"end", ["/5", "/4", "/3", "/2", "/1", "/0"])
        assert failure(server, "/6").reason == "too_many_redirects"
        assert server.paths[-1] == "/1"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_kind_of_redirect_is_followed_by_a_get(status: int) -> None:
    def script(exchange: Exchange) -> None:
        if exchange.request.path == "/end":
            exchange.answer(body=b"end")
        else:
            exchange.answer(status, location="end")

    with serving(script) as server:
        assert get(server, "/start").final_url == server.url("/end")
    assert [request.method for request in server.requests] == ["GET", "GET"]


@pytest.mark.parametrize("status", [204, 206, 300, 302, 304, 305, 400, 401, 404, 410, 429, 500, 503])
def test_any_other_answer_fails_and_tells_its_status_alone(status: int) -> None:
    with serving(lambda exchange: exchange.answer(status, b"secret words", x_note="secret")) as server:
        failed = failure(server)
        assert str(server.port) not in failed.message
    assert (failed.code, failed.rule.status, failed.rule.retryable) == ("url_fetch_failed", 502, True)
    assert failed.details == {"reason": "http_status", "http_status": status}
    assert "secret" not in str(failed)


def test_an_empty_body_is_a_body() -> None:
    with serving(lambda exchange: exchange.answer()) as server:
        assert get(server).size_bytes == 0


def test_headers_need_not_be_ascii() -> None:
    def script(exchange: Exchange) -> None:
        latin = 'ETag: "\xe9"\r\nContent-Disposition: attachment; filename="caf\xe9.txt"\r\n'.encode("latin-1")
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", latin, b"\r\nx")

    with serving(script) as server:
        fetched = get(server)
    # A tag that could not be sent back is not kept.
    assert (fetched.file_name, fetched.etag) == ("café.txt", None)


def versioned(exchange: Exchange) -> None:
    """Answers 304 to who has version 1, and `/moved` redirects to `/`."""
    if exchange.request.path == "/moved":
        exchange.answer(302, location="/")
    elif exchange.request.headers.get("if-none-match") == '"v1"':
        exchange.head(304, {"etag": '"v1"'})
    else:
        exchange.answer(body=BODY, etag='"v1"')


def test_what_did_not_change_is_not_sent_again() -> None:
    sink = Kept()
    with serving(versioned) as server:
        validators = Validators(url=server.url(), etag='"v1"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
        answer = asyncio.run(Fetcher(server.policy).fetch(server.url("/moved"), sink, validators))
        assert answer == NotModified(final_url=server.url(), etag='"v1"', last_modified=None)
    assert sink.pieces == []
    moved, final = server.requests
    assert "if-none-match" not in moved.headers
    assert final.headers["if-modified-since"] == "Thu, 01 Jan 2026 00:00:00 GMT"


def test_what_changed_or_has_another_url_is_sent() -> None:
    with serving(versioned) as server:
        assert get(server, validators=Validators(url=server.url(), etag='"v0"')).size_bytes == len(BODY)
        assert get(server, validators=Validators(url=server.url("/other"), etag='"v1"')).size_bytes == len(BODY)
    assert ["if-none-match" in request.headers for request in server.requests] == [True, False]


def test_a_sink_that_fails_is_discarded_and_heard() -> None:
    class Full(Kept):
        async def append(self, data: bytes) -> None:
            raise MemoryError("full")

    sink = Full()
    with serving(lambda exchange: exchange.answer(body=BODY)) as server, pytest.raises(MemoryError):
        asyncio.run(Fetcher(server.policy).fetch(server.url(), sink))
    assert sink.is_discarded


def test_fetches_run_beside_each_other() -> None:
    barrier = threading.Barrier(8)

    def script(exchange: Exchange) -> None:
        barrier.wait(5)
        exchange.answer(body=exchange.request.path.encode())

    async def scenario(server: Server) -> list[bytes]:
        fetcher, sinks = Fetcher(server.policy), [Kept() for _ in range(8)]
        await asyncio.gather(*(fetcher.fetch(server.url(f"/{i}"), sink) for i, sink in enumerate(sinks)))
        return [bytes(sink.data) for sink in sinks]

    with serving(script) as server:
        assert asyncio.run(scenario(server)) == [f"/{i}".encode() for i in range(8)]


def test_an_address_that_takes_no_connection_leaves_time_for_the_next() -> None:
    names = Names(files_example=[["127.0.0.2", "127.0.0.3", "127.0.0.1"]])
    with serving(lambda exchange: exchange.answer(body=b"x")) as server:
        fetcher = Fetcher(server.loopback_policy, resolver=names)
        asyncio.run(fetcher.fetch(server.url(host="files.example"), Kept()))
    assert len(server.requests) == 1


def test_a_host_that_takes_none_fails() -> None:
    with serving(lambda exchange: exchange.answer()) as server:
        pass
    assert failure(server).reason == "unreachable"
