"""What README.md and the pages of docs/ show is what happens: their commands, run in order."""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Finished, Installation, environment
from tests.acceptance.sync_folders import forget, titles, write
from tests.rules.transcripts import fences, shown_commands

#: The first command of the README makes an environment and installs the project.
COMMAND_TIMEOUT_S = 300.0


def read_page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def run(installation: Installation, commands: str, cwd: Path | None = None) -> Finished:
    """Run them in a shell, without a keyboard."""
    return installation.run("sh", "-euc", commands, cwd=cwd or installation.root, timeout=COMMAND_TIMEOUT_S)


@pytest.fixture
def builder(installation: Installation) -> Installation:
    """An installation as a build has it: our commands are on its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{installation.environ['PATH']}"
    installation.environ |= {"PATH": path, "CI": "1"}
    return installation


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Installation]:
    """A fresh copy of the tree and nothing else."""
    fresh = Installation(tmp_path)
    # Compiled when they are imported, which most modules of the libraries never are.
    fresh.environ = environment(tmp_path, {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    for inherited in ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST"):
        fresh.environ.pop(inherited, None)
    yield fresh
    fresh.clear()


def test_the_commands_of_the_readme_do_what_it_says(reader: Installation) -> None:
    # What a clone would have: no caches, no environments, no build folders.
    left_out = (".git", ".venv", "*_cache", "__pycache__", "*.egg-info", "build", "dist", ".hypothesis")
    copy = shutil.copytree(ROOT, reader.root / "svc", ignore=shutil.ignore_patterns(*left_out))
    shown = shown_commands((copy / "README.md").read_text(encoding="utf-8"))
    assert shown
    for command in shown:
        ended = run(reader, command.line, copy)
        printed = ended.stdout + ended.stderr
        assert ended.exit == 0, f"{command.line}\n{printed}"
        assert command.promises(ended.stdout), f"{command.line}\npromises {command.output}, printed\n{printed}"


def test_the_commands_of_the_tutorial_do_what_it_says(builder: Installation) -> None:
    for fence in re.finditer(r"^```(sh|console)\n(.*?)^```$", read_page("tutorial.md"), re.DOTALL | re.MULTILINE):
        if fence[1] == "sh":  # as a whole, since it has documents in it
            ended = run(builder, fence[2])
            assert ended.exit == 0, ended.stderr
            continue
        for shown in (command for block in fences(fence[0]) for command in block.commands):
            program, *words = shlex.split(shown.line)
            assert program == "svc"
            finished = builder.svc(*words)
            printed = finished.stderr + finished.stdout
            assert shown.promises(printed), f"{shown.line}\npromises {shown.output}, printed\n{printed}"


def test_the_commands_of_the_page_on_backups_bring_a_deleted_document_back(builder: Installation) -> None:
    folder = builder.root / "backups"
    (builder.root / "note.md").write_text("# Note\n\nThe umber quay was built of grey stone.\n")
    assert builder.svc("upload", "note.md", "-b", "notes").exit == 0
    made, _, restored, *_ = re.findall(r"^```sh\n(.*?)^```$", read_page("how-to/restore.md"), re.DOTALL | re.MULTILINE)
    assert run(builder, made.replace("/mnt/backups/svc", str(folder))).exit == 0
    assert builder.svc("bucket", "rm", "notes", "--force").exit == 0
    ended = run(builder, restored.replace("/mnt/backups/svc", str(folder)))
    assert ended.exit == 0, ended.stderr
    assert "umber quay" in builder.svc("search", "quay", "-b", "notes").stdout


def build(builder: Installation, number: int) -> Finished:
    """Run a block of docs/how-to/ci.md on a machine that has never synced before."""
    if (builder.root / "state").exists():
        forget(builder)
    commands = re.findall(r"^```sh\n(.*?)^```", read_page("how-to/ci.md"), re.DOTALL | re.MULTILINE)
    return run(builder, commands[number])


def test_a_build_shows_what_a_sync_would_do_and_fails_with_each_unready_document(builder: Installation) -> None:
    docs = builder.root / "docs"
    write(docs, "a.md", "Words.")
    write(docs, "b.md", "More words.")
    assert build(builder, 0).exit == 0
    write(docs, "broken.pdf", b"%PDF-1.7\nnothing that a PDF has")
    shown = build(builder, 2)
    assert (shown.exit, "broken.pdf" in shown.stdout, titles(builder)) == (0, True, ["a.md", "b.md"])
    assert build(builder, 0).exit == 3
    assert build(builder, 1).stdout.startswith("broken.pdf document_unreadable ")
    (docs / "broken.pdf").unlink()
    (docs / "b.md").unlink()
    assert (build(builder, 0).exit, titles(builder)) == (0, ["a.md"])
    for folder, wait, reported in (
        ("docs", "accepted", "new.md not_ready"),
        ("none", "ready", "there is no such folder."),
    ):
        write(docs, "new.md", "New words.")
        synced = builder.svc("sync", folder, "-b", "handbook", "--wait", wait, "--json").stdout
        (builder.root / "sync.json").write_text(synced)
        assert build(builder, 1).stdout.endswith(f"{reported}\n")


HANDBOOK = """# Handbook

