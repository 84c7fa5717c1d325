"""The OpenAPI document agrees with the routes, with the table of errors, and with real answers."""

import re
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter
from starlette.routing import Route

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.cross_origins import is_storage_path
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.openapi import codes_of
from svc_daemon.errors import ERRORS
from tests.api.daemons import NOTES, Daemon


@pytest.fixture(scope="module")
def document(shared: Daemon) -> dict[str, Any]:
    answer = shared.ask("GET", "/openapi.json", key="")
    assert answer.status_code == 200
    return dict(answer.json())


def name_of(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


def test_every_route_is_described_and_nothing_else(shared: Daemon, document: dict[str, Any]) -> None:
    served = {
        (method, route.path)
        for route in shared.app.routes
        if isinstance(route, Route) and not route.path.startswith("/admin/")  # the operator's, not the API's
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert served == described == {(row.method, row.path) for row in ENDPOINTS}


def test_no_two_paths_differ_by_the_name_of_a_parameter_alone(document: dict[str, Any]) -> None:
    shapes = [re.sub(r"{\w+}", "{}", path) for path in document["paths"]]
    assert len(shapes) == len(set(shapes))


def test_operations_have_names_of_their_own(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)


@pytest.mark.parametrize("row", ENDPOINTS, ids=name_of)
def test_every_status_of_a_route_stands_there_with_its_codes(document: dict[str, Any], row: Endpoint) -> None:
    answers = document["paths"][row.path][row.method.lower()]["responses"]
    assert {str(status) for status in row.answers} <= set(answers)
    for code in codes_of(row):
        assert str(code) in answers[str(ERRORS[code].status)]["description"].split(", ")


def is_open(path: str) -> bool:
    """What needs no key: health, this document, and the storage door, where the token in the path is the authority."""
    return path in {"/healthz", "/openapi.json"} or is_storage_path(path)


@pytest.mark.parametrize("row", ENDPOINTS, ids=name_of)
def test_only_keyless_routes_ask_for_no_key(document: dict[str, Any], row: Endpoint) -> None:
    operation = document["paths"][row.path][row.method.lower()]
    assert ("security" in operation) == row.keyed == (not is_open(row.path))


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    used = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert used <= set(document["components"]["schemas"])


def test_every_path_parameter_is_described(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            described = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert described == set(re.findall(r"{(\w+)}", path))


def row_of(method: str, path: str) -> Endpoint:
    (row,) = [row for row in ENDPOINTS if (row.method, row.path) == (method, path)]
    return row


def check(answer: httpx.Response, row: Endpoint) -> None:
    """The answer has a status of the row, and a body of the model that stands there for it."""
    model: Any = row.answers[answer.status_code]
    assert TypeAdapter(model).validate_json(answer.content)


def is_a_flow(path: str) -> bool:
    """Routes that are walked through in order by tests of their own, which read every field of the answers."""
    return any(
        noun in path
        for noun in ("upload", "batches", "storage", "import", "pages", "websites", "/qa", "refresh", "webhooks")
    )


def test_real_answers_are_of_the_models_of_their_rows(working: Daemon) -> None:
    source_id = working.add_ready()
    task_id = working.source(source_id)["task"]["id"]
    failed = working.add_source(b" \n", filename="blank.txt")
    working.wait_status(failed, "failed")
    key_id = working.ask("GET", "/v1/keys").json()["keys"][0]["id"]
    b, s = "/v1/buckets/{bucket}", "/v1/sources/{source_id}"
    file = {"files": {"file": ("a.md", NOTES)}}
    check(working.ask("POST", f"/v1/sources/{failed}/retry"), row_of("POST", f"{s}/retry"))
    ids = {"bucket": "inbox", "source_id": source_id, "task_id": task_id, "key_id": key_id}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/healthz", {}),
        ("GET", "/healthz", {"params": {"nonce": "n" * 32}}),
        ("GET", "/v1/version", {}),
        ("GET", "/v1/limits", {}),
        ("GET", "/v1/buckets", {}),
        ("GET", "/v1/buckets", {"params": {"limit": "1"}}),
        ("POST", "/v1/buckets", {"json": {"slug": "new"}}),
        ("POST", "/v1/buckets", {"json": {"slug": "newer", "dry_run": True}}),
        ("PUT", b, {}),
        ("PUT", b, {"json": {"dry_run": True}}),
        ("GET", b, {}),
        ("PATCH", b, {"json": {"name": "x"}}),
        ("POST", f"{b}/files", file),
        ("POST", f"{b}/files", {**file, "params": {"dry_run": "true"}}),
        ("GET", f"{b}/sources", {"params": {"status": "all"}}),
        ("GET", f"{b}/sources", {"params": {"limit": "1"}}),
        ("POST", f"{b}/sources", {"json": {"source_id": source_id}}),
        ("GET", s, {}),
        ("GET", s, {"params": {"verify": "provider"}}),
        ("GET", "/v1/knowledge/buckets", {}),
        ("GET", "/v1/knowledge/files/{source_id}", {}),
        ("PATCH", s, {"json": {"title": "x"}}),
        ("GET", f"{s}/text", {}),
        ("GET", "/v1/knowledge/tasks/{task_id}", {}),
        ("POST", "/v1/search", {"json": {"query": "quay", "explain": True}}),
        ("GET", "/v1/search", {"params": {"q": "quay"}}),
        ("DELETE", f"{b}/sources/{{source_id}}", {}),
        ("DELETE", s, {}),
        ("DELETE", b, {"params": {"force": "true"}}),
        ("POST", "/v1/keys", {"json": {"name": "new", "preset": "read"}}),
        ("POST", "/v1/keys", {"json": {"name": "new", "preset": "read", "dry_run": True}}),
        ("GET", "/v1/keys", {}),
        ("GET", "/v1/keys", {"params": {"limit": "1"}}),
        # The key that asks: nothing comes after it.
        ("DELETE", "/v1/keys/{key_id}", {}),
    ]
    for method, path, options in calls:
        check(working.ask(method, path.format(**ids), **options), row_of(method, path))
    asked = {(method, path) for method, path, _ in calls} | {("POST", f"{s}/retry")}
    expected = {(row.method, row.path) for row in ENDPOINTS if None not in row.answers.values()}
    assert asked == {(method, path) for method, path in expected if not is_a_flow(path)}
