"""Requests that are refused before they are routed: foreign hosts and origins, ambiguous framing, large headers."""

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.api.middleware.guards import GuardRules
from tests.api.servers import RawAnswer, ask, connected, hardened, is_closed, read_answer, serving


async def hello(request: Request) -> JSONResponse:
    return JSONResponse({"body": (await request.body()).decode()})


HOSTS, ORIGINS = ("svc.example.org", "[fd00::1]"), ("https://docs.example.org",)
RULES = GuardRules(hosts=HOSTS, origins=ORIGINS, exempt=lambda scope: scope["path"].startswith("/storage/"))
MISDIRECTED, FORBIDDEN = (421, "host_not_allowed"), (403, "origin_not_allowed")
INVALID = (400, "invalid_request")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    routes = [Route("/", hello, methods=["GET", "POST"]), Route("/storage/x", hello, methods=["GET", "POST"])]
    with serving(hardened(routes, RULES)) as port:
        yield port


def get(port: int, *headers: str, target: str = "/", version: str = "1.1") -> RawAnswer:
    lines = [f"GET {target} HTTP/{version}", *headers, "", ""]
    return ask(port, "\r\n".join(lines).encode())


def refusal(answer: RawAnswer) -> tuple[int, str]:
    return answer.status, answer.code


OUR_HOSTS = """127.0.0.1 127.0.0.1:7820 localhost LocalHost:1 [::1] [::1]:7820 [fd00::1]:80
    svc.example.org svc.example.org:443"""
OTHER_HOSTS = """example.org 127.0.0.1.example.org localhost.example.org localhost. xlocalhost 127.0.0.2 ::1
    127.0.0.1: 127.0.0.1:999999 localhost:80@evil.org user@localhost svcXexample.org localhost,localhost"""


def test_own_host_names_are_served_on_any_port(port: int) -> None:
    for host in OUR_HOSTS.split():
        assert get(port, f"Host: {host}").status == 200, host
    for authority in ("127.0.0.1:7820", "LOCALHOST", "[::1]"):
        for scheme in ("http", "HTTPS"):
            target = f"{scheme}://{authority}"
            assert get(port, "Host: localhost", target=f"{target}/?a=b").status == 200, target
            assert get(port, "Host: localhost", target=target).status == 200, target
            assert get(port, "Host: localhost", target=f"{target}/nothing").code == "not_found", target


def test_other_or_missing_hosts_are_refused_as_misdirected(port: int) -> None:
    for host in (*OTHER_HOSTS.split(), "localhost, localhost", ""):
        assert refusal(get(port, f"Host: {host}")) == MISDIRECTED, host
        absolute = f"http://{host.replace(' ', '')}/"
        assert refusal(get(port, "Host: localhost", target=absolute)) == MISDIRECTED, absolute
        assert get(port, f"Host: {host}", target="http://localhost/").status == 421, host
    for version in ("1.0", "1.1"):
        for headers in ([], ["Host: localhost", "Host: localhost"]):
            assert refusal(get(port, *headers, version=version)) == MISDIRECTED, headers


ORIGIN = "Origin: https://docs.example.org"
FOREIGN = [
    *([f"Origin: {origin}"] for origin in ("https://evil.example", "null", "http://localhost:3000", "")),
    *([f"Origin: {origin}"] for origin in ("https://docs.example.org.evil.example", "http://docs.example.org")),
    [ORIGIN, "Origin: https://evil.example"],
    ["Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: Cross-Site"],
    ["Origin: https://evil.example", "Sec-Fetch-Site: same-origin"],
]
NEAR = [[], [ORIGIN], ["Origin: https://DOCS.example.org"], [ORIGIN, "Sec-Fetch-Site: cross-site"]]
NEAR += [["Sec-Fetch-Site: none"], ["Sec-Fetch-Site: same-origin"]]


def test_foreign_origins_are_refused_except_on_an_exempt_path(port: int) -> None:
    for headers in FOREIGN:
        assert refusal(get(port, "Host: localhost", *headers)) == FORBIDDEN, headers
        assert get(port, "Host: localhost", *headers, target="/storage/x").status == 200, headers
    for headers in NEAR:
        assert get(port, "Host: localhost", *headers).status == 200, headers
    assert get(port, "Host: evil.example", target="/storage/x").status == 421


