"""One line a request, without anything of the request that could be a secret."""

import logging
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svc_daemon.api.middleware import access_logs
from tests.acceptance.installations import wait_until
from tests.api.servers import hardened, serving_client


async def hello(request: Request) -> Response:
    return Response("hello")


async def fail(request: Request) -> Response:
    raise RuntimeError("unexpected")


#: A path, the request's headers, and the route and status of its line.
REQUESTS: list[tuple[str, dict[str, str], str, int]] = [
    ("/storage/t0ken?q=s3cret", {}, "/storage/{token}", 200),
    ("/t0ken", {}, "-", 404),
    ("/storage/t", {"Host": "evil.example"}, "-", 421),
    ("/storage/t", {"Origin": "null"}, "-", 403),
    ("/fail", {}, "/fail", 500),
]


@pytest.mark.rule("session.unlogged")
def test_a_line_has_the_template_and_neither_path_nor_query(caplog: pytest.LogCaptureFixture) -> None:
    app = hardened([Route("/storage/{token}", hello), Route("/fail", fail)])

    def lines() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == access_logs.__name__]

    with caplog.at_level(logging.INFO, logger=access_logs.__name__), serving_client(app) as client:
        for path, headers, route, status in REQUESTS:
            caplog.clear()
            sent_bytes = len(client.get(path, headers=headers).content)
            wait_until(lambda: bool(lines()), f"{path} is logged")
            (line,) = lines()
            fields: dict[str, Any] = dict(line.__dict__["fields"])
            assert fields.pop("duration_ms") >= 0
            assert fields == {"method": "GET", "route": route, "status": status, "sent_bytes": sent_bytes}, path
            assert line.getMessage() == "answered"
