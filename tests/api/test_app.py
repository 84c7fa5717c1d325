"""The URL map: what every route answers, what no route does, and which capability each one needs."""

import re
from typing import Any

import httpx
import pytest
from starlette.routing import compile_path

from svc_daemon.api import app
from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.middleware.error_responses import is_openai_path
from svc_daemon.core.access import api_keys as keys
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.examples import name_of
from tests.api.servers import connected, serving


def test_the_map_at_the_top_of_the_application_is_true() -> None:
    rows = re.findall(r"^    ((?:[A-Z]+ )+) +(/\S+(?:, /\S+)*) +(\w+)$", app.__doc__ or "", re.MULTILINE)
    shown = {
        (each, path, module) for names, paths, module in rows for each in names.split() for path in paths.split(", ")
    }
    assert shown == {(row.method, row.path, row.handler.__module__.rpartition(".")[2]) for row in ENDPOINTS}


def address(row: Endpoint) -> str:
    """The row's path with something in each of its parameters."""
    return row.path.replace("{bucket}", "inbox").replace("{source_id}", "src_x").replace("{task_id}", "task_x")


@pytest.mark.rule("auth.refusals", "invalid_project_key")
def test_a_dead_key_opens_nothing(shared: Daemon) -> None:
    revoked = shared.add_key()
    shared.write(lambda c: c.execute("UPDATE keys SET revoked_at = created_at WHERE id = (SELECT MAX(id) FROM keys)"))
    other = shared.add_key()
    dead = {
        "expired": shared.add_key(expires_at=shared.context.clock.timestamp(-1)),
        "revoked": revoked,
        "unknown": keys.mint(shared.context.ids.make("key"), bytes(32)),
        "of another secret": keys.mint(f"key_{other[3:29]}", bytes(32)),
        "mistyped": other[:-1] + ("0" if other[-1] != "0" else "1"),
        "cut": other[:-1],
        "in capitals": other.upper(),
        "no key": "sk-",
    }
    for what, key in dead.items():
        assert details_of(shared.ask("GET", "/v1/buckets", key=key), "invalid_project_key") == {}, what
    shared.show("/v1/buckets", key=shared.add_key(expires_at=shared.context.clock.timestamp(60)))


@pytest.mark.rule("auth.bearer")
def test_a_key_comes_as_a_bearer_token(shared: Daemon) -> None:
    for form in ("Basic {}", "{}", "Bearer", "Bearer ", "Token {}", "Bearer {} x", "Bearer ä"):
        headers = {"Authorization": form.format(shared.key).encode("latin-1")}
        details_of(shared.ask("GET", "/v1/buckets", headers=headers), "invalid_project_key")
    body_of(shared.ask("GET", "/v1/buckets", headers={"Authorization": f"bearer  {shared.key}"}))


@pytest.mark.parametrize("path", [*sorted({address(row) for row in ENDPOINTS})])
def test_a_method_that_a_path_does_not_take_is_refused_with_those_it_takes(shared: Daemon, path: str) -> None:
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


#: By capability the methods and paths that need it, each path below /v1.
NEEDED_BY = {
    keys.BUCKET_CREATE: "POST /buckets, PUT /buckets/{bucket}",
    keys.BUCKET_UPDATE: "PATCH /buckets/{bucket}",
    keys.BUCKET_DELETE: "DELETE /buckets/{bucket}",
    keys.FILE_CREATE: """POST /buckets/{bucket}/files, POST /buckets/{bucket}/files/import,
        POST /buckets/{bucket}/pages, POST /buckets/{bucket}/qa, POST /buckets/{bucket}/sources,
        POST /buckets/{bucket}/vectors, POST /buckets/{bucket}/uploads, DELETE /buckets/{bucket}/uploads/{session_id},
        POST /buckets/{bucket}/uploads/{session_id}/finalize, POST /buckets/{bucket}/batches,
        POST /buckets/{bucket}/batches/{batch_id}/finalize, POST /knowledge/websites,
        POST /knowledge/files/upload-session, POST /knowledge/files:batch/upload-session,
        POST /buckets/{bucket}/retry, PUT /watchers/{watcher_id}, PATCH /sources/{source_id},
        POST /sources/{source_id}/retry, POST /sources/{source_id}/refresh""",
    keys.SOURCE_DELETE: "DELETE /buckets/{bucket}/sources/{source_id}, DELETE /sources/{source_id}",
    keys.READ: "GET /sources/{source_id}/content, GET /sources/{source_id}/text, POST /citations/verify",
    keys.WEBHOOK_MANAGE: """GET /webhooks/deliveries, POST /webhooks/deliveries/{delivery_id}/resend,
        GET /webhooks/secret, POST /webhooks/secret/rotate""",
    keys.KEY_MANAGE: "POST /keys, GET /keys, DELETE /keys/{key_id}",
    keys.AGENT_MANAGE: "POST /agents, PUT /agents/{agent_id}, DELETE /agents/{agent_id}",
    keys.AGENT_READ: "GET /agents, GET /agents/{agent_id}",
    keys.SEARCH: "POST /search, GET /search",
    keys.ANSWER_CREATE: "POST /responses, POST /chat/completions",
}
CREATING, DELETING = (keys.FILE_CREATE, keys.BUCKET_CREATE), (keys.SOURCE_DELETE, keys.BUCKET_DELETE)
#: The methods and paths that each of some capabilities opens, besides `knowledge:read`: an upload key polls, and shows
#: what went where; a key that deletes follows its task; a search key shows what it has found.
OPENED_BY: dict[str, tuple[str, ...]] = {
    "GET /buckets, GET /knowledge/buckets": CREATING,
    "GET /buckets/{bucket}": (*CREATING, keys.BUCKET_UPDATE, keys.BUCKET_DELETE),
    """GET /buckets/{bucket}/sources, GET /sources, GET /events, GET /status, GET /watchers,
        GET /buckets/{bucket}/vectors, GET /knowledge/batches/{batch_id},
        GET /buckets/{bucket}/uploads/{session_id}""": (keys.FILE_CREATE,),
    "GET /sources/{source_id}, GET /knowledge/files/{source_id}, GET /knowledge/tasks/{task_id}": (
        *(keys.FILE_CREATE, keys.SEARCH),
        *DELETING,
    ),
}
#: What any key may ask.
ANY_KEY = (
    """GET /version, GET /limits, POST /console/sessions, GET /models, GET /models/{model}, GET /rag-agent/models"""
)
#: What needs no key at all; the token of a storage path, or the code of a console session, is the authority there.
NO_KEY = "POST /console/sessions/exchange, PUT /storage/{session_id}/{token}, OPTIONS /storage/{session_id}/{token}"


