"""Every error code that a route declares can be had from it, and nothing else comes in its place."""

import re
from collections.abc import Iterator

import pytest

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.openapi import codes_of
from svc_daemon.extract.cages import Extractor
from svc_daemon.wire.codes import ErrorCode as E
from tests.api.answers import details_of
from tests.api.daemons import Loop
from tests.api.examples import EXAMPLES
from tests.api.refusals import SPOILERS
from tests.api.stages import Call, Stage, staging
from tests.rules.contracts import Rule, missing_tests

#: What any route may answer, and what no request by itself can bring about: shown once instead of once a route.
SHOWN_ELSEWHERE = {
    E.REQUEST_TIMEOUT: "tests/api/test_deadlines.py::test_a_body_that_stops_is_timed_out",
    E.INTERNAL_ERROR: "tests/api/test_faults.py::test_an_exception_becomes_its_code_in_the_envelope",
    E.SHUTTING_DOWN: "tests/api/test_error_codes.py::test_a_code_is_provoked_over_http",
}
#: Codes that a rule for many routes declares, and that this one never gives: pattern of the route, code, reason.
FREE = "Status and lists need no capability."
NEVER: tuple[tuple[str, E, str], ...] = (
    (r"GET /v1/(version|limits|sources/{source_id})", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"GET /v1/(models|models/{model}|rag-agent/models)", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"GET /v1/buckets(/{bucket}(/sources|/uploads/{session_id})?)?", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"GET /v1/knowledge/buckets", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"GET /v1/knowledge/(files|tasks|batches)/{\w+}", E.FORBIDDEN_PROJECT_KEY, FREE),
    (r"(PUT|OPTIONS) /v1/storage/.*", E.ORIGIN_NOT_ALLOWED, "Pages of any origin may send bytes."),
)


@pytest.fixture(scope="module")
def stage(loop: Loop, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staging(loop, extractor, tmp_path_factory.mktemp("stage")) as stage:
        yield stage


def name_of(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


def is_never(row: Endpoint, code: E) -> bool:
    return any(re.fullmatch(route, name_of(row)) for route, never, _ in NEVER if never is code)


def is_of_every_write(row: Endpoint, code: E) -> bool:
    """Any write may meet a full disk; only creates and what else asks for room beforehand are refused for it."""
    return code is E.STORAGE_FULL and code not in row.errors


@pytest.mark.parametrize("row", ENDPOINTS, ids=name_of)
def test_each_code_of_a_route_can_be_had_from_it(stage: Stage, row: Endpoint) -> None:
    for code in codes_of(row):
        if code in SHOWN_ELSEWHERE or is_of_every_write(row, code) or is_never(row, code):
            continue
        call = EXAMPLES[row.method, row.path][0](stage)
        assert is_refused(stage, call, code)


def is_refused(stage: Stage, call: Call, code: E) -> bool:
    answer = SPOILERS[code](stage, call)
    assert not answer.is_success, f"{code}: {answer.status_code} {answer.text}"
    details_of(answer, code)
    return True


def test_what_is_never_answered_is_really_declared() -> None:
    declared = {(name_of(row), code) for row in ENDPOINTS for code in codes_of(row)}
    for route, code, _ in NEVER:
        assert any(re.fullmatch(route, name) and code is listed for name, listed in declared), route


def test_what_is_shown_elsewhere_is_there() -> None:
    assert list(missing_tests([Rule(code, f"`{where}`") for code, where in SHOWN_ELSEWHERE.items()])) == []
