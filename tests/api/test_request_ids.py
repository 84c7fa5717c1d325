"""Every answer says which request it belongs to and which release gave it."""

from collections.abc import Iterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.logs import REQUEST_ID
from svc_daemon.wire.versions import API_RANGE, VERSION
from tests.api.servers import hardened, serving_client


async def tell(request: Request) -> JSONResponse:
    return JSONResponse({"state": request.state.request_id, "logged": REQUEST_ID.get()})


async def fail(request: Request) -> JSONResponse:
    raise RuntimeError("unexpected")


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving_client(hardened([Route("/tell", tell), Route("/fail", fail)])) as client:
        yield client


def test_handlers_and_logs_see_the_id_that_the_answer_shows(client: httpx.Client) -> None:
    answer = client.get("/tell")
    request_id = answer.headers["X-Request-Id"]
    assert answer.json() == {"state": request_id, "logged": request_id}


def test_each_request_has_an_id_of_its_own_on_one_connection(client: httpx.Client) -> None:
    ids = [client.get("/tell").json()["logged"] for _ in range(3)]
    assert len(set(ids)) == 3


def test_an_id_that_the_client_sends_is_not_taken(client: httpx.Client) -> None:
    assert client.get("/tell", headers={"X-Request-Id": "mine"}).headers["X-Request-Id"] != "mine"


@pytest.mark.parametrize("path", ["/tell", "/nowhere", "/fail"])
def test_every_answer_names_request_and_release(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["X-Request-Id"].startswith("req_")
    assert headers["Svc-Version"] == VERSION
    assert headers["Svc-Api"] == API_RANGE
