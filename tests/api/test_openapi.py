"""The OpenAPI document matches the routes, the table of errors, and the responses of the daemon."""

import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.routing import Route

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.openapi import codes_of
from svc_daemon.errors import ERRORS
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.documents import kinds_met, kinds_of
from tests.api.examples import EXAMPLES, name_of
from tests.api.fixtures import MakeDaemon
from tests.api.stages import Stage


@pytest.fixture(scope="module")
def document(shared: Daemon) -> dict[str, Any]:
    answer = shared.ask("GET", "/openapi.json", key="")
    assert answer.status_code == 200
    return dict(answer.json())


def test_document_describes_exactly_the_routes_that_are_served(shared: Daemon, document: dict[str, Any]) -> None:
    served = {
        (method, route.path)
        for route in shared.app.routes
        # The document leaves out the console's files, the operator's routes and MCP, which has its own descriptions.
        if isinstance(route, Route) and not route.path.startswith(("/admin/", "/console", "/mcp"))
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert served == described == {(row.method, row.path) for row in ENDPOINTS} == set(EXAMPLES)
    shapes = [re.sub(r"{\w+}", "{}", path) for path in document["paths"]]
    assert len(shapes) == len(set(shapes))


@pytest.mark.rule("version.paths")
def test_only_health_metrics_and_the_document_have_paths_without_a_version(document: dict[str, Any]) -> None:
    assert {path for path in document["paths"] if not path.startswith("/v1/")} == {
        "/healthz",
        "/metrics",
        "/openapi.json",
    }


def test_operation_ids_are_unique_and_path_parameters_and_references_exist(document: dict[str, Any]) -> None:
    operations = [(path, row) for path, methods in document["paths"].items() for row in methods.values()]
    names = [operation["operationId"] for _, operation in operations]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)
    for path, operation in operations:
        described = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert described == set(re.findall(r"{(\w+)}", path))
    used = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert used <= set(document["components"]["schemas"])


def test_generators_of_clients_find_out_what_is_a_file(document: dict[str, Any]) -> None:
    """They read `format`, which names a file in every version of OpenAPI, and skip what has only the type `*/*`."""
    form = document["paths"]["/v1/buckets/{bucket}/files"]["post"]["requestBody"]["content"]["multipart/form-data"]
    content = document["paths"]["/v1/sources/{source_id}/content"]["get"]["responses"]["200"]["content"]
    storage = document["paths"]["/v1/storage/{session_id}/{token}"]["put"]["requestBody"]["content"]
    files = [
        form["schema"]["properties"]["file"],
        *(each["application/octet-stream"]["schema"] for each in (content, storage)),
    ]
    assert [each["format"] for each in files] == ["binary", "binary", "binary"]


def test_every_status_of_a_route_is_described_with_its_error_codes(document: dict[str, Any]) -> None:
    for row in ENDPOINTS:
        answers = document["paths"][row.path][row.method.lower()]["responses"]
        assert {str(status) for status in row.answers} <= set(answers)
        for code in codes_of(row):
            assert str(code) in answers[str(ERRORS[code].status)]["description"].split(", ")


@pytest.mark.rule("endpoint.key")
def test_only_routes_without_a_key_have_no_security_requirement(document: dict[str, Any]) -> None:
    for row in ENDPOINTS:
        operation = document["paths"][row.path][row.method.lower()]
        assert ("security" in operation) == row.keyed


@pytest.mark.rule(
    "bucket.fields",
    "bucket.list",
    "source.fields",
    "source.sync-status",
    "batch.items",
    "endpoint.idempotency",
    "status.file",
)
@pytest.mark.parametrize("row", ENDPOINTS, ids=name_of)
def test_examples_of_a_route_get_every_documented_answer_and_no_other(stage: Stage, row: Endpoint) -> None:
    met = set()
    for make in EXAMPLES[row.method, row.path]:
        answer = stage.send(make(stage))
        assert answer.status_code in row.answers, answer.text
        met |= {(answer.status_code, kind) for kind in kinds_met(row, answer)}
    assert met == {(status, each) for status, kind in row.answers.items() for each in kinds_of(kind)}


def test_request_without_a_body_gets_415_exactly_where_the_body_is_required(
    stage: Stage, document: dict[str, Any]
) -> None:
    for row in [row for row in ENDPOINTS if row.body]:
        call = EXAMPLES[row.method, row.path][0](stage)
        answer = stage.send(call.but(json=None))
        required = document["paths"][row.path][row.method.lower()]["requestBody"]["required"]
        assert (answer.status_code == 415) is required


def parameter(document: dict[str, Any], method: str, path: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in document["paths"][path][method]["parameters"] if each["name"] == name)
    return dict(found)


def test_document_shows_the_configured_limits(make_daemon: MakeDaemon) -> None:
    limits = replace(UNLIMITED, page_rows=7, search_results=8, idempotency_key_characters=9)
    document = make_daemon(limits=limits).ask("GET", "/openapi.json", key="").json()
    assert "1 to 7;" in parameter(document, "get", "/v1/buckets", "limit")["description"]
    assert parameter(document, "get", "/v1/search", "max_num_results")["description"] == "1 to 8."
    assert parameter(document, "post", "/v1/buckets", "Idempotency-Key")["schema"]["maxLength"] == 9


def test_description_of_the_mode_parameter_names_every_search_mode(document: dict[str, Any]) -> None:
    modes = document["components"]["schemas"]["SearchRequest"]["properties"]["mode"]["anyOf"][0]["enum"]
    described = parameter(document, "get", "/v1/search", "mode")["description"]
    assert set(re.findall(r"[a-z]{3,}", described)) == set(modes)


def test_null_is_allowed_for_every_optional_field_of_a_session(document: dict[str, Any], shared: Daemon) -> None:
    schemas = document["components"]["schemas"]
    session, null = schemas["UploadCreate"], {"type": "null"}
    optional = session["properties"].keys() - session["required"] - {"webhook"}  # never valid in a session
    assert all(null in session["properties"][name]["anyOf"] for name in optional)
    assert not any("anyOf" in session["properties"][name] for name in session["required"])
    body = {"filename": "a.md", "size_bytes": 9} | dict.fromkeys(optional)
    assert shared.ask("POST", "/v1/buckets/inbox/uploads", json=body).status_code == 201
