"""Health, proof, version, limits and formats of the service."""

from dataclasses import fields
from typing import Any

import pytest

from svc_daemon.settings.limits import Limits
from svc_daemon.wire.daemon_proofs import parse_secret, prove
from svc_daemon.wire.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION
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
    limits = daemon.show("/v1/limits")["limits"]
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
