"""`svc-daemon team` and `svc-daemon key`: on the data directory itself, and through the daemon that holds it."""

import stat
import subprocess
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from svc_daemon.core.access.api_keys import PRESETS
from svc_daemon.directories import lock_directory
from svc_daemon.operations.teams import list_teams
from svc_daemon.operators import Errand, Unreachable, run_errand
from tests.acceptance.installations import Finished, Installation, wait_until
from tests.cli.odd_servers import serving
from tests.conftest import MakeInstallation
from tests.test_command import command_line

Json = dict[str, Any]
USAGE, REFUSED, MISSING, UNREACHABLE = 2, 3, 5, 12


def run(installation: Installation, *arguments: str) -> Finished:
    """Run `svc-daemon` on the installation's folders."""
    installation.root.mkdir(parents=True, exist_ok=True)
    ended = subprocess.run(
        command_line(*arguments), env=installation.environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in ended.stderr
    return Finished(ended.returncode, ended.stdout, ended.stderr)


def made(installation: Installation, *arguments: str) -> Json:
    finished = run(installation, *arguments, "--json")
    assert finished.exit == 0, finished.stderr
    return dict(finished.json)


def team_of(installation: Installation, key: str) -> str:
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx.get(f"{installation.base_url}/v1/buckets", headers=headers, trust_env=False, verify=False)
    return str(answer.json().get("team_id") or answer.json()["error"]["code"])


LISTING = Errand(method="GET", path="/admin/teams", body=None, verb=lambda connection, _: list_teams(connection))


@pytest.fixture
def resting(make_installation: MakeInstallation) -> Installation:
    """An installation whose daemon never ran."""
    installation = make_installation()
    run_errand(installation.files, replace(LISTING, on_install=lambda _: None))
    return installation


@pytest.fixture(params=["offline", "online"])
def either(request: pytest.FixtureRequest, resting: Installation) -> Installation:
    """An installation whose daemon runs, and one whose daemon never did."""
    if request.param == "online":
        resting.start()
    return resting


def test_teams_and_keys_are_made_with_and_without_a_daemon(either: Installation) -> None:
    was_running = either.pid is not None
    blue = made(either, "team", "create", "blue")
    more = made(either, "key", "create", "--team", "blue", "--preset", "read", "--expires", "30d", "--name", "desk")
    assert more["team"] == blue["team"]
    assert (more["key"]["name"], more["key"]["capabilities"]) == ("desk", list(PRESETS["read"]))
    assert more["key"]["expires_at"]
    assert [team["name"] for team in made(either, "team", "ls")["teams"]] == ["default", "blue"]
    assert (either.pid is not None) == was_running
    if not was_running:
        either.start()
    assert team_of(either, blue["key"]["key"]) == team_of(either, more["key"]["key"]) == blue["team"]["id"]
    assert team_of(either, either.key) != blue["team"]["id"]


def test_search_is_turned_off_and_on_with_and_without_a_daemon(either: Installation) -> None:
    off = made(either, "search", "off", "--retry-after", "90")
    assert (off["enabled"], off["retry_after_seconds"]) == (False, 90)
    assert run(either, "search", "status").stdout == "search is off; clients are told to wait 90 s\n"
    assert run(either, "search", "on").stdout == "search is on\n"


def test_for_people_the_key_stands_alone_on_stdout(either: Installation) -> None:
    finished = run(either, "team", "create", "blue")
    assert finished.exit == 0
    assert finished.stdout.startswith("sk-")
    assert finished.stdout.count("\n") == 1
    assert "blue" in finished.stderr
    assert "not shown again" in finished.stderr
    assert run(either, "team", "ls").stdout.split()[1::2] == ["default", "blue"]


@pytest.mark.parametrize(
    ("words", "exit", "code"),
    [
        (("team", "create", "default"), REFUSED, "invalid_request"),
        (("key", "create", "--team", "green", "--preset", "read"), MISSING, "not_found"),
    ],
)
def test_a_refusal_is_the_same_with_and_without_a_daemon(
    shared_installation: Installation, resting: Installation, words: tuple[str, ...], exit: int, code: str
) -> None:
    told = [run(each, *words, "--json") for each in (shared_installation, resting)]
    assert [(each.exit, each.json["error"]["code"]) for each in told] == [(exit, code)] * 2
    assert told[0].json == told[1].json
    assert told[0].json["error"]["retryable"] is False
    assert bool(told[0].json["error"]["details"]) == (code == "invalid_request")
    assert all(each.stderr.startswith("error: ") and each.stderr.count("\n") == 1 for each in told)


def test_a_lost_admin_key_can_be_made_again(either: Installation) -> None:
    if either.pid is None:
        either.files.admin_key.write_text("")
    else:
        either.files.admin_key.unlink()
    told = either.svc("bucket", "ls", "--json").json["error"]
    way_back = ("key", "create", "--team", "default", "--preset", "admin", "--save")
    assert f"svc-daemon {' '.join(way_back)}" in told["hint"]
    saved = run(either, *way_back)
    assert (saved.exit, "sk-" in saved.stdout + saved.stderr) == (0, False)
    assert stat.S_IMODE(either.files.admin_key.stat().st_mode) == 0o600
    assert either.svc("bucket", "ls").exit == 0


def test_a_key_that_cannot_be_saved_is_one_json_value_that_names_it(resting: Installation) -> None:
    resting.files.admin_key.unlink()
    resting.files.admin_key.mkdir()
    ended = run(resting, "key", "create", "--team", "default", "--preset", "admin", "--save", "--json")
    assert (ended.exit, ended.json["error"]["code"]) == (USAGE, "svc_file_refused")
    assert f"{resting.files.admin_key} can't be written" in ended.json["error"]["message"]
    assert "key_" in ended.json["error"]["message"]


@pytest.mark.parametrize("expires", ["5", "soon", "2030-01-31", "999999999d"])
def test_an_expiry_that_is_none_is_told_with_what_is_one(shared_installation: Installation, expires: str) -> None:
    words = ("key", "create", "--team", "default", "--preset", "read", "--expires", expires)
    ended = run(shared_installation, *words, "--json")
    assert (ended.exit, ended.json["error"]["code"]) == (USAGE, "svc_usage")
    assert "30d" in ended.json["error"]["message"]


def test_what_is_saved_is_not_told(resting: Installation) -> None:
    told = made(resting, "key", "create", "--team", "default", "--preset", "admin", "--save")
    assert (told["key"]["key"], told["saved_in"]) == (None, str(resting.files.admin_key))
    assert resting.key.startswith(told["key"]["hint"].removesuffix("…"))


@pytest.mark.parametrize(
    "words",
    [
        ("team", "ls"),
        ("team", "rebuild", "default"),
        ("search", "off"),
        ("key", "create", "--team", "default", "--preset", "read"),
    ],
)
def test_a_verb_makes_no_installation_where_none_is(
    make_installation: MakeInstallation, words: tuple[str, ...]
) -> None:
    mistyped = make_installation()
    for folder_is_there in (False, True):
        if folder_is_there:
            mistyped.files.root.mkdir()
            mistyped.files.root.chmod(0o750)
        ended = run(mistyped, *words, "--json")
        assert (ended.exit, ended.json["error"]["code"]) == (MISSING, "svc_data_dir_not_found")
        assert str(mistyped.files.root) in ended.stderr
        assert "SVC_DATA_DIR" in ended.stderr
        assert mistyped.files.root.exists() == folder_is_there
    assert list(mistyped.files.root.iterdir()) == []
    assert stat.S_IMODE(mistyped.files.root.stat().st_mode) == 0o750


def test_the_first_team_may_make_the_installation_and_says_so(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    first = run(fresh, "team", "create", "blue", "--json")
    assert (first.exit, first.json["team"]["name"]) == (0, "blue")
    assert first.stderr.count(f"no installation in {fresh.files.root}") == 1
    assert run(fresh, "team", "create", "green", "--json").stderr == ""
    assert [team["name"] for team in made(fresh, "team", "ls")["teams"]] == ["default", "blue", "green"]


def test_a_damaged_token_is_told_with_the_way_out(installation: Installation) -> None:
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


def test_the_token_goes_to_nobody_but_the_daemon(make_installation: MakeInstallation) -> None:
    """A killed daemon has left its address behind, somebody else listens there, and another command holds the lock."""
    killed = make_installation()
    killed.start()
    told = killed.announced
    killed.kill()
    with serving(urlsplit(told["base_url"]).port or 0) as impostor, lock_directory(killed.files):
        impostor.answer_health(told["installation_id"])
        with pytest.raises(Unreachable, match="no daemon of it answers"):
            run_errand(killed.files, LISTING, patience_s=0.2)
    assert impostor.requests
    assert impostor.keys_seen() == set()
    assert run_errand(killed.files, LISTING)["teams"]


def test_a_damaged_secret_stops_the_daemon_with_one_line(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    fresh.start()
    fresh.stop()
    fresh.files.secret.write_text("")
    finished = run(fresh, "serve", "--listen", "127.0.0.1:0")
    assert finished.exit == 1
    assert str(fresh.files.secret) in finished.stderr.splitlines()[-1]
    fresh.files.secret.unlink()
    fresh.start()
    assert fresh.svc("bucket", "ls").exit == 0


def test_a_command_waits_for_a_daemon_that_is_just_starting(make_installation: MakeInstallation) -> None:
    fresh = make_installation()
    process = fresh.spawn_daemon()
    wait_until(fresh.files.log.exists, "the daemon's lock, which it has before it writes its log")
    assert [team["name"] for team in made(fresh, "team", "ls")["teams"]] == ["default"]
    process.terminate()
    process.wait(20)
