"""The OpenAPI document agrees with the routes, with the table of errors, and with real answers."""

import re
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.middleware.response_headers import is_storage_path
from svc_daemon.api.openapi import codes_of
from svc_daemon.errors import ERRORS
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.documents import models_met, references
from tests.api.examples import EXAMPLES
from tests.api.fixtures import MakeDaemon
from tests.api.stages import Stage


@pytest.fixture(scope="module")
def document(shared: Daemon) -> dict[str, Any]:
    answer = shared.ask("GET", "/openapi.json", key="")
    assert answer.status_code == 200
    return dict(answer.json())


def test_every_route_is_described_and_nothing_else(shared: Daemon, document: dict[str, Any]) -> None:
    served = {
        (method, route.path)
        for route in shared.app.routes
        # The operator's routes are not the API's, and MCP describes itself.
        if isinstance(route, Route) and not route.path.startswith(("/admin/", "/mcp"))
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert served == described == {(row.method, row.path) for row in ENDPOINTS} == set(EXAMPLES)
    shapes = [re.sub(r"{\w+}", "{}", path) for path in document["paths"]]
    assert len(shapes) == len(set(shapes))


def test_every_path_has_the_version_or_is_about_the_service_itself(document: dict[str, Any]) -> None:
    assert {path for path in document["paths"] if not path.startswith("/v1/")} == {
        "/healthz",
        "/metrics",
        "/openapi.json",
    }


def test_names_parameters_and_references_hold_together(document: dict[str, Any]) -> None:
    operations = [(path, row) for path, methods in document["paths"].items() for row in methods.values()]
    names = [operation["operationId"] for _, operation in operations]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)
    for path, operation in operations:
        described = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert described == set(re.findall(r"{(\w+)}", path))
    used = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert used <= set(document["components"]["schemas"])


def test_every_status_of_a_route_is_described_with_its_codes(document: dict[str, Any]) -> None:
    for row in ENDPOINTS:
        answers = document["paths"][row.path][row.method.lower()]["responses"]
        assert {str(status) for status in row.answers} <= set(answers)
        for code in codes_of(row):
            assert str(code) in answers[str(ERRORS[code].status)]["description"].split(", ")


def is_open(path: str) -> bool:
    """What needs no key: health, metrics here, this document, and the storage door, where the path has a token."""
    return path in {"/healthz", "/metrics", "/openapi.json"} or is_storage_path(path)


def test_only_keyless_routes_ask_for_no_key(document: dict[str, Any]) -> None:
    for row in ENDPOINTS:
        operation = document["paths"][row.path][row.method.lower()]
        assert ("security" in operation) == row.keyed == (not is_open(row.path))


def test_a_route_gives_every_answer_that_is_described_and_no_other(stage: Stage, document: dict[str, Any]) -> None:
    for row in ENDPOINTS:
        described = document["paths"][row.path][row.method.lower()]["responses"]
        expected = {
            (str(status), each) for status in row.answers for each in references(described[str(status)]) or [""]
        }
        met = set()
        for make in EXAMPLES[row.method, row.path]:
            answer = stage.send(make(stage))
            assert answer.status_code in row.answers, answer.text
            models = models_met(document, row, answer)
            assert models or not references(described[str(answer.status_code)]), answer.text
            met |= {(str(answer.status_code), reference) for reference in models or {""}}
        assert met == expected


def test_a_field_that_is_not_described_is_noticed(document: dict[str, Any], shared: Daemon) -> None:
    (row,) = (row for row in ENDPOINTS if row.path == "/v1/version")
    answer = shared.ask("GET", "/v1/version")
    assert models_met(document, row, answer)
    more = httpx.Response(200, json=answer.json() | {"stray": 1})
    assert not models_met(document, row, more)


def test_a_body_may_be_missing_only_where_that_is_described(stage: Stage, document: dict[str, Any]) -> None:
    for row in [row for row in ENDPOINTS if row.body]:
        call = EXAMPLES[row.method, row.path][0](stage)
        answer = stage.send(call.but(json=None))
        required = document["paths"][row.path][row.method.lower()]["requestBody"]["required"]
        assert (answer.status_code == 415) is required


def parameter(document: dict[str, Any], method: str, path: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in document["paths"][path][method]["parameters"] if each["name"] == name)
    return dict(found)


def test_the_document_shows_the_limits_in_force(make_daemon: MakeDaemon) -> None:
    limits = replace(UNLIMITED, page_rows=7, search_results=8, idempotency_key_characters=9)
    document = make_daemon(limits=limits).ask("GET", "/openapi.json", key="").json()
    assert "1 to 7;" in parameter(document, "get", "/v1/buckets", "limit")["description"]
    assert parameter(document, "get", "/v1/search", "max_num_results")["description"] == "1 to 8."
    assert parameter(document, "post", "/v1/buckets", "Idempotency-Key")["schema"]["maxLength"] == 9


def test_the_document_names_every_mode_of_search(document: dict[str, Any]) -> None:
    modes = document["components"]["schemas"]["SearchRequest"]["properties"]["mode"]["anyOf"][0]["enum"]
    described = parameter(document, "get", "/v1/search", "mode")["description"]
    assert set(re.findall(r"[a-z]{3,}", described)) == set(modes)


def test_the_document_allows_null_for_what_need_not_be_sent(document: dict[str, Any], shared: Daemon) -> None:
    schemas = document["components"]["schemas"]
    session, null = schemas["UploadCreate"], {"type": "null"}
    optional = session["properties"].keys() - session["required"] - {"webhook"}  # which may be none of a session's
    assert all(null in session["properties"][name]["anyOf"] for name in optional)
    assert not any("anyOf" in session["properties"][name] for name in session["required"])
    body = {"filename": "a.md", "size_bytes": 9} | dict.fromkeys(optional)
    assert shared.ask("POST", "/v1/buckets/inbox/uploads", json=body).status_code == 201
