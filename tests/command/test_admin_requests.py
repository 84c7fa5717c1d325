"""`svc-daemon team`, `key` and `search` work on the data directory directly or through the running daemon."""

import stat
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from svc_daemon.core.access.api_keys import PRESETS
from svc_daemon.data_directory import lock_directory
from svc_daemon.offline.admin_requests import Errand, Unreachable, run_errand
from svc_daemon.operations.keys import list_teams
from tests.acceptance.installations import PATIENCE_S, Finished, Installation, wait_until
from tests.cli.odd_servers import serving
from tests.conftest import MakeInstallation

USAGE, REFUSED, MISSING, UNREACHABLE = 2, 3, 5, 12
LISTING = Errand(method="GET", path="/admin/teams", body=None, verb=lambda connection, _: list_teams(connection))
MAKE_ADMIN_KEY = ("key", "create", "--team", "default", "--preset", "admin", "--save")


def run(installation: Installation, *arguments: str) -> Finished:
    installation.root.mkdir(parents=True, exist_ok=True)
    ended = installation.operate(*arguments)
    assert "Traceback" not in ended.stderr
    return ended


def made(installation: Installation, *arguments: str) -> dict[str, Any]:
    finished = run(installation, *arguments, "--json")
    assert finished.exit == 0, finished.stderr
    return dict(finished.json)


def team_names(installation: Installation) -> list[str]:
    return [team["name"] for team in made(installation, "team", "ls")["teams"]]


def team_of(installation: Installation, key: str) -> str:
    with installation.client(Authorization=f"Bearer {key}") as client:
        return str(client.get("/v1/buckets").raise_for_status().json()["team_id"])


@pytest.fixture
def resting(make_installation: MakeInstallation) -> Installation:
    """An installation whose daemon has never run."""
    installation = make_installation()
    run_errand(installation.files, replace(LISTING, on_install=lambda _: None))
    return installation


@pytest.fixture(params=["offline", "online"])
def either(request: pytest.FixtureRequest, resting: Installation) -> Installation:
    """An installation whose daemon is running, or has never run."""
    if request.param == "online":
        resting.start()
    return resting


def test_admin_commands_change_teams_keys_and_search_with_and_without_a_daemon(either: Installation) -> None:
    was_running = either.pid is not None
    blue = made(either, "team", "create", "blue")
    more = made(either, "key", "create", "--team", "blue", "--preset", "read", "--expires", "30d", "--name", "desk")
    key = more["key"]
    assert (more["team"], key["name"], key["capabilities"]) == (blue["team"], "desk", list(PRESETS["read"]))
    assert key["expires_at"]
    assert team_names(either) == ["default", "blue"]
    assert made(either, "team", "rebuild", blue["team"]["id"])["type"] == "store_rebuild"
    assert run(either, "team", "rebuild", "nobody/else", "--json").failure == (MISSING, "not_found")
    off = made(either, "search", "off", "--retry-after", "90")
    assert (off["enabled"], off["retry_after_seconds"]) == (False, 90)
    assert run(either, "search", "status").stdout == "search is off; clients are asked to wait 90 s\n"
    assert run(either, "search", "on").stdout == "search is on\n"
    # Without --json, standard output has only the key.
    finished = run(either, "team", "create", "green")
    assert (finished.exit, finished.stdout[:3], finished.stdout.count("\n")) == (0, "sk-", 1)
    assert "green" in finished.stderr
    assert "not shown again" in finished.stderr
    lines = run(either, "team", "ls").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["default", "blue", "green"]
    assert lines[1].endswith("(0 sources, 0 bytes, index 0 bytes)")
    assert (either.pid is not None) == was_running
    if not was_running:
        either.start()
    assert team_of(either, blue["key"]["key"]) == team_of(either, key["key"]) == blue["team"]["id"]
    assert team_of(either, either.key) != blue["team"]["id"]


@pytest.mark.rule("team.rm")
def test_team_rm_requires_yes_and_works_with_and_without_a_daemon(either: Installation) -> None:
    key = made(either, "team", "create", "blue")["key"]["key"]
    unsure = run(either, "team", "rm", "blue", "--json")
    assert (unsure.failure, unsure.json["error"]["hint"]) == ((USAGE, "svc_usage"), "Add --yes.")
    removed = made(either, "team", "rm", "blue", "--yes")
    assert (removed["name"], removed["status"]) == ("blue", "removing")
    if either.pid is None:
        assert "being removed" in run(either, "team", "ls").stdout
        either.start()
    with either.client(Authorization=f"Bearer {key}") as client:
        assert client.get("/v1/buckets").status_code == 401
    wait_until(lambda: team_names(either) == ["default"], "the team is removed", 60)
    assert run(either, "team", "rm", "blue", "--yes").exit == MISSING
    assert run(either, "team", "rm", "default", "--yes").exit == REFUSED


