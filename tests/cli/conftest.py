"""Fixtures for tests of the command line: consoles, `svc` run in this process, and a server with scripted answers."""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_cli.app import run
from svc_cli.console import Console, Format
from svc_cli.interrupts import ENDING
from svc_daemon.paths import DataFiles
from tests.acceptance.installations import Finished, Installation
from tests.cli.odd_servers import NO_BUCKETS, NO_PID, SECRET, OddServer, announce, serving
from tests.cli.terminals import MakeConsole, Recorded, RunSvc, Terminal
from tests.conftest import UNLIMITED


@pytest.fixture
def make_console() -> MakeConsole:
    """Return a function that creates a console whose recorded streams are terminals or not."""

    def make(format: Format = "text", *, terminal: bool = False, **environ: str) -> Recorded:
        kind = Terminal if terminal else io.StringIO
        out, err = kind(), kind()
        return Recorded(Console(out, err, environ, format), out, err)

    return make


@pytest.fixture
def svc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[RunSvc]:
    """Return a function that runs `svc` in this process, in a new folder and installation without a daemon."""
    for name in [name for name in os.environ if name.startswith("SVC_")]:
        monkeypatch.delenv(name)
    for kind in ("data", "config", "state"):
        monkeypatch.setenv(f"SVC_{kind.upper()}_DIR", str(tmp_path / kind))
    monkeypatch.setenv("SVC_NO_AUTOSTART", "1")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    before = {number: signal.getsignal(number) for number in ENDING}

    def call(*arguments: str, stdin: bytes = b"") -> Finished:
        capfd.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        return Finished(run(arguments), *capfd.readouterr())

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def at(svc: RunSvc, monkeypatch: pytest.MonkeyPatch) -> Callable[[Installation], RunSvc]:
    """Return a function that points `svc` at an installation with a running daemon."""

    def point(installation: Installation) -> RunSvc:
        for name, value in installation.environ.items():
            if name.startswith("SVC_"):
                monkeypatch.setenv(name, value)
        return svc

    return point


@pytest.fixture
def here(at: Callable[[Installation], RunSvc], shared_installation: Installation) -> RunSvc:
    """Return a function that runs `svc` against the installation that the tests of a file share."""
    return at(shared_installation)


@pytest.fixture(scope="module")
def open_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose daemon may fetch from this machine, again after a second at the least."""
    allowed = {"SVC_FETCH_ALLOW": "127.0.0.0/8", "SVC_LIMIT_REFRESH_SECONDS": "1"}
    made = Installation(tmp_path_factory.mktemp("open"), **allowed, **UNLIMITED)
    made.start()
    yield made
    made.clear()


@pytest.fixture
def bucket(request: pytest.FixtureRequest) -> str:
    """A bucket name that is unique to the test."""
    return str(request.node.name).removeprefix("test_").replace("_", "-")[:60].rstrip("-")


@pytest.fixture
def odd() -> Iterator[OddServer]:
    """A server with scripted answers, on a free port."""
    with serving() as served:
        yield served


@pytest.fixture
def files(svc: RunSvc, tmp_path: Path, odd: OddServer) -> DataFiles:
    """An installation whose daemon, which has ended, was announced at the address of the odd server."""
    made = DataFiles(tmp_path / "data")
    made.root.mkdir()
    made.admin_key.write_text("sk-admin")
    made.secret.write_text(SECRET.hex())
    announce(made, odd, NO_PID)
    odd.answers["GET /v1/buckets"] = NO_BUCKETS
    return made


@pytest.fixture
def at_odd(svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch) -> RunSvc:
    """Return a function that runs `svc … --json` with a key against the odd server, which poses as a daemon."""
    odd.answer_health()
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    return lambda *words, **options: svc(*words, "--base-url", odd.url, "--json", **options)
