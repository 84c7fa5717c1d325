"""The stored bytes of a source, back on this machine."""

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.acceptance.installations import Installation
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer
from tests.samples import make_pdf

SOURCE_ID = "src_01m81nywyax2k70ggze3mxk36g"


@pytest.fixture
def plan(svc: RunSvc, at: Callable[[Installation], None], shared_installation: Installation) -> bytes:
    """The bytes of `plan.pdf` in the bucket `plans`."""
    at(shared_installation)
    content = make_pdf(["The umber plan starts in May."])
    Path("plan.pdf").write_bytes(content)
    assert svc("upload", "plan.pdf", "-b", "plans", "--replace").exit == 0
    Path("plan.pdf").unlink()
    return content


@pytest.mark.parametrize("output", [(), ("-o", "-")])
def test_a_pipe_gets_the_bytes_as_they_were(
    plan: bytes, shared_installation: Installation, output: tuple[str, ...]
) -> None:
    words = [sys.executable, "-m", "svc_cli", "source", "get", "plan.pdf", "-b", "plans", *output]
    ended = subprocess.run(words, env=shared_installation.environ, capture_output=True, timeout=60, check=True)
    assert ended.stdout == plan


def test_a_file_is_written_whole_and_takes_the_place_of_another(svc: RunSvc, plan: bytes) -> None:
    Path("old.pdf").write_bytes(b"old")
    told = svc("source", "get", "plan.pdf", "-b", "plans", "-o", "old.pdf", "--json")
    assert (told.exit, told.json["path"], told.json["sha256"]) == (0, "old.pdf", sha256(plan).hexdigest())
    assert Path("old.pdf").read_bytes() == plan
    assert [path.name for path in Path().iterdir()] == ["old.pdf"]


def test_where_bytes_can_not_go_is_a_usage_error(svc: RunSvc, plan: bytes) -> None:
    Path("folder").mkdir()
    for words in (("--json",), ("-o", "-", "--json"), ("-o", "folder"), ("-o", "nowhere/plan.pdf")):
        refused = svc("source", "get", "plan.pdf", "-b", "plans", *words)
        assert (refused.exit, [path.name for path in Path().rglob("*")]) == (2, ["folder"])


def test_other_bytes_than_those_that_were_uploaded_leave_no_file(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answer_health()
    monkeypatch.setenv("SVC_API_KEY", "sk-odd")
    source = {"id": SOURCE_ID, "title": "a.txt", "sha256": sha256(b"whole").hexdigest()}
    odd.answers[f"GET /v1/sources/{SOURCE_ID}"] = (200, source, {})
    odd.answers[f"GET /v1/sources/{SOURCE_ID}/content"] = (200, {"not": "whole"}, {})
    Path("kept.txt").write_text("kept")
    ended = svc("source", "get", SOURCE_ID, "-o", "kept.txt", "--base-url", odd.url)
    assert (ended.exit, "SHA-256" in ended.stderr) == (7, True)
    assert Path("kept.txt").read_text() == "kept"
    assert [path.name for path in Path().iterdir()] == ["kept.txt"]


def test_a_link_stays_and_its_target_gets_the_bytes_with_the_mode_it_had(svc: RunSvc, plan: bytes) -> None:
    Path("kept").mkdir()
    target = Path("kept", "plan.pdf")
    target.write_bytes(b"old")
    target.chmod(0o600)
    Path("link.pdf").symlink_to(target)
    assert svc("source", "get", "plan.pdf", "-b", "plans", "-o", "link.pdf").exit == 0
    assert (Path("link.pdf").readlink(), target.read_bytes()) == (target, plan)
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_no_file_takes_its_place(svc: RunSvc, plan: bytes) -> None:
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    assert svc("source", "get", "plan.pdf", "-b", "plans", "-o", "pipe").exit == 0
    assert reader.communicate(timeout=60)[0] == plan
    assert Path("pipe").is_fifo()
