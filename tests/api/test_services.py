"""The service about itself."""

from dataclasses import fields

from svc_daemon.settings import Limits
from svc_daemon.wire.proofs import parse_secret, prove
from svc_daemon.wire.services import Health, LimitsAnswer, Version
from svc_daemon.wire.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION
from tests.api.answers import details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon


def test_health_needs_no_key_and_counts_the_queue(daemon: Daemon) -> None:
    daemon.add_source()
    daemon.advance(5)
    told = daemon.show("/healthz", key="")
    assert Health.model_validate(told, extra="forbid")
    assert (told["status"], told["version"], told["api"]) == ("ok", VERSION, API_RANGE)
    assert told["installation_id"] == daemon.installation_id
    assert told["queue"] == {"queued": 1, "running": 0}
    assert told["uptime_seconds"] >= 5
    assert 0 < told["writer"]["commits"] <= told["writer"]["operations"]


def test_health_proves_itself_by_the_secret_of_the_data_directory(daemon: Daemon) -> None:
    secret = parse_secret(daemon.files.secret.read_text())
    assert secret is not None
    told = daemon.show("http://127.0.0.1:7820/healthz?nonce=0123456789abcdef", key="")
    assert told["proof"] == prove(secret, daemon.installation_id, 7820, "0123456789abcdef")
    again = daemon.show("http://127.0.0.1:7820/healthz?nonce=0123456789abcdeF", key="")
    assert again["proof"] != told["proof"]
    assert daemon.show("/healthz", key="")["proof"] is None


def test_a_nonce_has_a_length(shared: Daemon) -> None:
    for nonce in ["", "x" * 15, "x" * 129]:
        assert refused_field(shared.ask("GET", "/healthz", key="", params={"nonce": nonce})) == "nonce"


def test_the_version_needs_a_key(shared: Daemon) -> None:
    told = shared.show("/v1/version")
    assert Version.model_validate(told, extra="forbid")
    assert (told["version"], told["api_oldest"], told["api_newest"]) == (VERSION, API_OLDEST, API_NEWEST)
    details_of(shared.ask("GET", "/v1/version", key=""), "invalid_project_key")


def test_the_version_tells_whether_a_model_writes_answers(daemon: Daemon) -> None:
    looking = {"verify": "writing"}
    assert daemon.show("/v1/version", **looking)["writing"]["state"] == "off"
    assert daemon.show("/v1/version")["writing"] is None
    assert refused_field(daemon.ask("GET", "/v1/version", params={"verify": "x"})) == "verify"
    with daemon.writing("http://nowhere.invalid/v1"):
        told = daemon.show("/v1/version", **looking)["writing"]
    assert (told["state"], told["model"]) == ("failing", "small")
    assert "SVC_LLM_BASE_URL" in told["message"]


def test_every_limit_is_shown_with_what_is_used(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(tags=7))
    daemon.make_bucket()
    daemon.add_source()
    told = daemon.show("/v1/limits")
    assert LimitsAnswer.model_validate(told, extra="forbid")
    assert set(told["limits"]) == {limit.name for limit in fields(Limits)}
    assert told["limits"]["tags"] == {"value": 7, "unit": "tags", "used": None}
    assert told["limits"]["file_bytes"] == {"value": 26_214_400, "unit": "bytes", "used": None}
    assert told["limits"]["bytes_per_minute"]["used"] == len(NOTES)
    theirs = daemon.show("/v1/limits", key=daemon.add_team())
    assert theirs["limits"]["bytes_per_minute"]["used"] == 0
    daemon.advance(61)
    assert daemon.show("/v1/limits")["limits"]["bytes_per_minute"]["used"] == 0


def test_the_formats_of_every_day_are_read_without_extras(shared: Daemon) -> None:
    cases: list[str] = [".txt", ".md", ".html", ".pdf", ".docx", ".csv", ".json", ".py"]
    for extension in cases:
        formats = shared.show("/v1/limits")["formats"]
        (found,) = [each for each in formats if extension in each["extensions"]]
        assert found["extra"] is None
        assert found["content_types"]