## Vacation

Full-time employees get 30 days of vacation a year.

## Garage

It opens at seven.
"""
PRICING = "# Prices\n\nThe plan costs five crowns a month, to be paid on the first day.\n"


def test_a_build_fails_when_an_expectation_is_broken(builder: Installation) -> None:
    page = read_page("how-to/eval.md")
    expectations, recipe = re.findall(r"^```(?:yaml|sh)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    write(builder.root / "docs", "handbook.md", HANDBOOK)
    write(builder.root / "docs", "pricing.md", PRICING)
    golden = write(builder.root, "golden.yaml", expectations)
    passed = run(builder, recipe)
    assert passed.exit == 0, passed.stderr
    shown = next(command for command in shown_commands(page) if command.output)
    assert shown.promises(builder.svc(*shown.line.split()[1:]).stdout)
    golden.write_text(expectations.replace("30 days", "31 days"))
    broken = run(builder, recipe)
    assert broken.exit == 3
    assert 'handbook.md > Vacation: "31 days": the text is in none of its passages' in broken.stdout
    (report,) = ElementTree.parse(builder.root / "eval.xml").getroot()
    assert (report.get("tests"), report.get("failures")) == ("2", "1")


def test_the_script_that_sends_a_pack_does_it_and_its_rest_can_be_sent(builder: Installation) -> None:
    send, resume = re.findall(r"^```sh\n(.*?)^```$", read_page("how-to/packs.md"), re.DOTALL | re.MULTILINE)
    notes = {f"{number}.md": f"# Note {number}\n\nThe quay has {number} cranes.\n" for number in range(12)}
    for name, text in notes.items():
        write(builder.root / "notes", name, text)
    builder.environ |= {"KEY": builder.key, "BASE_URL": builder.base_url}
    with builder.client() as client:
        client.put("/v1/buckets/handbook").raise_for_status()
    first = 'curl -sS -X PUT -H "Content-Range: bytes 0-99/$(wc -c < pack.bin)" --data-binary @- "$PACK_URL"'
    cut = send.replace('curl -sSf -T pack.bin "$PACK_URL"', f"head -c 100 pack.bin | {first}\n{resume}")
    assert cut != send
    for script, outcome in ((cut, "finalized"), (send, "replayed")):
        ended = run(builder, f"set -eu\n{script}")
        assert ended.exit == 0, ended.stderr
        finalized = json.loads((builder.root / "finalized.json").read_text(encoding="utf-8"))
        assert [item["client_file_id"] for item in finalized[outcome]] == sorted(f"notes/{name}" for name in notes)