def test_an_origin_equal_to_our_own_host_is_let_in_and_no_other(port: int) -> None:
    for host in ("127.0.0.1:7820", "localhost", "LOCALHOST:1", "[::1]:7820", "svc.example.org"):
        for scheme in ("http", "https"):
            for site in ([], ["Sec-Fetch-Site: same-origin"]):
                assert get(port, f"Host: {host}", f"Origin: {scheme}://{host}", *site).status == 200, host
    for other in ("127.0.0.1:7821", "127.0.0.1", "localhost:7820", "127.0.0.1:7820.evil.example", "x@127.0.0.1:7820"):
        assert refusal(get(port, "Host: 127.0.0.1:7820", f"Origin: http://{other}")) == FORBIDDEN, other
    both = ["Origin: http://127.0.0.1:7820", "Origin: https://evil.example"]
    assert refusal(get(port, "Host: 127.0.0.1:7820", *both)) == FORBIDDEN
    # A name that was pointed here is its own origin, and still no name of ours.
    assert refusal(get(port, "Host: evil.example", "Origin: http://evil.example")) == MISDIRECTED


#: The rest of a request line and a framing header, for each kind of ambiguous framing.
ODD_FRAMINGS = {
    "both framings": "1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
    "both framings, no length": "1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0",
    "chunks in HTTP/1.0": "1.0\r\nTransfer-Encoding: chunked",
    "two lengths": "1.1\r\nContent-Length: 5\r\nContent-Length: 6",
    "a length list": "1.1\r\nContent-Length: 5, 6",
    "a signed length": "1.1\r\nContent-Length: +5",
    "an unknown coding": "1.1\r\nTransfer-Encoding: gzip, chunked",
    "two codings": "1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "a space before the colon": "1.1\r\nContent-Length : 5",
}


@pytest.mark.parametrize("framing", ODD_FRAMINGS.values(), ids=ODD_FRAMINGS)
def test_ambiguous_framing_is_refused_and_the_connection_closed(port: int, framing: str) -> None:
    smuggled = "0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(port) as client:
        client.sendall(f"POST / HTTP/{framing}\r\nHost: localhost\r\n\r\n{smuggled}".encode())
        answer = read_answer(client)
        assert (refusal(answer), answer.headers["connection"]) == (INVALID, "close")
        assert is_closed(client)


@pytest.mark.rule("auth.team")
def test_team_id_or_nul_character_in_the_query_string_is_refused(port: int) -> None:
    for query in ("team_id=t", "a=1&team_id=", "team%5fid=t", "team_id"):
        answer = get(port, "Host: localhost", target=f"/?{query}")
        assert (refusal(answer), answer.document["error"]["details"]["errors"][0]["path"]) == (INVALID, "team_id")
    for query in ("q=%00", "q=a%00b", "%00=a", "q=%25%00"):
        assert refusal(get(port, "Host: localhost", target=f"/?{query}")) == INVALID, query
    for query in ("q=%2500", "my_team_id=1&q=team_id"):
        assert get(port, "Host: localhost", target=f"/?{query}").status == 200, query


LARGE = {
    "one long line": "X: " + "a" * 20_000,
    "one line longer than any read": "X: " + "a" * 600_000,
    "many lines": "\r\n".join(f"X-{number}: {'a' * 100}" for number in range(200)),
}


@pytest.mark.parametrize("headers", LARGE.values(), ids=LARGE)
def test_large_headers_are_refused_whether_sent_at_once_or_in_pieces(port: int, headers: str) -> None:
    head = f"GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n".encode()
    for pieces in ([head], [head[:9000], head[9000:]]):
        assert refusal(ask(port, *pieces)) == (431, "headers_too_large")
    assert get(port, "Host: localhost", target="/" + "a" * 16_400).status == 431
    assert get(port, "Host: localhost", "X: " + "a" * 16_000).status == 200
