"""The fault lab injects errors, delays and cut connections before or after a request's effect, only if turned on."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from svc_daemon.errors import ERRORS
from svc_daemon.wire.light.error_codes import ErrorCode
from tests.acceptance.calls import upload
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import titles
from tests.conftest import UNLIMITED, MakeInstallation

# A daemon of a cluster refuses `--faults`.
pytestmark = pytest.mark.sqlite
FILES = "POST /v1/buckets/{bucket}/files"


class Lab:
    """An installation whose daemon reads its faults from a file."""

    def __init__(self, installation: Installation, path: Path) -> None:
        self.installation = installation
        self._path = path
        self._ticks = 0

    def disturb(self, *rules: str) -> None:
        text = "\n".join(f"[[fault]]\n{rule}" for rule in rules)
        self._path.write_text(text, encoding="utf-8")
        # The daemon has to notice a new file of the same size, even within one tick of the clock.
        self._ticks += 1
        os.utime(self._path, ns=(self._ticks, self._ticks))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp("lab")
    path = root / "faults.toml"
    path.write_text("")
    installation = Installation(root / "one", **UNLIMITED)
    installation.options = ("--faults", str(path))
    installation.start()
    yield Lab(installation, path)
    installation.clear()


def test_fault_lab_injects_every_error_code(lab: Lab) -> None:
    lab.disturb(*(f'name = "{code}"\nroute = "GET /v1/version"\ncode = "{code}"' for code in ERRORS))
    with lab.installation.client() as client:
        for code, rule in ERRORS.items():
            answer = client.get("/v1/version")
            assert (answer.status_code, answer.json()["error"]["code"]) == (rule.status, code)
            assert (answer.headers["svc-fault"], answer.headers["x-should-retry"]) == (
                code,
                str(rule.retryable).lower(),
            )
        assert "svc-fault" not in client.get("/v1/version").headers


def test_fault_before_the_effect_stores_nothing_and_after_it_the_file(lab: Lab) -> None:
    with lab.installation.client() as client:
        for when, bucket, left in (("before", "never", []), ("after", "done", ["cut.txt", "refused.txt"])):
            client.put(f"/v1/buckets/{bucket}")
            lab.disturb(
                f'route = "{FILES}"\nwhen = "{when}"\ncut = true',
                f'route = "{FILES}"\nwhen = "{when}"\ncode = "storage_full"\ndetails = {{ retry_after_seconds = 2 }}',
            )
            with pytest.raises(httpx.TransportError):
                upload(client, bucket, "cut.txt", b"Words.", f"cut-{bucket}")
            refused = upload(client, bucket, "refused.txt", b"Other words.", f"refused-{bucket}")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
            assert titles(lab.installation, bucket) == left
            # A client sends the same request again, and the file is stored once.
            for name, data in (("cut", b"Words."), ("refused", b"Other words.")):
                assert upload(client, bucket, f"{name}.txt", data, f"{name}-{bucket}").status_code in (200, 201)
            assert titles(lab.installation, bucket) == ["cut.txt", "refused.txt"]


def test_injected_delay_is_marked_and_daemon_status_shows_the_fault_lab(lab: Lab) -> None:
    lab.disturb('name = "slow"\nroute = "GET /v1/buckets"\ndelay_s = 0.2\nskip = 1\ntimes = "always"')
    with lab.installation.client() as client:
        seen = [client.get("/v1/buckets") for _ in range(3)]
    assert [answer.headers.get("svc-fault") for answer in seen] == [None, "slow", "slow"]
    assert all(answer.status_code == 200 and answer.elapsed.total_seconds() >= 0.2 for answer in seen[1:])
    status = lab.installation.svc("daemon", "status")
    assert "the fault lab is on" in status.stdout
    assert "fault lab" in lab.installation.svc("bucket", "ls").stderr


def test_invalid_fault_file_of_a_running_daemon_keeps_the_earlier_faults(lab: Lab) -> None:
    lab.disturb('route = "GET /v1/limits"\ncode = "not_found"\ntimes = "always"')
    with lab.installation.client() as client:
        assert client.get("/v1/limits").status_code == 404
        lab.disturb('route = "GET /v1/limits"\ncode = "no_such_code"')
        assert client.get("/v1/limits").status_code == 404
    assert "The earlier faults stay in effect." in lab.installation.files.log.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[fault]", "not valid TOML"),
        ('[[fault]]\ncode = "nope"', "fault.0.code"),
        ('[[fault]]\nroute = "GET /v1/nothing"\ncut = true', "There is no route 'GET /v1/nothing'"),
        ("[[fault]]\nskip = 1", "needs `code`, `cut` or `delay_s`"),
        ('[[fault]]\ncut = true\ncode = "not_found"', "exclude each other"),
        ("[[fault]]\ncut = true\ntimes = 0", "fault.0.times"),
        ("[[fault]]\ncut = true\ncount = 1", "fault.0.count: There is no such field."),
    ],
)
def test_daemon_refuses_to_start_with_an_invalid_fault_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "faults.toml").write_text(text)
    ended = Installation(tmp_path).operate("serve", "--faults", str(tmp_path / "faults.toml"))
    assert (ended.exit, message in ended.stderr) == (2, True), ended.stderr


def test_only_the_flag_turns_faults_on_and_never_on_existing_data_or_other_addresses(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    path = tmp_path / "faults.toml"
    path.write_text("[[fault]]\ncut = true")
    made = make_installation(**UNLIMITED, SVC_FAULTS=str(path), SVC_DAEMON_FAULTS=str(path))
    made.start()
    assert made.svc("bucket", "ls").exit == 0
    assert json.loads(made.svc("daemon", "status", "--json").stdout)["faults"] is False
    made.stop()
    # The daemon also refuses it while state.db is moved away for a repair.
    moved = made.files.state.with_name("moved.db")
    for back, there in ((made.files.state, moved), (moved, made.files.state)):
        refused = made.operate("serve", "--faults", str(path))
        assert (refused.exit, "made without --faults" in refused.stderr) == (1, True), back
        back.rename(there)
    exposed = Installation(tmp_path, SVC_LISTEN="0.0.0.0:0").operate("serve", "--faults", str(path))
    assert (exposed.exit, "on loopback" in exposed.stderr) == (2, True)
    assert set(ErrorCode) == set(ERRORS)
