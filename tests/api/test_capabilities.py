"""Each route needs the capability that stands here for it. A route without a decision fails these tests."""

import re
from typing import Any

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.layers.faults import is_openai_path
from svc_daemon.core.access.api_keys import (
    AGENT_MANAGE,
    AGENT_READ,
    ANSWER_CREATE,
    BUCKET_CREATE,
    BUCKET_DELETE,
    BUCKET_UPDATE,
    CAPABILITIES,
    FILE_CREATE,
    KEY_MANAGE,
    READ,
    SEARCH,
    SOURCE_DELETE,
    WEBHOOK_MANAGE,
)
from tests.api.answers import details_of
from tests.api.daemons import Daemon

B, S, W = "/v1/buckets/{bucket}", "/v1/sources/{source_id}", "/v1/webhooks"
U = B + "/uploads/{session_id}"

NEEDED = {
    ("POST", "/v1/buckets"): BUCKET_CREATE,
    ("PUT", B): BUCKET_CREATE,
    ("PATCH", B): BUCKET_UPDATE,
    ("DELETE", B): BUCKET_DELETE,
    ("POST", f"{B}/files"): FILE_CREATE,
    ("POST", f"{B}/files/import"): FILE_CREATE,
    ("POST", f"{B}/pages"): FILE_CREATE,
    ("POST", f"{B}/qa"): FILE_CREATE,
    ("POST", f"{B}/uploads"): FILE_CREATE,
    ("DELETE", U): FILE_CREATE,
    ("POST", f"{U}/finalize"): FILE_CREATE,
    ("POST", f"{B}/batches"): FILE_CREATE,
    ("POST", f"{B}/batches/{{batch_id}}/finalize"): FILE_CREATE,
    ("POST", f"{B}/sources"): FILE_CREATE,
    ("DELETE", f"{B}/sources/{{source_id}}"): SOURCE_DELETE,
    ("PATCH", S): FILE_CREATE,
    ("DELETE", S): SOURCE_DELETE,
    ("POST", f"{S}/retry"): FILE_CREATE,
    ("POST", f"{S}/refresh"): FILE_CREATE,
    ("GET", f"{S}/content"): READ,
    ("GET", f"{S}/text"): READ,
    ("GET", f"{W}/deliveries"): WEBHOOK_MANAGE,
    ("POST", f"{W}/deliveries/{{delivery_id}}/resend"): WEBHOOK_MANAGE,
    ("GET", f"{W}/secret"): WEBHOOK_MANAGE,
    ("POST", f"{W}/secret/rotate"): WEBHOOK_MANAGE,
    ("POST", "/v1/keys"): KEY_MANAGE,
    ("GET", "/v1/keys"): KEY_MANAGE,
    ("DELETE", "/v1/keys/{key_id}"): KEY_MANAGE,
    ("POST", "/v1/knowledge/files/upload-session"): FILE_CREATE,
    ("POST", "/v1/knowledge/files:batch/upload-session"): FILE_CREATE,
    ("POST", "/v1/knowledge/websites"): FILE_CREATE,
    ("POST", "/v1/agents"): AGENT_MANAGE,
    ("GET", "/v1/agents"): AGENT_READ,
    ("GET", "/v1/agents/{agent_id}"): AGENT_READ,
    ("PUT", "/v1/agents/{agent_id}"): AGENT_MANAGE,
    ("DELETE", "/v1/agents/{agent_id}"): AGENT_MANAGE,
    ("POST", "/v1/search"): SEARCH,
    ("GET", "/v1/search"): SEARCH,
    ("POST", "/v1/responses"): ANSWER_CREATE,
    ("POST", "/v1/chat/completions"): ANSWER_CREATE,
}
#: What any key may ask: an upload key polls, and tells what went where.
ANY_KEY = {
    ("GET", "/v1/version"),
    ("GET", "/v1/limits"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("GET", "/v1/rag-agent/models"),
    ("GET", "/v1/buckets"),
    ("GET", B),
    ("GET", U),
    ("GET", "/v1/knowledge/buckets"),
    ("GET", "/v1/knowledge/batches/{batch_id}"),
    ("GET", f"{B}/sources"),
    ("GET", S),
    ("GET", "/v1/knowledge/files/{source_id}"),
    ("GET", "/v1/knowledge/tasks/{task_id}"),
}
#: What needs no key at all; the storage door's token is the authority there.
NO_KEY = {
    ("GET", "/healthz"),
    ("GET", "/openapi.json"),
    ("PUT", "/v1/storage/{session_id}/{token}"),
    ("OPTIONS", "/v1/storage/{session_id}/{token}"),
}


def of_row(row: Endpoint) -> tuple[str, str]:
    return row.method, row.path


def name_of(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


def ask(daemon: Daemon, row: Endpoint, key: str) -> Any:
    """The request of a key that may do nothing is refused before anything in it is looked at."""
    return daemon.ask(row.method, re.sub(r"{\w+}", "nothing", row.path), key=key)


def test_every_route_has_a_decision() -> None:
    decided = [*NEEDED, *ANY_KEY, *NO_KEY]
    assert len(decided) == len(set(decided))
    assert {of_row(row) for row in ENDPOINTS} == set(decided)
    assert {of_row(row) for row in ENDPOINTS if not row.keyed} == NO_KEY


def test_a_key_with_everything_but_the_capability_is_refused(shared: Daemon) -> None:
    for row in [row for row in ENDPOINTS if of_row(row) in NEEDED]:
        capability = NEEDED[of_row(row)]
        key = shared.add_key(*(each for each in CAPABILITIES if each != capability))
        answer = ask(shared, row, key)
        details = details_of(answer, "forbidden_project_key")
        if is_openai_path(row.path):
            # There are no details there.
            assert capability in answer.json()["error"]["message"]
        else:
            assert details == {"required_capability": capability}


def test_the_capability_alone_opens_its_route(shared: Daemon) -> None:
    for row in [row for row in ENDPOINTS if of_row(row) in NEEDED]:
        assert ask(shared, row, shared.add_key(NEEDED[of_row(row)])).status_code not in {401, 403}


def test_status_and_lists_take_any_key(shared: Daemon) -> None:
    for row in [row for row in ENDPOINTS if of_row(row) in ANY_KEY]:
        assert ask(shared, row, shared.add_key(AGENT_READ)).status_code in {200, 404}


REPLACING: list[tuple[str, dict[str, Any]]] = [
    ("files", {"files": {"file": ("a.md", b"x")}, "data": {"replaces": "src_nothing"}}),
    ("qa", {"json": {"question": "q?", "answer": "a", "replaces": "src_nothing"}}),
    ("uploads", {"json": {"filename": "a.md", "size_bytes": 1, "replaces": "src_nothing"}}),
    ("files/import", {"json": {"url": "http://127.0.0.1:9/a.md", "replaces": "src_nothing"}}),
    ("pages", {"json": {"url": "http://127.0.0.1:9/", "replaces": "src_nothing"}}),
]


def test_replacing_needs_the_capability_to_delete_besides(shared: Daemon) -> None:
    for door, request_ in REPLACING:
        key = shared.add_key(*(each for each in CAPABILITIES if each != SOURCE_DELETE))
        answer = shared.ask("POST", f"/v1/buckets/inbox/{door}", key=key, **request_)
        assert details_of(answer, "forbidden_project_key") == {"required_capability": SOURCE_DELETE}
