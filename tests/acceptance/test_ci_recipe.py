"""The commands of docs/how-to/ci.md, as a build runs them."""

import re
import subprocess

from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation
from tests.acceptance.recipes import run_recipe
from tests.acceptance.sync_folders import forget, titles, write

PAGE = ROOT / "docs" / "how-to" / "ci.md"
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def build(installation: Installation, number: int) -> "subprocess.CompletedProcess[str]":
    """Run one of the blocks on a machine that has never been there before."""
    if (installation.root / "state").exists():
        forget(installation)
    return run_recipe(installation, COMMANDS[number])


def test_a_build_fails_when_a_document_is_not_ready_and_says_which(installation: Installation) -> None:
    docs = installation.root / "docs"
    write(docs, "a.md", "Words.")
    write(docs, "b.md", "More words.")
    assert build(installation, 0).returncode == 0
    write(docs, "broken.pdf", b"%PDF-1.7\nnothing that a PDF has")
    assert build(installation, 0).returncode == 3
    assert build(installation, 1).stdout.startswith("broken.pdf document_unreadable ")
    (docs / "broken.pdf").unlink()
    (docs / "b.md").unlink()
    assert build(installation, 0).returncode == 0
    assert titles(installation) == ["a.md"]


def test_what_is_on_its_way_still_and_what_ended_the_sync_are_said(installation: Installation) -> None:
    write(installation.root / "docs", "a.md", "Words.")
    told = installation.svc("sync", "docs", "-b", "handbook", "--wait", "accepted", "--json").stdout
    (installation.root / "sync.json").write_text(told)
    assert build(installation, 1).stdout == "a.md not_ready\n"
    told = installation.svc("sync", "nowhere", "-b", "handbook", "--json").stdout
    (installation.root / "sync.json").write_text(told)
    assert build(installation, 1).stdout.endswith("there is no such folder.\n")


def test_a_pull_request_is_shown_and_changes_nothing(installation: Installation) -> None:
    docs = installation.root / "docs"
    write(docs, "a.md", "Words.")
    assert build(installation, 0).returncode == 0
    write(docs, "new.md", "New words.")
    shown = build(installation, 2)
    assert (shown.returncode, "new.md" in shown.stdout) == (0, True)
    assert titles(installation) == ["a.md"]
