"""Each route needs the capability that is listed here for it. A route without a decision fails these tests."""

import re
from typing import Any

import httpx

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.layers.faults import is_openai_path
from svc_daemon.core.access import api_keys as keys
from tests.api.answers import details_of
from tests.api.daemons import Daemon

#: By capability the methods and paths that need it, each path below /v1.
NEEDED_BY = {
    keys.BUCKET_CREATE: "POST /buckets, PUT /buckets/{bucket}",
    keys.BUCKET_UPDATE: "PATCH /buckets/{bucket}",
    keys.BUCKET_DELETE: "DELETE /buckets/{bucket}",
    keys.FILE_CREATE: """POST /buckets/{bucket}/files, POST /buckets/{bucket}/files/import,
        POST /buckets/{bucket}/pages, POST /buckets/{bucket}/qa, POST /buckets/{bucket}/sources,
        POST /buckets/{bucket}/uploads, DELETE /buckets/{bucket}/uploads/{session_id},
        POST /buckets/{bucket}/uploads/{session_id}/finalize, POST /buckets/{bucket}/batches,
        POST /buckets/{bucket}/batches/{batch_id}/finalize, POST /knowledge/websites,
        POST /knowledge/files/upload-session, POST /knowledge/files:batch/upload-session,
        PATCH /sources/{source_id}, POST /sources/{source_id}/retry, POST /sources/{source_id}/refresh""",
    keys.SOURCE_DELETE: "DELETE /buckets/{bucket}/sources/{source_id}, DELETE /sources/{source_id}",
    keys.READ: "GET /sources/{source_id}/content, GET /sources/{source_id}/text",
    keys.WEBHOOK_MANAGE: """GET /webhooks/deliveries, POST /webhooks/deliveries/{delivery_id}/resend,
        GET /webhooks/secret, POST /webhooks/secret/rotate""",
    keys.KEY_MANAGE: "POST /keys, GET /keys, DELETE /keys/{key_id}",
    keys.AGENT_MANAGE: "POST /agents, PUT /agents/{agent_id}, DELETE /agents/{agent_id}",
    keys.AGENT_READ: "GET /agents, GET /agents/{agent_id}",
    keys.SEARCH: "POST /search, GET /search",
    keys.ANSWER_CREATE: "POST /responses, POST /chat/completions",
}
#: What any key may ask: an upload key polls, and shows what went where.
ANY_KEY = """GET /version, GET /limits, GET /models, GET /models/{model}, GET /rag-agent/models, GET /buckets,
    GET /buckets/{bucket}, GET /buckets/{bucket}/uploads/{session_id}, GET /buckets/{bucket}/sources,
    GET /knowledge/buckets, GET /knowledge/batches/{batch_id}, GET /knowledge/files/{source_id},
    GET /knowledge/tasks/{task_id}, GET /sources/{source_id}"""
#: What needs no key at all; the token of a storage path is the authority there.
NO_KEY = "PUT /storage/{session_id}/{token}, OPTIONS /storage/{session_id}/{token}"


def routes(listed: str) -> list[str]:
    return [re.sub(" +/", " /v1/", each.strip()) for each in listed.split(",")]


def name_of(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


NEEDED = {name: capability for capability, listed in NEEDED_BY.items() for name in routes(listed)}
GUARDED = [(row, NEEDED[name_of(row)]) for row in ENDPOINTS if name_of(row) in NEEDED]


def ask(daemon: Daemon, row: Endpoint, key: str) -> httpx.Response:
    """The request of a key that may do nothing is refused before anything in it is looked at."""
    return daemon.ask(row.method, re.sub(r"{\w+}", "nothing", row.path), key=key)


def all_but(capability: str) -> tuple[str, ...]:
    return tuple(each for each in keys.CAPABILITIES if each != capability)


def test_every_route_has_a_decision() -> None:
    keyless = ["GET /healthz", "GET /openapi.json", *routes(NO_KEY)]
    decided = [*(name for listed in NEEDED_BY.values() for name in routes(listed)), *routes(ANY_KEY), *keyless]
    assert sorted(decided) == sorted(map(name_of, ENDPOINTS))
    assert {name_of(row) for row in ENDPOINTS if not row.keyed} == set(keyless)


def test_a_key_with_everything_but_the_capability_is_refused(shared: Daemon) -> None:
    for row, capability in GUARDED:
        answer = ask(shared, row, shared.add_key(*all_but(capability)))
        details = details_of(answer, "forbidden_project_key")
        if is_openai_path(row.path):
            # There are no details there.
            assert capability in answer.json()["error"]["message"]
        else:
            assert details == {"required_capability": capability}


def test_the_capability_alone_opens_its_route_and_any_key_what_is_open(shared: Daemon) -> None:
    for row, capability in GUARDED:
        assert ask(shared, row, shared.add_key(capability)).status_code not in {401, 403}
    for row in ENDPOINTS:
        if name_of(row) in routes(ANY_KEY):
            assert ask(shared, row, shared.add_key(keys.AGENT_READ)).status_code in {200, 404}


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
