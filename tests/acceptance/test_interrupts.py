"""Ctrl-C at any moment of an upload or a sync: it ends in time, says how to go on, and the next run completes."""

import random
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources
from tests.acceptance.holding_proxies import holding
from tests.acceptance.installations import Finished, Installation, wait_until

FILES = 12
#: Requests under way have a second to end; the rest is for a busy machine.
IN_TIME_S = 15
HINT = "run the same command again"


def _fill(folder: Path) -> None:
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:02}.md").write_text(f"Words of file {number}. " * (number * 40 + 1))


def _interrupted_at(installation: Installation, step: int, *words: str) -> Finished:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.acceptance.interrupting", str(step), *words],
        env=installation.environ,
        cwd=installation.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return _end_of(process, f"step {step}")


def _end_of(process: "subprocess.Popen[str]", when: str) -> Finished:
    try:
        out, err = process.communicate(timeout=IN_TIME_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"interrupted at {when}, it did not end within {IN_TIME_S} s") from None
    return Finished(process.returncode, out, err)


def _expect_complete(installation: Installation, bucket: str, words: tuple[str, ...]) -> None:
    """The same command brings all files, each once."""
    again = installation.svc(*words)
    assert again.exit == 0, again.stdout + again.stderr
    with installation.client() as client:
        titles = sorted(source["title"].removeprefix("docs/") for source in list_sources(client, bucket))
    assert titles == sorted(path.name for path in (installation.root / "docs").iterdir())


@pytest.mark.parametrize("words", [("upload", "docs", "--mode", "one"), ("upload", "docs"), ("sync", "docs")])
def test_ctrl_c_at_any_step_ends_in_time_and_doubles_nothing(
    installation: Installation, large: bool, words: tuple[str, ...]
) -> None:
    _fill(installation.root / "docs")
    whole = _interrupted_at(installation, 0, *words, "-b", "whole", "--json")
    assert whole.exit == 0, whole.stderr
    steps = int(re.findall(r"^(\d+) steps$", whole.stderr, re.MULTILINE)[-1])
    interrupted = 0
    for turn, step in enumerate(sorted(random.Random(12).sample(range(4, steps), 200 if large else 8))):
        asked = (*words, "-b", f"turn-{turn}", "--json")
        first = _interrupted_at(installation, step, *asked)
        assert first.exit in {0, 130}, (step, first.stderr)
        assert "Traceback" not in first.stderr, (step, first.stderr)
        if first.exit == 130:
            interrupted += 1
            # It may have been at its end already.
            assert HINT in first.stderr or first.json["exit_code"] == 0, (step, first.stderr)
            assert first.json.get("error", {}).get("code", "svc_interrupted") == "svc_interrupted", step
        _expect_complete(installation, f"turn-{turn}", asked)
    assert interrupted >= 5
    installation.hold_to_every_promise()


@pytest.mark.parametrize("words", [("upload", "docs", "--mode", "one"), ("upload", "docs"), ("sync", "docs")])
def test_ctrl_c_is_answered_while_the_service_is_not(
    installation: Installation, large: bool, words: tuple[str, ...]
) -> None:
    """The line is held after so many bytes: no request that is under way gets an answer any more."""
    _fill(installation.root / "docs")
    installation.environ["SVC_API_KEY"] = installation.key
    port = int(installation.base_url.rpartition(":")[2])
    for turn in range(30 if large else 4):
        asked = (*words, "-b", f"held-{turn}", "--json")
        with holding(port, 900 + turn * (1500 if large else 11_000)) as proxy:
            first = installation.spawn_svc(*asked, "--base-url", proxy.url)
            assert proxy.holds.wait(60)
            first.send_signal(signal.SIGINT)
            ended = _end_of(first, f"turn {turn}")
        assert (ended.exit, HINT in ended.stderr) == (130, True), (turn, ended.stderr)
        _expect_complete(installation, f"held-{turn}", asked)


def test_ctrl_c_at_any_time_ends_an_upload(installation: Installation, large: bool) -> None:
    _fill(installation.root / "docs")
    moments = random.Random(10)
    for turn in range(60 if large else 6):
        asked = ("upload", "docs", "-b", f"timed-{turn}", "--json")
        begun = partial(_has_more_than, installation.files.log, installation.files.log.stat().st_size)
        first = installation.spawn_svc(*asked)
        wait_until(begun, "its first request", every_s=0.001)
        time.sleep(moments.uniform(0, 0.6))  # the moment is what is tested
        first.send_signal(signal.SIGINT)
        ended = _end_of(first, f"turn {turn}")
        assert ended.exit in {0, 130}, ended.stderr
        assert ended.exit == 0 or HINT in ended.stderr
        _expect_complete(installation, f"timed-{turn}", asked)


def _has_more_than(log: Path, size_bytes: int) -> bool:
    return log.stat().st_size > size_bytes


def test_a_second_ctrl_c_ends_at_once(installation: Installation) -> None:
    _fill(installation.root / "docs")
    installation.environ["SVC_API_KEY"] = installation.key
    port = int(installation.base_url.rpartition(":")[2])
    with holding(port, 20_000) as proxy:
        running = installation.spawn_svc("upload", "docs", "-b", "twice", "--base-url", proxy.url)
        assert proxy.holds.wait(60)

        def pressed_again() -> bool:
            running.send_signal(signal.SIGINT)
            return running.poll() is not None

        wait_until(pressed_again, "its end", every_s=0.05)
        ended = _end_of(running, "two interrupts")
    # One that waits for the requests under way ends with a hint.
    assert (ended.exit, ended.stdout, HINT in ended.stderr) == (130, "", False)
