"""The stored bytes of a source, back on this machine."""

import os
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.forks import Fork
from tests.acceptance.installations import Installation
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer
from tests.samples import make_pdf

SOURCE_ID = "src_01m81nywyax2k70ggze3mxk36g"


GET = ("source", "get", "plan.pdf", "-b", "plans")


@pytest.fixture
def plan(here: RunSvc) -> bytes:
    """The bytes of `plan.pdf` in the bucket `plans`."""
    content = make_pdf(["The umber plan starts in May."])
    Path("plan.pdf").write_bytes(content)
    assert here("upload", "plan.pdf", "-b", "plans", "--replace").exit == 0
    Path("plan.pdf").unlink()
    return content


def test_a_pipe_gets_the_bytes_as_they_were(plan: bytes, shared_installation: Installation) -> None:
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    for output in ((), ("-o", "-")):
        words = ("svc_cli", *GET, *output)
        with Fork(words, env=shared_installation.environ, cwd=shared_installation.root, **streams) as process:
            assert (process.communicate(timeout=60)[0], process.returncode) == (plan, 0)


def test_a_file_is_written_whole_and_takes_the_place_of_another(svc: RunSvc, plan: bytes) -> None:
    Path("old.pdf").write_bytes(b"old")
    got = svc(*GET, "-o", "old.pdf", "--json")
    assert (got.exit, got.json["path"], got.json["sha256"]) == (0, "old.pdf", sha256(plan).hexdigest())
    assert Path("old.pdf").read_bytes() == plan
    assert [path.name for path in Path().iterdir()] == ["old.pdf"]


def test_where_bytes_can_not_go_is_a_usage_error(svc: RunSvc, plan: bytes) -> None:
    Path("folder").mkdir()
    for words in (("--json",), ("-o", "-", "--json"), ("-o", "folder"), ("-o", "nowhere/plan.pdf")):
        refused = svc(*GET, *words)
        assert (refused.exit, [path.name for path in Path().rglob("*")]) == (2, ["folder"])


def test_other_bytes_than_those_that_were_uploaded_leave_no_file(at_odd: RunSvc, odd: OddServer) -> None:
    source = {"id": SOURCE_ID, "title": "a.txt", "sha256": sha256(b"whole").hexdigest()}
    odd.answers[f"GET /v1/sources/{SOURCE_ID}"] = (200, source, {})
    odd.answers[f"GET /v1/sources/{SOURCE_ID}/content"] = (200, {"not": "whole"}, {})
    Path("kept.txt").write_text("kept")
    ended = at_odd("source", "get", SOURCE_ID, "-o", "kept.txt")
    assert (ended.exit, "SHA-256" in ended.stderr) == (7, True)
    assert Path("kept.txt").read_text() == "kept"
    assert [path.name for path in Path().iterdir()] == ["kept.txt"]


def test_a_link_stays_and_its_target_gets_the_bytes_with_the_mode_it_had(svc: RunSvc, plan: bytes) -> None:
    Path("kept").mkdir()
    target = Path("kept", "plan.pdf")
    target.write_bytes(b"old")
    target.chmod(0o600)
    Path("link.pdf").symlink_to(target)
    assert svc(*GET, "-o", "link.pdf").exit == 0
    found = (Path("link.pdf").readlink(), target.read_bytes(), target.stat().st_mode & 0o777)
    assert found == (target, plan, 0o600)


def test_a_pipe_is_written_to_and_no_file_takes_its_place(svc: RunSvc, plan: bytes) -> None:
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    assert svc(*GET, "-o", "pipe").exit == 0
    assert reader.communicate(timeout=60)[0] == plan
    assert Path("pipe").is_fifo()
