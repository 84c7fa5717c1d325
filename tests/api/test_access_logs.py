"""One line a request, without anything of the request that could be a secret."""

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svc_daemon.api.layers import access_logs
from tests.api.servers import hardened, serving_client, wait_until


async def hello(request: Request) -> Response:
    return Response("hello")


async def fail(request: Request) -> Response:
    raise RuntimeError("unexpected")


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    routes = [Route("/storage/{token}", hello), Route("/fail", fail)]
    with serving_client(hardened(routes)) as client:
        yield client


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger=access_logs.__name__):
        yield caplog


def access_lines(log: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in log.records if record.name == access_logs.__name__]


def fields(log: pytest.LogCaptureFixture) -> dict[str, Any]:
    """The fields of the one access line, without its duration."""
    wait_until(lambda: bool(access_lines(log)), "the request is logged")
    (record,) = access_lines(log)
    told = dict(record.__dict__["fields"])
    assert told.pop("duration_ms") >= 0
    return told


def test_a_line_has_the_template_and_neither_path_nor_query(
    client: httpx.Client, log: pytest.LogCaptureFixture
) -> None:
    client.get("/storage/t0ken?q=s3cret")
    expected = {"method": "GET", "route": "/storage/{token}", "status": 200, "sent_bytes": 5}
    assert fields(log) == expected
    assert access_lines(log)[0].getMessage() == "answered"


def test_a_path_without_route_is_not_logged(client: httpx.Client, log: pytest.LogCaptureFixture) -> None:
    answer = client.get("/t0ken")
    assert fields(log) == {"method": "GET", "route": "-", "status": 404, "sent_bytes": len(answer.content)}


@pytest.mark.parametrize(("headers", "status"), [({"Host": "evil.example"}, 421), ({"Origin": "null"}, 403)])
def test_a_refused_request_has_its_line(
    client: httpx.Client, log: pytest.LogCaptureFixture, headers: dict[str, str], status: int
) -> None:
    client.get("/storage/t", headers=headers)
    assert fields(log)["status"] == status


def test_a_failed_request_has_its_line(client: httpx.Client, log: pytest.LogCaptureFixture) -> None:
    client.get("/fail")
    assert (fields(log)["route"], fields(log)["status"]) == ("/fail", 500)
