"""What the service shows of itself: health, version, limits, and the models of its agents."""

from dataclasses import fields
from datetime import datetime
from typing import Any

import pytest

from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.local_daemons import parse_secret, prove
from svc_daemon.wire.light.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION
from tests.api.answers import details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon


def test_health_needs_no_key_and_reports_the_length_of_the_queue(daemon: Daemon) -> None:
    daemon.add_source()
    daemon.delete(f"/v1/sources/{daemon.add_source()}")
    daemon.advance(5)
    health = daemon.show("/healthz", key="")
    about: dict[str, Any] = {"status": "ok", "version": VERSION, "api": API_RANGE, "proof": None}
    about |= {"installation_id": daemon.installation_id, "queue": {"queued": 1, "running": 0}}
    assert {name: health[name] for name in about} == about
    assert health["uptime_seconds"] >= 5
    assert 0 < health["writer"]["commits"] <= health["writer"]["operations"]


def test_health_returns_a_proof_made_with_the_secret_in_the_data_directory(daemon: Daemon) -> None:
    secret = parse_secret(daemon.files.secret.read_text())
    assert secret is not None
    nonces = ("0123456789abcdef", "0123456789abcdeF")
    proofs = [daemon.show(f"http://127.0.0.1:7820/healthz?nonce={nonce}", key="")["proof"] for nonce in nonces]
    assert proofs == [prove(secret, daemon.installation_id, 7820, nonce) for nonce in nonces]
    assert proofs[0] != proofs[1]
    for nonce in ("", "x" * 15, "x" * 129):
        assert refused_field(daemon.ask("GET", "/healthz", key="", params={"nonce": nonce})) == "nonce"


def test_version_needs_a_key_and_shows_whether_the_writing_model_works(daemon: Daemon) -> None:
    version = daemon.show("/v1/version")
    assert (version["version"], version["api_oldest"], version["api_newest"]) == (VERSION, API_OLDEST, API_NEWEST)
    details_of(daemon.ask("GET", "/v1/version", key=""), "invalid_project_key")
    assert (version["writing"], daemon.show("/v1/version", verify="writing")["writing"]["state"]) == (None, "off")
    assert refused_field(daemon.ask("GET", "/v1/version", params={"verify": "x"})) == "verify"
    with daemon.writing("http://nowhere.invalid/v1"):
        writing = daemon.show("/v1/version", verify="writing")["writing"]
    assert (writing["state"], writing["model"], "SVC_LLM_BASE_URL" in writing["message"]) == ("failing", "small", True)


def test_every_limit_is_shown_with_its_value_and_its_use(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(tags=7))
    daemon.make_bucket()
    daemon.add_source()
    shown = daemon.show("/v1/limits")
    limits = shown["limits"]
    assert shown["key"] == daemon.show("/v1/keys")["keys"][0]
    assert set(limits) == {limit.name for limit in fields(Limits)}
    assert limits["tags"] == {"value": 7, "unit": "tags", "used": None}
    assert limits["file_bytes"] == {"value": 26_214_400, "unit": "bytes", "used": None}
    theirs = daemon.show("/v1/limits", key=daemon.add_team())["limits"]
    daemon.advance(61)
    later = daemon.show("/v1/limits")["limits"]
    assert [each["bytes_per_minute"]["used"] for each in (limits, theirs, later)] == [len(NOTES), 0, 0]


@pytest.mark.parametrize("extension", (".txt", ".md", ".html", ".pdf", ".docx", ".csv", ".json", ".py"))
def test_common_formats_need_no_extra(shared: Daemon, extension: str) -> None:
    formats = shared.show("/v1/limits")["formats"]
    (found,) = [each for each in formats if extension in each["extensions"]]
    assert (found["extra"], bool(found["content_types"])) == (None, True)


LISTS = ("/v1/models", "/v1/rag-agent/models")


@pytest.fixture(scope="module")
def daemon_with_agents(shared: Daemon) -> Daemon:
    """A daemon with two named agents."""
    for agent_id in ("sales", "legal"):
        shared.post("/v1/agents", 201, json={"agent_id": agent_id})
    return shared


def listed(daemon: Daemon, path: str, key: str | None = None) -> list[dict[str, Any]]:
    page = daemon.show(path, key=key)
    assert (page["object"], set(page)) == ("list", {"object", "data", "request_id"})
    return list(page["data"])


@pytest.mark.rule("agents.models", "agents.rag-models")
def test_every_agent_is_listed_as_a_model_and_found_under_both_spellings(daemon_with_agents: Daemon) -> None:
    made = int(datetime.fromisoformat(daemon_with_agents.show("/v1/agents/sales")["created_at"]).timestamp())
    for path in LISTS:
        models = listed(daemon_with_agents, path)
        assert [model["id"] for model in models] == ["svc-agent", "svc-agent:legal", "svc-agent:sales"]
        sales = {"id": "svc-agent:sales", "object": "model", "created": made, "owned_by": daemon_with_agents.team_id}
        assert (models[2], {tuple(model) for model in models}) == (sales, {tuple(models[2])})
    for model in ("svc-agent", "svc-rag-agent", "svc-agent:sales", "svc-rag-agent:sales"):
        assert daemon_with_agents.show(f"/v1/models/{model}")["id"] == model


@pytest.mark.rule("agents.models")
def test_key_sees_only_the_models_that_it_may_use(daemon_with_agents: Daemon) -> None:
    for allowed in ("svc-agent:sales", "svc-rag-agent:sales"):
        key = daemon_with_agents.add_key(models=(allowed, "svc-agent:made-later"))
        for path in LISTS:
            assert [model["id"] for model in listed(daemon_with_agents, path, key)] == ["svc-agent:sales"], allowed
        assert daemon_with_agents.ask("GET", "/v1/models/svc-rag-agent:sales", key=key).is_success
        details_of(daemon_with_agents.ask("GET", "/v1/models/svc-agent", key=key), "model_not_allowed")
