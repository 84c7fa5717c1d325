"""The URL map: every route answers in one shape, and so does every address that is no route."""

import re

from starlette.routing import compile_path

from svc_daemon.api import app
from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.core.access.api_keys import mint
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.servers import connected, serving


def test_the_map_at_the_top_of_the_application_is_true() -> None:
    rows = re.findall(r"^    ((?:[A-Z]+ )+) +(/\S+(?:, /\S+)*) +(\w+)$", app.__doc__ or "", re.MULTILINE)
    shown = {
        (method, path, module)
        for names, paths, module in rows
        for method in names.split()
        for path in paths.split(", ")
    }
    assert shown == {(row.method, row.path, row.handler.__module__.rpartition(".")[2]) for row in ENDPOINTS}


def address(row: Endpoint) -> str:
    """The row's path with something in each of its parameters."""
    return row.path.replace("{bucket}", "inbox").replace("{source_id}", "src_x").replace("{task_id}", "task_x")


def test_a_dead_key_opens_nothing(shared: Daemon) -> None:
    revoked = shared.add_key()
    shared.write(lambda c: c.execute("UPDATE keys SET revoked_at = created_at WHERE id = (SELECT MAX(id) FROM keys)"))
    other = shared.add_key()
    dead = {
        "expired": shared.add_key(expires_at=shared.context.clock.timestamp(-1)),
        "revoked": revoked,
        "unknown": mint(shared.context.ids.make("key"), bytes(32)),
        "of another secret": mint(f"key_{other[3:29]}", bytes(32)),
        "mistyped": other[:-1] + ("0" if other[-1] != "0" else "1"),
        "cut": other[:-1],
        "in capitals": other.upper(),
        "no key": "sk-",
    }
    for what, key in dead.items():
        assert details_of(shared.ask("GET", "/v1/buckets", key=key), "invalid_project_key") == {}, what
    shared.show("/v1/buckets", key=shared.add_key(expires_at=shared.context.clock.timestamp(60)))


def test_a_key_comes_as_a_bearer_token(shared: Daemon) -> None:
    for form in ("Basic {}", "{}", "Bearer", "Bearer ", "Token {}", "Bearer {} x", "Bearer ä"):
        headers = {"Authorization": form.format(shared.key).encode("latin-1")}
        details_of(shared.ask("GET", "/v1/buckets", headers=headers), "invalid_project_key")
    body_of(shared.ask("GET", "/v1/buckets", headers={"Authorization": f"bearer  {shared.key}"}))


def test_a_method_that_a_path_does_not_take_is_refused_with_those_it_takes(shared: Daemon) -> None:
    for path in sorted({address(row) for row in ENDPOINTS}):
        taken = {row.method for row in ENDPOINTS if compile_path(row.path)[0].match(path)}
        expected = taken | ({"HEAD"} if "GET" in taken else set())
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} - taken:
            answer = shared.ask(method, path)
            details_of(answer, "method_not_allowed")
            assert set(answer.headers["Allow"].split(", ")) == expected, (method, path)


def test_an_unknown_path_gets_the_envelope(shared: Daemon) -> None:
    below = ("", "/", "/bucket", "/buckets/", "/buckets/inbox/")
    for path in ("/", "/v2/buckets", "//v1/buckets", "/healthz/x", *(f"/v1{each}" for each in below)):
        for method in ("GET", "POST", "DELETE"):
            details_of(shared.ask(method, path), "not_found")


def test_a_head_request_has_the_headers_and_no_body(shared: Daemon) -> None:
    key, source = f"Authorization: Bearer {shared.key}", f"/v1/sources/{shared.add_source()}"
    with serving(shared.app) as port:
        for path, status in {"/healthz": 200, "/v1/buckets": 200, "/v1/nothing": 404, source: 200}.items():
            head = f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n{key}\r\nConnection: close\r\n\r\n".encode()
            with connected(port) as connection:
                connection.sendall(head)
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            assert (int(answer.split(b" ")[1]), answer.endswith(b"\r\n\r\n")) == (status, True), path
            assert b"x-request-id: req_" in answer.lower()


def test_a_json_route_takes_json_alone(shared: Daemon) -> None:
    for row in [row for row in ENDPOINTS if row.body is not None]:
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = shared.ask(row.method, address(row), content=b"{}", headers={"Content-Type": content_type})
            details_of(answer, "unsupported_media_type")
        json: dict[str, str] = {"Content-Type": "application/json"}
        for content in (b"{", b"nonsense", b'{"a": NaN}', b'{"a": 1, "a": 2}', b'"\xff"'):
            details_of(shared.ask(row.method, address(row), content=content, headers=json), "invalid_json")
        details_of(shared.ask(row.method, address(row), content=b"[]", headers=json), "invalid_request")
