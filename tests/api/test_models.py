"""The models that agents are: listed as they are advertised, found in both spellings, refused as OpenAI does."""

from datetime import datetime
from typing import Any

import pytest

from tests.api.answers import details_of
from tests.api.daemons import Daemon


@pytest.fixture(scope="module")
def manned(shared: Daemon) -> Daemon:
    """A daemon with two named agents."""
    for agent_id in ("sales", "legal"):
        shared.post("/v1/agents", 201, json={"agent_id": agent_id})
    return shared


def listed(daemon: Daemon, path: str = "/v1/models", key: str | None = None) -> list[dict[str, Any]]:
    page = daemon.show(path, key=key)
    assert (page["object"], set(page)) == ("list", {"object", "data", "request_id"})
    return list(page["data"])


@pytest.mark.parametrize("path", ["/v1/models", "/v1/rag-agent/models"])
def test_every_agent_is_a_model_in_the_advertised_spelling(manned: Daemon, path: str) -> None:
    models = listed(manned, path)
    assert [model["id"] for model in models] == ["svc-agent", "svc-agent:legal", "svc-agent:sales"]
    for model in models:
        assert set(model) == {"id", "object", "created", "owned_by"}
        assert (model["object"], model["owned_by"]) == ("model", manned.team_id)
    agent = manned.show("/v1/agents/sales")
    assert models[2]["created"] == int(datetime.fromisoformat(agent["created_at"]).timestamp())


@pytest.mark.parametrize("model", ["svc-agent", "svc-rag-agent", "svc-agent:sales", "svc-rag-agent:sales"])
def test_a_model_is_found_under_the_id_that_was_asked_for(manned: Daemon, model: str) -> None:
    assert manned.show(f"/v1/models/{model}")["id"] == model


@pytest.mark.parametrize("path", ["/v1/models", "/v1/rag-agent/models"])
@pytest.mark.parametrize("allowed", ["svc-agent:sales", "svc-rag-agent:sales"])
def test_a_key_sees_only_the_models_that_it_may_use(manned: Daemon, path: str, allowed: str) -> None:
    key = manned.add_key(models=(allowed, "svc-agent:made-later"))
    assert [model["id"] for model in listed(manned, path, key)] == ["svc-agent:sales"]
    assert manned.ask("GET", "/v1/models/svc-rag-agent:sales", key=key).is_success
    details_of(manned.ask("GET", "/v1/models/svc-agent", key=key), "model_not_allowed")


@pytest.mark.parametrize(
    ("model", "code", "kind"),
    [
        ("gpt-5", "model_not_found", "not_found_error"),
        ("svc-agent:nobody", "agent_not_found", "not_found_error"),
        ("svc-agent:", "model_not_found", "not_found_error"),
    ],
)
def test_what_is_no_model_is_told_as_openai_tells_it(manned: Daemon, model: str, code: str, kind: str) -> None:
    answer = manned.ask("GET", f"/v1/models/{model}")
    assert set(answer.json()) == {"error"}
    assert {"code", "message", "type"} <= set(answer.json()["error"])
    assert (answer.json()["error"]["code"], answer.json()["error"]["type"]) == (code, kind)
    assert (answer.status_code, answer.headers["x-should-retry"]) == (404, "false")


def test_a_model_without_a_key_is_refused_as_openai_does(manned: Daemon) -> None:
    answer = manned.ask("GET", "/v1/models", key="")
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
    details_of(manned.ask("GET", "/v1/rag-agent/models", key=""), "invalid_project_key")