def routes(listed: str) -> list[str]:
    return [re.sub(" +/", " /v1/", each.strip()) for each in listed.split(",")]


NEEDED = {name: capability for capability, listed in NEEDED_BY.items() for name in routes(listed)}
GUARDED = [(row, NEEDED[name_of(row)]) for row in ENDPOINTS if name_of(row) in NEEDED]


def ask_nothing(daemon: Daemon, row: Endpoint, key: str) -> httpx.Response:
    """The request of a key that may do nothing is refused before anything in it is looked at."""
    return daemon.ask(row.method, re.sub(r"{\w+}", "nothing", row.path), key=key)


def all_but(capability: str) -> tuple[str, ...]:
    return tuple(each for each in keys.CAPABILITIES if each != capability)


def test_every_route_has_a_decision() -> None:
    keyless = ["GET /healthz", "GET /metrics", "GET /openapi.json", *routes(NO_KEY)]
    listed = [*NEEDED_BY.values(), *OPENED_BY, ANY_KEY]
    decided = [*(name for names in listed for name in routes(names)), *keyless]
    assert sorted(decided) == sorted(map(name_of, ENDPOINTS))
    assert {name_of(row) for row in ENDPOINTS if not row.keyed} == set(keyless)


@pytest.mark.rule(
    "buckets.capability", "auth.capabilities", "auth.refusals", "error.capability", "forbidden_project_key"
)
@pytest.mark.parametrize(("row", "capability"), GUARDED)
def test_a_key_with_everything_but_the_capability_is_refused(shared: Daemon, row: Endpoint, capability: str) -> None:
    answer = ask_nothing(shared, row, shared.add_key(*all_but(capability)))
    details = details_of(answer, "forbidden_project_key")
    if is_openai_path(row.path):
        # There are no details there.
        assert capability in answer.json()["error"]["message"]
    else:
        assert details == {"required_capability": capability}


def test_the_capability_alone_opens_its_route_and_any_key_what_is_open(shared: Daemon) -> None:
    for row, capability in GUARDED:
        assert ask_nothing(shared, row, shared.add_key(capability)).status_code not in {401, 403}
    for row in ENDPOINTS:
        if name_of(row) in routes(ANY_KEY):
            assert ask_nothing(shared, row, shared.add_key(keys.AGENT_READ)).status_code in {200, 201, 400, 404}


@pytest.mark.rule("auth.lists")
@pytest.mark.parametrize("capability", keys.CAPABILITIES)
def test_what_a_key_may_create_or_read_it_may_list_and_nothing_else(shared: Daemon, capability: str) -> None:
    key = shared.add_key(capability)
    for row in ENDPOINTS:
        opening = next((opens for names, opens in OPENED_BY.items() if name_of(row) in routes(names)), None)
        if opening is None:
            continue
        answer = ask_nothing(shared, row, key)
        if capability in (keys.READ, *opening):
            assert answer.status_code in {200, 201, 400, 404}, row.path
        else:
            assert details_of(answer, "forbidden_project_key") == {"required_capability": keys.READ}, row.path


def test_replacing_needs_the_capability_to_delete_besides(shared: Daemon) -> None:
    key, replaced = shared.add_key(*all_but(keys.SOURCE_DELETE)), {"replaces": "src_nothing"}
    requests: dict[str, dict[str, Any]] = {
        "files": {"files": {"file": ("a.md", b"x")}, "data": replaced},
        "qa": {"json": {"question": "q?", "answer": "a"} | replaced},
        "uploads": {"json": {"filename": "a.md", "size_bytes": 1} | replaced},
        "files/import": {"json": {"url": "http://127.0.0.1:9/a.md"} | replaced},
        "pages": {"json": {"url": "http://127.0.0.1:9/"} | replaced},
    }
    for door, request in requests.items():
        answer = shared.ask("POST", f"/v1/buckets/inbox/{door}", key=key, **request)
        assert details_of(answer, "forbidden_project_key") == {"required_capability": keys.SOURCE_DELETE}
