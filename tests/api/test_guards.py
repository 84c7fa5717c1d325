"""Requests that are refused before any route sees them."""

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.api.layers.guards import GuardRules
from tests.api.servers import RawAnswer, ask, connected, hardened, is_closed, read_answer, serving


async def hello(request: Request) -> JSONResponse:
    return JSONResponse({"body": (await request.body()).decode()})


RULES = GuardRules(
    hosts=("svc.example.org", "[fd00::1]"),
    origins=("https://docs.example.org",),
    exempt=lambda path: path.startswith("/storage/"),
)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    routes = [Route("/", hello, methods=["GET", "POST"]), Route("/storage/x", hello, methods=["GET", "POST"])]
    with serving(hardened(routes, RULES)) as port:
        yield port


def get(port: int, *headers: str, target: str = "/", version: str = "1.1") -> RawAnswer:
    lines = [f"GET {target} HTTP/{version}", *headers, "", ""]
    return ask(port, "\r\n".join(lines).encode())


OUR_HOSTS = [
    "127.0.0.1",
    "127.0.0.1:7820",
    "localhost",
    "LocalHost:1",
    "[::1]",
    "[::1]:7820",
    "svc.example.org",
    "svc.example.org:443",
    "[fd00::1]:80",
]
OTHER_HOSTS = [
    "example.org",
    "127.0.0.1.example.org",
    "localhost.example.org",
    "localhost.",
    "xlocalhost",
    "127.0.0.2",
    "::1",
    "127.0.0.1:",
    "127.0.0.1:999999",
    "localhost:80@evil.org",
    "user@localhost",
    "svcXexample.org",
    "localhost, localhost",
    "",
]


def test_our_own_names_are_served_on_any_port(port: int) -> None:
    for host in OUR_HOSTS:
        assert get(port, f"Host: {host}").status == 200


def test_another_host_is_misdirected(port: int) -> None:
    for host in OTHER_HOSTS:
        answer = get(port, f"Host: {host}")
        assert (answer.status, answer.code) == (421, "host_not_allowed")


def test_no_host_and_two_hosts_are_misdirected(port: int) -> None:
    for version in ["1.0", "1.1"]:
        for headers in ([], ["Host: localhost", "Host: localhost"]):
            answer = get(port, *headers, version=version)
            assert (answer.status, answer.code) == (421, "host_not_allowed")


def test_a_target_in_absolute_form_is_served(port: int) -> None:
    for authority in ["127.0.0.1:7820", "LOCALHOST", "[::1]"]:
        for scheme in ("http", "HTTPS"):
            assert get(port, "Host: localhost", target=f"{scheme}://{authority}/?a=b").status == 200
            assert get(port, "Host: localhost", target=f"{scheme}://{authority}").status == 200
            assert get(port, "Host: localhost", target=f"{scheme}://{authority}/nothing").code == "not_found"


def test_a_target_in_absolute_form_of_another_host_is_misdirected(port: int) -> None:
    for authority in OTHER_HOSTS:
        answer = get(port, "Host: localhost", target=f"http://{authority.replace(' ', '')}/")
        assert (answer.status, answer.code) == (421, "host_not_allowed")
        assert get(port, f"Host: {authority}", target="http://localhost/").status == 421


def test_nul_in_a_query_string_is_refused(port: int) -> None:
    for query in ["q=%00", "q=a%00b", "%00=a", "q=%25%00"]:
        answer = get(port, "Host: localhost", target=f"/?{query}")
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert get(port, "Host: localhost", target="/?q=%2500").status == 200


FOREIGN = [
    ["Origin: https://evil.example"],
    ["Origin: null"],
    ["Origin: http://localhost:3000"],
    ["Origin: https://docs.example.org", "Origin: https://evil.example"],
    ["Origin: https://docs.example.org.evil.example"],
    ["Origin: http://docs.example.org"],
    ["Origin:"],
    ["Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: Cross-Site"],
    ["Origin: https://evil.example", "Sec-Fetch-Site: same-origin"],
]
NEAR = [
    [],
    ["Origin: https://docs.example.org"],
    ["Origin: https://DOCS.example.org"],
    ["Origin: https://docs.example.org", "Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: none"],
    ["Sec-Fetch-Site: same-origin"],
]


def test_a_foreign_page_is_refused(port: int) -> None:
    for headers in FOREIGN:
        answer = get(port, "Host: localhost", *headers)
        assert (answer.status, answer.code) == (403, "origin_not_allowed")


def test_a_configured_page_and_a_program_are_served(port: int) -> None:
    for headers in NEAR:
        assert get(port, "Host: localhost", *headers).status == 200


def test_an_exempt_path_does_not_look_at_the_page(port: int) -> None:
    for headers in FOREIGN:
        assert get(port, "Host: localhost", *headers, target="/storage/x").status == 200


def test_an_exempt_path_still_looks_at_the_host(port: int) -> None:
    assert get(port, "Host: evil.example", target="/storage/x").status == 421


def test_an_absolute_target_does_not_replace_the_host(port: int) -> None:
    assert get(port, "Host: evil.example", target="http://localhost/").status == 421


ODD_FRAMINGS = {
    "both framings": "HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
    "both framings, no length": "HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 0",
    "chunks in HTTP/1.0": "HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked",
    "two lengths": "HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6",
    "a length list": "HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5, 6",
    "a signed length": "HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5",
    "an unknown coding": "HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked",
    "two codings": "HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "a space before the colon": "HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5",
}


def test_an_ambiguous_framing_is_refused_and_its_connection_closed(port: int) -> None:
    for head in ODD_FRAMINGS.values():
        with connected(port) as client:
            client.sendall(f"POST / {head}\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            answer = read_answer(client)
            assert (answer.status, answer.code) == (400, "invalid_request")
            assert answer.headers["connection"] == "close"
            assert is_closed(client)


def test_a_team_in_the_query_is_refused(port: int) -> None:
    for query in ["team_id=t", "a=1&team_id=", "team%5fid=t", "team_id"]:
        answer = get(port, "Host: localhost", target=f"/?{query}")
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert answer.document["error"]["details"]["errors"][0]["path"] == "team_id"


def test_another_query_is_welcome(port: int) -> None:
    assert get(port, "Host: localhost", target="/?my_team_id=1&q=team_id").status == 200


LARGE = {
    "one long line": "X: " + "a" * 20_000,
    "one line longer than any read": "X: " + "a" * 600_000,
    "many lines": "\r\n".join(f"X-{number}: {'a' * 100}" for number in range(200)),
}


def test_large_headers_are_refused_however_they_arrive(port: int) -> None:
    for headers in LARGE.values():
        head = f"GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n".encode()
        for pieces in ([head], [head[:9000], head[9000:]]):
            answer = ask(port, *pieces)
            assert (answer.status, answer.code) == (431, "headers_too_large")


def test_a_large_target_counts_as_headers(port: int) -> None:
    assert get(port, "Host: localhost", target="/" + "a" * 16_400).status == 431


def test_headers_within_the_limit_are_served(port: int) -> None:
    assert get(port, "Host: localhost", "X: " + "a" * 16_000).status == 200
