"""The commands in README.md and docs/, run in order, print what the pages show."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Finished, Installation, environment, wait_until
from tests.acceptance.sync_folders import forget, titles, write
from tests.cli.odd_servers import serving
from tests.rules.transcripts import Command, shown_commands

#: Enough for the README's first command, which creates an environment and installs the project.
COMMAND_TIMEOUT_S = 300.0


def read_page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def run(installation: Installation, commands: str, cwd: Path | None = None) -> Finished:
    """Run the commands in a non-interactive shell."""
    # Without `-u`: the `activate` script of Python 3.12.1 uses a variable that may be unset.
    return installation.run("sh", "-ec", commands, cwd=cwd or installation.root, timeout=COMMAND_TIMEOUT_S)


@pytest.fixture
def builder(installation: Installation) -> Installation:
    """An installation as in a CI build, with svc's commands on its PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{installation.environ['PATH']}"
    installation.environ |= {"PATH": path, "CI": "1"}
    return installation


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Installation]:
    """An empty folder and a clean environment, as a new reader of the docs has."""
    fresh = Installation(tmp_path)
    # Modules are compiled when they are imported, and most modules of the libraries never are.
    fresh.environ = environment(tmp_path, {"PIP_COMPILE": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    for inherited in ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST"):
        fresh.environ.pop(inherited, None)
    yield fresh
    fresh.clear()


@pytest.mark.rule("log.page")
def test_readme_tutorial_events_and_restore_pages_work_as_shown_from_the_installation_on(reader: Installation) -> None:
    # Only what a clone contains: no caches, environments or build folders.
    left_out = (".git", ".venv", "*_cache", "__pycache__", "*.egg-info", "build", "dist", ".hypothesis")
    copy = shutil.copytree(ROOT, reader.root / "svc", ignore=shutil.ignore_patterns(*left_out))
    assert_prints(reader, shown_commands((copy / "README.md").read_text(encoding="utf-8")), copy)
    reader.environ["PATH"] = f"{copy / '.venv/bin'}{os.pathsep}{reader.environ['PATH']}"
    work = reader.root / "work"
    work.mkdir()
    for fence in re.finditer(r"^```(sh|console)\n(.*?)^```$", read_page("tutorial.md"), re.DOTALL | re.MULTILINE):
        if fence[1] == "sh":  # as a whole, since it has documents in it
            assert_runs(reader, fence[2], work)
        else:
            assert_prints(reader, shown_commands(fence[0]), work, has_failures=True)
    follow_events(reader, work)
    with serving() as odd:
        odd.answers["POST /hook"] = (204, b"", {})
        receiver = sh_blocks("how-to/events.md")[-1].replace("http://localhost:8000", odd.url)
        with running(reader, receiver, work):
            wait_until(lambda: upload(reader, work) and odd.calls, "a webhook call", every_s=0.5)
    folder = str(reader.root / "backups")
    made, units, *others = (block.replace("/mnt/backups/svc", folder) for block in sh_blocks("how-to/restore.md"))
    assert_runs(reader, made + units, work)
    assert_runs(reader, "svc bucket rm handbook --force", work)
    for block in others:
        assert_runs(reader, block, work)

    def is_found() -> bool:
        # Searches are refused while the index is rebuilt.
        return "docs/reference/api.md" in run(reader, "svc search 'what a policy narrows' -b handbook", work).stdout

    wait_until(is_found, "a document of the backup")


def follow_events(reader: Installation, work: Path) -> None:
    """Run the events page's examples, and assert that its script handles each event exactly once."""
    page = read_page("how-to/events.md")
    assert_prints(reader, [command for command in shown_commands(page) if command.output], work)
    failed, script, stream, resumed, _ = sh_blocks("how-to/events.md")
    assert_runs(reader, failed, work)
    outcomes, last = work / "outcomes.ndjson", work / "last-event"
    outcomes.touch()
    for _ in range(2):
        title = upload(reader, work)
        with running(reader, script, work):
            wait_until(lambda: title in outcomes.read_text() and last.read_text(), title)  # noqa: B023
            newest = json.loads(outcomes.read_text().splitlines()[-1])["id"]
            wait_until(lambda: last.read_text().strip() == newest, "the script stores the last event id")  # noqa: B023
    ids = [json.loads(line)["id"] for line in outcomes.read_text().splitlines()]
    assert (len(set(ids)), len(ids) > 2) == (len(ids), True)
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    write(work, "example.py", example)
    write(work, "leave.md", "Leave is thirty days.")
    settings = sh_blocks("how-to/python.md")[0]
    for _ in range(2):  # the second time, the bucket has the file already
        assert assert_runs(reader, f"{settings}\npython3 example.py", work).stdout == "active leave.md\n"
    with running(reader, stream, work) as lines:
        wait_until(lambda: "event: source.ready\n" in lines, "the stream")
    with running(reader, f"{stream.splitlines()[0]}\nLAST={ids[-2]}\n{resumed}", work) as lines:
        wait_until(lambda: f'"id":"{ids[-1]}"' in "".join(lines), "the resumed stream")
    # The stream begins with the cursor that it resumes after, without its event.
    assert (lines[0].startswith("id: cur_"), f'"id":"{ids[-2]}"' in "".join(lines)) == (True, False)


def sh_blocks(page: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", read_page(page), re.DOTALL | re.MULTILINE)


def assert_prints(reader: Installation, shown: Sequence[Command], cwd: Path, *, has_failures: bool = False) -> None:
    """Run the commands and assert that they print what the page shows, and that they succeed unless `has_failures`."""
    assert shown
    for command in shown:
        ended = run(reader, command.line, cwd)
        printed = ended.stderr + ended.stdout
        assert has_failures or ended.exit == 0, f"{command.line}\n{printed}"
        assert command.promises(printed), f"{command.line}\npromises {command.output}, printed\n{printed}"


def assert_runs(reader: Installation, commands: str, cwd: Path) -> Finished:
    ended = run(reader, commands, cwd)
    assert ended.exit == 0, f"{commands}\n{ended.stdout}{ended.stderr}"
    return ended


def upload(reader: Installation, work: Path) -> str:
    """Upload another file and return its title."""
    title = f"extra-{len(list(work.glob('extra-*')))}.md"
    write(work, title, f"Words of {title}.")
    assert_runs(reader, f"svc upload {title} -b handbook", work)
    return title


@contextmanager
def running(reader: Installation, commands: str, cwd: Path) -> Iterator[list[str]]:
    """Run commands that don't end by themselves, and yield the lines that they print; kill them after the block."""
    shell = ("sh", "-euc", commands)
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(shell, env=reader.environ, cwd=cwd, start_new_session=True, **pipes) as process:
        lines, stdout = list[str](), process.stdout
        assert stdout is not None
        reading = Thread(target=lambda: lines.extend(stdout))
        reading.start()
        try:
            yield lines
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            reading.join()


def build(builder: Installation, number: int) -> Finished:
    """Run a code block of docs/how-to/ci.md without any local state of sync."""
    if (builder.root / "state").exists():
        forget(builder)
    commands = re.findall(r"^```sh\n(.*?)^```", read_page("how-to/ci.md"), re.DOTALL | re.MULTILINE)
    return run(builder, commands[number])


def test_ci_page_shows_a_dry_run_and_reports_each_document_that_is_not_ready(builder: Installation) -> None:
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


@pytest.mark.rule("trust.address")
def test_ci_page_prunes_with_svc_toml_in_a_fresh_clone(builder: Installation) -> None:
    toml, *_ = re.findall(r"^```toml\n(.*?)^```", read_page("how-to/folders.md"), re.DOTALL | re.MULTILINE)
    write(builder.root, "svc.toml", toml)
    for name in ("a.md", "b.md"):
        write(builder.root / "notes", name, f"Words of {name}.")
    assert build(builder, 3).exit == 0
    (builder.root / "notes" / "a.md").write_text("New words.")
    (builder.root / "notes" / "b.md").unlink()
    assert (build(builder, 3).exit, titles(builder, "notes")) == (0, ["a.md"])
    report = json.loads((builder.root / "sync.json").read_text())["mappings"][0]
    assert (report["counts"]["updated"], report["counts"]["detached"]) == (1, 1)
    write(builder.root, "svc.toml", f'base_url = "http://127.0.0.1:9"\n{toml}')
    assert build(builder, 3).exit == 2, "the address of the service is not covered"


HANDBOOK = """# Handbook

## Vacation

Full-time employees get 30 days of vacation a year.

## Garage

It opens at seven.
"""
PRICING = "# Prices\n\nThe plan costs five crowns a month, to be paid on the first day.\n"


def test_eval_page_recipe_fails_if_an_expectation_is_not_met(builder: Installation) -> None:
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


@pytest.mark.rule("pack.put")
def test_packs_page_script_sends_a_pack_and_resumes_a_partial_one(builder: Installation) -> None:
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
