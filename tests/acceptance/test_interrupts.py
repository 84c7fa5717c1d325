"""Ctrl-C ends an upload or a sync in time with a hint on how to continue, and the next run completes it."""

import random
import re
import signal
import subprocess

import pytest

from tests.acceptance.calls import list_sources
from tests.acceptance.installations import PATIENCE_S, Finished, Installation, wait_until
from tests.acceptance.proxies import held

FILES = 12
HINT = "run the same command again"
COMMANDS = [("upload", "docs", "--mode", "one"), ("upload", "docs"), ("sync", "docs")]


@pytest.fixture
def filled(installation: Installation) -> Installation:
    """A running installation with a folder of files."""
    folder = installation.root / "docs"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:02}.md").write_text(f"Words of file {number}. " * (number * 40 + 1))
    return installation


def _interrupted_at(installation: Installation, step: int, *words: str) -> Finished:
    module, pipe = "tests.acceptance.interrupting", subprocess.PIPE
    process = installation.spawn(module, str(step), *words, stdout=pipe, stderr=pipe, encoding="utf-8")
    return _end_of(process, f"step {step}")


def _end_of(process: "subprocess.Popen[str]", when: str) -> Finished:
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"interrupted at {when}, it did not end") from None
    return Finished(process.returncode, out, err)


def _expect_complete(installation: Installation, bucket: str, *words: str) -> None:
    """Run the command again and assert that the bucket then has each file once."""
    again = installation.svc(*words, "-b", bucket, "--json")
    assert again.exit == 0, again.stdout + again.stderr
    with installation.client() as client:
        titles = sorted(source["title"].removeprefix("docs/") for source in list_sources(client, bucket))
    assert titles == [f"{number:02}.md" for number in range(FILES)]


@pytest.mark.parametrize("words", COMMANDS)
def test_ctrl_c_at_any_step_ends_the_command_and_the_next_run_has_no_duplicates(
    filled: Installation, large: bool, words: tuple[str, ...]
) -> None:
    whole = _interrupted_at(filled, 0, *words, "-b", "whole", "--json")
    assert whole.exit == 0, whole.stderr
    steps = int(re.findall(r"^(\d+) steps$", whole.stderr, re.MULTILINE)[-1])
    interrupted, wanted, moments = 0, 150 if large else 6, random.Random(12)
    # A faster run has fewer steps and may end before it is interrupted.
    for turn in range(10 * wanted):
        if interrupted == wanted:
            break
        step = moments.randrange(4, steps)
        first = _interrupted_at(filled, step, *words, "-b", f"turn-{turn}", "--json")
        assert first.exit in {0, 130}, (step, first.stderr)
        assert "Traceback" not in first.stderr, (step, first.stderr)
        if first.exit == 130:
            interrupted += 1
            # The command may have finished already.
            assert HINT in first.stderr or first.json["exit_code"] == 0, (step, first.stderr)
            assert first.json.get("error", {}).get("code", "svc_interrupted") == "svc_interrupted", step
        _expect_complete(filled, f"turn-{turn}", *words)
    assert interrupted == wanted
    filled.assert_intact()


def test_ctrl_c_ends_the_command_while_the_service_does_not_respond(filled: Installation, large: bool) -> None:
    """The connections stall after a number of bytes, so that requests get no response any more."""
    budgets = range(900, 46_000, 1500) if large else (900, 11_900, 33_900)
    for words in COMMANDS:
        for budget in budgets:
            bucket = f"{words[0]}-{len(words)}-{budget}"
            with held(filled, budget, *words, "-b", bucket) as first:
                first.send_signal(signal.SIGINT)
                ended = _end_of(first, f"{words} {budget}")
            assert (ended.exit, HINT in ended.stderr) == (130, True), (words, budget, ended.stderr)
            _expect_complete(filled, bucket, *words)


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGHUP))
def test_sigterm_and_sighup_end_the_command_like_ctrl_c_with_its_summary(filled: Installation, number: int) -> None:
    words = ("upload", "docs", "-b", f"ended-{number}")
    with held(filled, 20_000, *words) as running:
        for _ in range(2):  # as `timeout` does
            running.send_signal(number)
        ended = _end_of(running, f"signal {number}")
    assert (ended.exit, ended.json["exit_code"], ended.json["type"]) == (128 + number, 128 + number, "upload.summary")
    assert ended.json["error"]["code"] == "svc_interrupted"
    _expect_complete(filled, f"ended-{number}", "upload", "docs")


def test_second_ctrl_c_ends_the_command_at_once(filled: Installation) -> None:
    with held(filled, 20_000, "upload", "docs", "-b", "twice") as running:

        def pressed_again() -> bool:
            running.send_signal(signal.SIGINT)
            return running.poll() is not None

        wait_until(pressed_again, "the command's end", every_s=0.05)
        ended = _end_of(running, "two interrupts")
    # With one Ctrl-C it would wait for the pending requests and print the hint.
    assert (ended.exit, ended.stdout, HINT in ended.stderr) == (130, "", False)
