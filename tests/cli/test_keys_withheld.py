"""A key goes only to an address that the user gave, or to a local daemon that has proved itself."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_cli.client import Client
from svc_cli.client.new_files import BytesContent
from svc_cli.client.retries import RetryPolicy
from svc_cli.commands.machine import completed_names
from svc_cli.daemon.probes import LocalProof
from svc_cli.errors import DaemonUnreachable, NetworkFailed, NotAuthenticated, SvcError
from svc_daemon.paths import DataFiles
from svc_daemon.wire.light.local_daemons import read_secret
from tests.cli.odd_servers import IMPOSTORS, NO_BUCKETS, SECRET, OddServer, serving
from tests.cli.terminals import RunSvc

ONCE = RetryPolicy(attempts=1)


#: Commands that send a key.
COMMANDS = (
    "bucket ls",
    "auth login --key-file -",
    "auth login --key-file key",
    "auth status",
    "auth token",
    "search words",
    "ask words",
    "upload key -b b",
    "import http://site.example/ -b b",
    "sync . -b b",
    "diff . -b b",
    "watch run . -b b",
    "watch status",
    "status",
    "wait src_01k3zq8q4y7x",
    "events --follow",
    "webhook listen --forward-to http://127.0.0.1:1/",
    "key create name --preset read",
    "bucket export b file",
    "source show a -b b",
    "mcp",
    "doctor",
)


@pytest.mark.rule("trust.address")
@pytest.mark.parametrize("variable", ["SVC_API_KEY", "SVC_API_KEY_FILE", "stored"])
@pytest.mark.parametrize("command", COMMANDS)
def test_untrusted_address_of_a_project_gets_no_request_at_all(
    svc: RunSvc, odd: OddServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, variable: str
) -> None:
    odd.answer_health("ins_1")
    odd.answers["GET /v1/buckets"] = NO_BUCKETS
    Path("key").write_text("sk-mine\n")
    if variable == "stored":
        assert svc("auth", "login", "--key-file", "key", "--base-url", odd.url).exit == 0
    else:
        monkeypatch.setenv(variable, "sk-mine" if variable == "SVC_API_KEY" else "key")
    monkeypatch.delenv("SVC_NO_AUTOSTART")
    monkeypatch.setenv("SVC_TRUST_PROJECT", "1")  # never covers the address
    odd.requests.clear()
    Path("svc.toml").write_text(f'base_url = "{odd.url}"\n[[map]]\ndir = "docs"\nbucket = "other"\n')
    ended = svc(*command.split(), stdin=b"sk-mine\n")
    assert ended.exit == (3 if command == "doctor" else 2), ended
    assert "svc config trust" in ended.stdout + ended.stderr, ended
    assert odd.requests == []
    assert not (tmp_path / "data").exists(), "no daemon was started"


def test_completion_in_an_untrusted_project_sends_nothing(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    odd.answer_health("ins_1")
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    Path("svc.toml").write_text(f'base_url = "{odd.url}"\n')
    assert not completed_names.write_bucket_names()
    assert capfd.readouterr().out == ""
    assert odd.requests == []


@pytest.mark.parametrize("given", ["trusted file", "flag", "environment", "own configuration"])
def test_address_that_the_user_gave_gets_the_key(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    odd.answer_health("ins_1")
    odd.answers["GET /v1/buckets"] = NO_BUCKETS
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    Path("svc.toml").write_text(f'base_url = "{odd.url}"\n' if given == "trusted file" else 'bucket = "b"\n')
    words: tuple[str, ...] = ()
    if given == "trusted file":
        assert svc("config", "trust").exit == 0
    elif given == "flag":
        words = ("--base-url", odd.url)
    elif given == "environment":
        monkeypatch.setenv("SVC_BASE_URL", odd.url)
    else:
        assert svc("config", "set", "base_url", odd.url).exit == 0
    assert svc("bucket", "ls", *words).exit == 0
    assert odd.keys_seen() == {"Bearer sk-mine"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(at_odd: RunSvc, odd: OddServer, status: int) -> None:
    Path("a.md").write_text("words")
    with serving() as other:
        moved: tuple[int, Any, dict[str, str]] = (status, {}, {"Location": f"{other.url}/v1/buckets"})
        for route in ("GET /v1/buckets", "GET /v1/limits", "PUT /v1/buckets/b", "POST /v1/search"):
            odd.answers[route] = moved
        for words in (("bucket", "ls"), ("bucket", "create", "b"), ("search", "words"), ("upload", "a.md", "-b", "b")):
            assert at_odd(*words).exit not in {0, 2}, words
        odd.answers["GET /healthz"] = moved
        assert at_odd("bucket", "ls").exit == 12
        assert other.requests == []


def test_bytes_go_to_the_service_itself_and_without_the_key_whatever_upload_url_it_returns(odd: OddServer) -> None:
    odd.answers["PUT /v1/storage/up"] = (200, {}, {})
    with serving() as other, Client(odd.url, "sk-mine", policy=ONCE) as client:
        for origin in (other.url, odd.url, f"http://localhost:{other.port}", "https://svc.example", "file://", ""):
            odd.requests.clear()
            assert client.send_bytes(f"{origin}/v1/storage/up?part=1", BytesContent(b"words")) == 5
            ((method, path, headers),) = odd.requests
            assert method == "PUT", origin
            assert path == "/v1/storage/up", origin
            assert "Authorization" not in headers, origin
        assert other.requests == []


@pytest.fixture
def proven(odd: OddServer, files: DataFiles) -> Iterator[Client]:
    """A client of the local daemon, for which the odd server stands in."""
    odd.prove_health(SECRET, "ins_1")
    odd.answers["GET /v1/gone"] = (404, {}, {})
    proof = LocalProof("ins_1", files.secret)
    with Client(odd.url, "sk-mine", policy=ONCE, proof=proof) as client:
        assert client.buckets()["buckets"] == []
        yield client


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_program_that_takes_the_port_of_a_stopped_daemon_gets_neither_key_nor_bytes(
    odd: OddServer, proven: Client, kind: str
) -> None:
    """The client has been connected before, as that of a watcher that runs for days."""
    with pytest.raises(SvcError):
        proven.source("gone")  # a refusal ends the connection
    odd.requests.clear()
    IMPOSTORS[kind](odd)
    for send in (proven.buckets, lambda: proven.send_bytes(f"{odd.url}/up", BytesContent(b"words"))):
        with pytest.raises((DaemonUnreachable, NetworkFailed)):
            send()
    assert {path for _, path, _ in odd.requests} == {"/healthz"}
    assert odd.keys_seen() == set()
    odd.prove_health(SECRET, "ins_1")
    assert proven.buckets()["buckets"] == [], "the daemon has returned"


def test_connection_that_ends_after_the_proof_is_not_opened_again_without_one(odd: OddServer, proven: Client) -> None:
    with pytest.raises(SvcError):
        proven.source("gone")
    odd.requests.clear()
    prove = odd.answers["GET /healthz"]
    odd.answers["GET /healthz"] = lambda query: (*prove(query)[:2], {"Connection": "close"})
    with pytest.raises(NetworkFailed):
        proven.buckets()
    assert [path for _, path, _ in odd.requests] == ["/healthz"]
    assert odd.keys_seen() == set()


def test_key_stored_for_the_local_daemon_is_sent_only_to_one_that_proves_itself(
    svc: RunSvc, odd: OddServer, files: DataFiles
) -> None:
    odd.prove_health(SECRET, "ins_1")
    assert svc("auth", "login", "--key-file", "-", stdin=b"sk-stored\n").exit == 0
    assert svc("bucket", "ls", "--base-url", odd.url).exit == 0
    assert odd.keys_seen() == {"Bearer sk-stored"}
    files.daemon.unlink()  # the daemon has stopped
    odd.answer_health("ins_1")
    odd.requests.clear()
    for words in (("bucket", "ls"), ("auth", "token"), ("auth", "status")):
        assert svc(*words, "--base-url", odd.url, "--json").failure == (4, "svc_installation_changed"), words
    assert odd.keys_seen() == set()


@pytest.mark.parametrize("variables", [{"SVC_API_KEY": "sk-mine"}, {}])
def test_client_for_python_takes_only_a_local_daemon_that_proves_itself(
    svc: RunSvc, odd: OddServer, files: DataFiles, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for pose in IMPOSTORS.values():
        pose(odd)
        for key in (None, "sk-given"):
            with pytest.raises(DaemonUnreachable):
                Client(api_key=key)
    assert odd.keys_seen() == set()
    odd.prove_health(SECRET, "ins_1")
    with Client() as client:
        assert client.buckets()["buckets"] == []
    assert odd.keys_seen() == {f"Bearer {variables.get('SVC_API_KEY', 'sk-admin')}"}


def test_client_for_python_sends_a_stored_key_only_to_its_installation(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answer_health("ins_1")
    odd.answers["GET /v1/buckets"] = NO_BUCKETS
    assert svc("auth", "login", "--key-file", "-", "--base-url", odd.url, stdin=b"sk-stored\n").exit == 0
    monkeypatch.setenv("SVC_BASE_URL", odd.url)
    with Client() as client:
        assert client.buckets()["buckets"] == []
    odd.answer_health("ins_2")
    odd.requests.clear()
    with pytest.raises(NotAuthenticated):
        Client()
    assert odd.keys_seen() == set()


def test_secret_that_another_user_may_have_written_proves_nothing(
    svc: RunSvc, odd: OddServer, files: DataFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.prove_health(SECRET, "ins_1")
    files.secret.chmod(0o602)
    assert read_secret(files.secret) is None
    assert svc("bucket", "ls").exit == 12
    files.secret.chmod(0o600)
    assert read_secret(files.secret) == SECRET
    assert svc("bucket", "ls").exit == 0
    odd.requests.clear()
    owner = files.secret.stat().st_uid or 4711
    os.chown(files.secret, owner, -1)  # the superuser's files are trusted
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert read_secret(files.secret) is None
    assert svc("bucket", "ls").exit == 12
    assert odd.keys_seen() == set()
