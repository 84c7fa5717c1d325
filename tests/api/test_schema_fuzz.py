"""Fuzzing with requests that the OpenAPI document allows or forbids: it describes every response.

The requests are made from the document by schemathesis, the same ones in each run; `--large` makes more of them.
"""

from typing import Any, TypeAlias

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.openapi import codes_of, describe
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode
from tests.api.answers import details_of
from tests.api.examples import EXAMPLES
from tests.api.stages import Stage

#: The number of requests of each kind to each route: by default, and with `--large`.
SOME, MANY = 4, 400
#: Codes that only an unexpected failure returns.
UNEXPECTED = {ErrorCode.INTERNAL_ERROR, ErrorCode.SHUTTING_DOWN, ErrorCode.STORAGE_FULL}
CHECKS = [checks.status_code_conformance, checks.content_type_conformance]
CHECKS += [checks.response_schema_conformance, checks.negative_data_rejection]
STEADY = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
#: A request made from the document.
Case: TypeAlias = schemathesis.Case[Any]
BASE_URL = "http://127.0.0.1"


def _operations() -> dict[str, Any]:
    """Return the operations by method and path, without their security: other tests cover access."""
    document = describe(ENDPOINTS, Limits())
    for operation in (operation for methods in document["paths"].values() for operation in methods.values()):
        operation.pop("security", None)
    schema = schemathesis.openapi.from_dict(document)
    return {f"{row.method} {row.path}": schema[row.path][row.method] for row in ENDPOINTS}


OPERATIONS = _operations()


def send(stage: Stage, case: Case) -> httpx.Response:
    """Send the request as prepared for the wire, but without its Content-Length."""
    taken = ("method", "url", "headers", "params", "data", "json", "files", "cookies")
    options = {name: value for name, value in case.as_transport_kwargs(base_url=BASE_URL).items() if name in taken}
    prepared = requests.Request(**options).prepare()
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
    headers = {name: value for name, value in prepared.headers.items() if name.lower() != "content-length"}
    target = str(prepared.url).removeprefix(BASE_URL)
    return stage.daemon.ask(case.method, target, content=body, headers=headers)


def check(row: Endpoint, case: Case, answer: httpx.Response) -> None:
    if not answer.is_success and answer.status_code != 308:
        code = ErrorCode(answer.json()["error"]["code"])
        details_of(answer, code)
        assert code in set(codes_of(row)) - UNEXPECTED, answer.text
    # A body that is too large is not looked into.
    seen = CHECKS[:-1] if answer.status_code == 413 else CHECKS
    case.validate_response(answer, checks=seen)


#: Negative requests only for routes whose document describes something that a request could violate.
KINDS = [
    pytest.param(row, kind, id=f"{row.method} {row.path} {kind}")
    for row in ENDPOINTS
    for kind in ("positive", "negative")
    if kind == "positive" or row.body or row.form or row.query or row.repeatable
]


@pytest.mark.rule("endpoint.request-id", "error.envelope")
@pytest.mark.parametrize(("row", "kind"), KINDS)
def test_response_to_any_generated_request_is_described_in_the_document(
    stage: Stage, row: Endpoint, kind: str, large: bool
) -> None:
    places = EXAMPLES[row.method, row.path][0](stage).places
    operation, mode = OPERATIONS[f"{row.method} {row.path}"], schemathesis.GenerationMode(kind)
    cases = operation.as_strategy(mode)
    if places:
        # Some with ids that exist, else nearly every request would end with 404.
        cases = st.one_of(operation.as_strategy(mode, path_parameters=places), cases)

    @settings(STEADY, max_examples=MANY if large else SOME, phases=[Phase.generate])
    @given(case=cases)
    def run(case: Case) -> None:
        check(row, case, send(stage, case))

    run()
