"""Headers of every response: the request id, the release and the API versions."""

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.logs import REQUEST_ID
from svc_daemon.wire.versions import API_RANGE, VERSION
from tests.api.servers import hardened, serving_client


async def show(request: Request) -> JSONResponse:
    return JSONResponse({"state": request.state.request_id, "logged": REQUEST_ID.get()})


async def fail(request: Request) -> JSONResponse:
    raise RuntimeError("unexpected")


@pytest.mark.rule("endpoint.request-id")
def test_every_response_has_a_new_request_id_that_handlers_and_logs_use() -> None:
    with serving_client(hardened([Route("/show", show), Route("/fail", fail)])) as client:
        answers = [client.get("/show", headers={"X-Request-Id": "mine"}) for _ in range(3)]
        ids = [answer.headers["X-Request-Id"] for answer in answers]
        assert [answer.json() for answer in answers] == [{"state": each, "logged": each} for each in ids]
        assert (len(set(ids)), "mine" in ids) == (3, False)
        for path in ("/show", "/nowhere", "/fail"):
            headers = client.get(path).headers
            assert headers["X-Request-Id"].startswith("req_"), path
            assert (headers["Svc-Version"], headers["Svc-Api"]) == (VERSION, API_RANGE), path
