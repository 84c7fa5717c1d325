"""Every error code that a route declares can be had from it over HTTP, with all that the contract promises of it."""

import math
import re
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pytest

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.middleware.error_responses import is_openai_path
from svc_daemon.api.openapi import codes_of
from svc_daemon.errors import ERRORS
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.error_codes import ErrorCode as E
from tests.api.answers import details_of
from tests.api.examples import EXAMPLES, name_of
from tests.api.fixtures import MakeDaemon
from tests.api.refusals import SPOILERS
from tests.api.servers import ask
from tests.api.stages import Stage
from tests.api.tool_callers import post, without_library
from tests.conftest import MakeInstallation

#: What a client goes on with, where the specification or `contract.md` promises it.
PROMISED = {
    E.FORBIDDEN_PROJECT_KEY: {"required_capability"},
    E.FILE_TOO_LARGE: {"max_bytes"},
    E.INVALID_AGENT_PROFILE: {"errors"},
    E.RAG_QUOTA_EXCEEDED: {"limit", "used", "resets_at"},
    E.AGENT_LIMIT_REACHED: {"limit", "used", "resets_at"},
    E.SEARCH_DISABLED: {"retry_after_seconds"},
    E.URL_IS_WEB_PAGE: {"suggested_endpoint"},
    E.URL_IS_FILE: {"suggested_endpoint"},
    E.WEBSITE_URL_EXISTS: {"source_id"},
    E.TEAM_STORE_MAINTENANCE: {"retry_after_seconds"},
    E.UPLOAD_RATE_LIMITED: {"retry_after_seconds"},
    E.BUCKET_ASSIGNMENT_FAILED: {"buckets"},
    E.QUOTA_EXCEEDED: {"limit_bytes", "used_bytes", "requested_bytes", "window_seconds", "retry_after_seconds"},
}

#: Codes that a rule for many routes declares, and that this one never gives: pattern of the route, code, reason.
FREE = "Status and lists need no capability."
NEVER: tuple[tuple[str, E, str], ...] = (
    (r"GET /v1/(version|limits|sources(/{source_id})?)", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"POST /v1/console/sessions(/exchange)?", E.FORBIDDEN_PROJECT_KEY, "The console may do what its key may do."),
    (r"POST /v1/console/sessions/exchange", E.INVALID_PROJECT_KEY, "Its code stands for a key."),
    (r"GET /v1/(models(/{model})?|rag-agent/models)", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"GET /v1/buckets(/{bucket}(/sources|/vectors|/uploads/{session_id})?)?", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"GET /v1/knowledge/(buckets|(files|tasks|batches)/{\w+})", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"(PUT|OPTIONS) /v1/storage/.*", E.ORIGIN_NOT_ALLOWED, "Pages of any origin may send bytes."),
)


def _slow(make_daemon: MakeDaemon, make_installation: MakeInstallation) -> httpx.Response:
    """A real daemon, and a connection whose headers don't end."""
    installation = make_installation(SVC_LIMIT_HEADER_SECONDS="1")
    installation.start()
    raw = ask(urlsplit(installation.base_url).port or 0, b"GET /v1/version HTTP/1.1\r\nHost: localhost\r\n")
    asked = httpx.Request("GET", f"{installation.base_url}/v1/version")
    return httpx.Response(raw.status, headers=raw.headers, content=raw.body, request=asked)


def _unexpected(make_daemon: MakeDaemon, make_installation: MakeInstallation) -> httpx.Response:
    """Something in the state that nobody who wrote it meant."""
    daemon = make_daemon("broken")
    daemon.make_bucket()
    daemon.write(lambda connection: connection.execute("ALTER TABLE buckets RENAME COLUMN metadata TO gone"))
    return daemon.ask("GET", "/v1/buckets/inbox")


def _stopping(make_daemon: MakeDaemon, make_installation: MakeInstallation) -> httpx.Response:
    """A request that comes when the stores are closed already."""
    daemon = make_daemon("stopping")
    daemon.loop.call(daemon.context.database.close)
    return daemon.ask("PUT", "/v1/buckets/inbox")


def _uninstalled(make_daemon: MakeDaemon, make_installation: MakeInstallation) -> httpx.Response:
    """A call of a tool where the library is missing."""
    with without_library():
        return post(make_daemon("bare"), "svc-list-buckets")


#: Codes that no request alone brings about, and that any route may answer: shown once instead of once per route.
PROVOKED: dict[ErrorCode, Callable[[MakeDaemon, MakeInstallation], httpx.Response]] = {
    E.REQUEST_TIMEOUT: _slow,
    E.INTERNAL_ERROR: _unexpected,
    E.SHUTTING_DOWN: _stopping,
    E.EXTRA_NOT_INSTALLED: _uninstalled,
}


#: A balancer waits for the whole head before it chooses a daemon.
SLOW = pytest.param(E.REQUEST_TIMEOUT, marks=pytest.mark.one_daemon)


@pytest.mark.rule("error.envelope", "error.retry-after", "error.codes")
@pytest.mark.parametrize("code", [SLOW if code is E.REQUEST_TIMEOUT else code for code in PROVOKED])
def test_a_code_is_provoked_over_http(
    make_daemon: MakeDaemon, make_installation: MakeInstallation, code: ErrorCode
) -> None:
    details_of(PROVOKED[code](make_daemon, make_installation), code)


def test_every_code_is_provoked() -> None:
    """A new code needs an entry in `refusals`, which provokes it."""
    assert {code for row in ENDPOINTS for code in codes_of(row) if code in SPOILERS} | set(PROVOKED) == set(ErrorCode)


def is_given(row: Endpoint, code: E) -> bool:
    """Whether this request alone can have the code from this route.

    Any write may meet a full disk; only creates and what else asks for room beforehand are refused for it.
    """
    is_never = any(re.fullmatch(route, name_of(row)) for route, never, _ in NEVER if never is code)
    return not (is_never or code in PROVOKED or (code is E.STORAGE_FULL and code not in row.errors))


@pytest.mark.rule(
    "endpoint.key",
    "endpoint.idempotency",
    "endpoint.request-id",
    "rule2.empty",
    "agents.models",
    "error.in-progress",
    "limit.file",
    "version.aliases",
    "error.codes",
)
@pytest.mark.parametrize("row", ENDPOINTS, ids=name_of)
def test_each_code_of_a_route_can_be_had_from_it(stage: Stage, row: Endpoint) -> None:
    for code in [code for code in codes_of(row) if is_given(row, code)]:
        answer = SPOILERS[code](stage, EXAMPLES[row.method, row.path][0](stage))
        assert not answer.is_success, f"{code}: {answer.status_code} {answer.text}"
        details = details_of(answer, code)
        # OpenAI's envelope has no details.
        assert is_openai_path(row.path) or PROMISED.get(code, set()) <= set(details), code
        if "retry_after_seconds" in details:
            assert ERRORS[code].retryable
            assert answer.headers["Retry-After"] == str(max(1, math.ceil(details["retry_after_seconds"])))


def test_what_is_never_answered_is_really_declared() -> None:
    declared = {(name_of(row), code) for row in ENDPOINTS for code in codes_of(row)}
    for route, code, _ in NEVER:
        assert any(re.fullmatch(route, name) and code is listed for name, listed in declared), route