def test_key_create_save_replaces_a_lost_admin_key(either: Installation) -> None:
    if either.pid is None:
        either.files.admin_key.write_text("")
    else:
        either.files.admin_key.unlink()
    error = either.svc("bucket", "ls", "--json").json["error"]
    assert f"svc-daemon {' '.join(MAKE_ADMIN_KEY)}" in error["hint"]
    saved = run(either, *MAKE_ADMIN_KEY)
    assert (saved.exit, "sk-" in saved.stdout + saved.stderr) == (0, False)
    assert stat.S_IMODE(either.files.admin_key.stat().st_mode) == 0o600
    assert either.svc("bucket", "ls").exit == 0
    again = made(either, *MAKE_ADMIN_KEY)
    assert (again["key"]["key"], again["saved_in"]) == (None, str(either.files.admin_key))
    assert either.key.startswith(again["key"]["hint"].removesuffix("…"))


def test_admin_commands_fail_alike_with_and_without_a_daemon(
    shared_installation: Installation, resting: Installation
) -> None:
    for words, exit_code, code, has_details in (
        ("team create default", REFUSED, "invalid_request", True),
        ("key create --team green --preset read", MISSING, "not_found", False),
    ):
        online, offline = (run(each, *words.split(), "--json") for each in (shared_installation, resting))
        error = online.json["error"]
        assert online.json == offline.json, words
        assert (error["code"], error["retryable"], bool(error["details"])) == (code, False, has_details)
        for each in (online, offline):
            assert (each.exit, each.stderr[:7], each.stderr.count("\n")) == (exit_code, "error: ", 1), words


def test_key_create_reports_a_key_that_cannot_be_saved_as_one_json_value(resting: Installation) -> None:
    resting.files.admin_key.unlink()
    resting.files.admin_key.mkdir()
    ended = run(resting, *MAKE_ADMIN_KEY, "--json")
    assert (ended.exit, ended.json["error"]["code"]) == (USAGE, "svc_file_refused")
    assert f"{resting.files.admin_key} can't be written" in ended.json["error"]["message"]
    assert "key_" in ended.json["error"]["message"]


def test_admin_commands_create_no_installation_in_a_missing_or_empty_directory(
    make_installation: MakeInstallation,
) -> None:
    mistyped = make_installation()
    root = mistyped.files.root
    for folder_is_there in (False, True):
        if folder_is_there:
            root.mkdir()
            root.chmod(0o750)
        for words in (*("team ls", "team rebuild default", "search off"), "key create --team default --preset read"):
            ended = run(mistyped, *words.split(), "--json")
            assert (ended.exit, ended.json["error"]["code"]) == (MISSING, "svc_data_dir_not_found"), words
            assert str(root) in ended.stderr
            assert "SVC_DATA_DIR" in ended.stderr
            assert root.exists() == folder_is_there, words
    assert list(root.iterdir()) == []
    assert stat.S_IMODE(root.stat().st_mode) == 0o750


def test_first_team_create_creates_the_installation_and_reports_it(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    first = run(fresh, "team", "create", "blue", "--json")
    assert (first.exit, first.json["team"]["name"]) == (0, "blue")
    assert first.stderr.count(f"no installation in {fresh.files.root}") == 1
    assert run(fresh, "team", "create", "green", "--json").stderr == ""
    assert team_names(fresh) == ["default", "blue", "green"]


def test_damaged_operator_token_is_reported_with_the_advice_to_restart(installation: Installation) -> None:
    for damage in (b"", b"two words", b"0" * 64, b"\xff"):
        installation.files.operator_token.write_bytes(damage)
        with pytest.raises(Unreachable, match="Restart"):
            run_errand(installation.files, LISTING)
    installation.files.operator_token.unlink()
    finished = run(installation, "team", "ls", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (UNREACHABLE, "svc_daemon_unreachable")
    installation.stop()
    installation.start()
    assert run_errand(installation.files, LISTING)["teams"]


def test_operator_token_is_not_sent_to_another_program_on_the_daemons_port(make_installation: MakeInstallation) -> None:
    """A killed daemon has left its address, at which another program listens while another command holds the lock."""
    killed = make_installation()
    killed.start()
    announced = killed.announced
    killed.kill()
    with serving(urlsplit(announced["base_url"]).port or 0) as impostor, lock_directory(killed.files):
        impostor.answer_health(announced["installation_id"])
        with pytest.raises(Unreachable, match="no daemon answers"):
            run_errand(killed.files, LISTING, patience_s=0.2)
    assert impostor.requests
    assert impostor.keys_seen() == set()
    assert run_errand(killed.files, LISTING)["teams"]


def test_daemon_with_an_empty_secret_fails_to_start_and_recreates_a_missing_one(installation: Installation) -> None:
    installation.stop()
    installation.files.secret.write_text("")
    finished = run(installation, "serve", "--listen", "127.0.0.1:0")
    assert finished.exit == 1
    assert str(installation.files.secret) in finished.stderr.splitlines()[-1]
    installation.files.secret.unlink()
    installation.start()
    assert installation.svc("bucket", "ls").exit == 0


def test_admin_command_waits_for_a_starting_daemon(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    process = fresh.spawn_daemon()
    wait_until(fresh.files.log.exists, "the daemon's log, which it opens after it has the lock")
    assert team_names(fresh) == ["default"]
    process.terminate()
    process.wait(PATIENCE_S)
