"""What a person sees on a real terminal, and what a pipe gets instead."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources
from tests.acceptance.installations import Installation, wait_until
from tests.cli.terminals import on_terminal, read_shown
from tests.conftest import MakeInstallation


def test_a_terminal_gets_a_bar_colours_and_the_next_command(shared_installation: Installation) -> None:
    (shared_installation.root / "a.md").write_text("Words about ferries.")
    code, shown = on_terminal(shared_installation, "upload", "a.md", "-b", "seen")
    assert code == 0
    assert "indexing" in shown
    assert "\x1b[32mready\x1b[0m" in shown
    assert "svc search" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")


def test_no_color_leaves_words_alone(shared_installation: Installation) -> None:
    _, shown = on_terminal(shared_installation, "bucket", "ls", NO_COLOR="1")
    assert "\x1b[" not in shown


def test_a_dumb_terminal_gets_no_escape_codes(shared_installation: Installation) -> None:
    (shared_installation.root / "b.md").write_text("Words about harbours.")
    _, shown = on_terminal(shared_installation, "upload", "b.md", "-b", "seen", TERM="dumb")
    assert "\x1b" not in shown


def test_status_watch_ends_when_everything_has_settled(shared_installation: Installation) -> None:
    (shared_installation.root / "c.md").write_text("Words about quays.")
    shared_installation.svc("upload", "c.md", "-b", "watched", "--wait", "accepted")
    code, shown = on_terminal(shared_installation, "status", "-b", "watched", "--watch")
    assert code == 0
    assert "watched" in shown


def _log_in(installation: Installation, typed: bytes) -> tuple[int, bytes]:
    """Exit code and all that was shown, with this answer to the question for the key."""
    primary, secondary = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "svc_cli", "auth", "login"],
        env=installation.environ,
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        start_new_session=True,
    )
    os.close(secondary)
    shown = b""
    while b"API key" not in shown:
        shown += read_shown(primary)
    os.write(primary, typed)
    while chunk := read_shown(primary):
        shown += chunk
    os.close(primary)
    return process.wait(60), shown


def test_a_login_that_is_asked_for_does_not_show_the_key(shared_installation: Installation) -> None:
    key = shared_installation.key.encode()
    code, shown = _log_in(shared_installation, key + b"\n")
    assert (code, key in shown) == (0, False)
    assert shared_installation.svc("auth", "logout").exit == 0


def test_ctrl_d_at_the_question_for_the_key_stores_nothing(shared_installation: Installation) -> None:
    code, shown = _log_in(shared_installation, b"\x04")
    assert (code, b"Nothing was stored." in shown, b"--debug" in shown) == (3, True, False)


def test_ctrl_c_stops_an_upload_cleanly_and_the_next_run_goes_on(make_installation: MakeInstallation) -> None:
    installation = make_installation(SVC_LIMIT_CREATES_PER_SECOND="2")
    installation.start()
    folder = installation.root / "docs"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number:02}.md").write_text(f"Words of file {number}.")
    first = installation.spawn_svc("upload", "docs", "-b", "slow", "--mode", "one", "--json")
    with installation.client() as client:
        wait_until(lambda: _count(installation) >= 3, "the first three files")
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=60)
        assert first.returncode == 130
        assert "run the same command again" in err
        assert "svc_interrupted" in out
        arrived = {source["title"] for source in list_sources(client, "slow")}
        assert len(arrived) < 12
        second = installation.svc("upload", "docs", "-b", "slow", "--mode", "one", "--json")
        assert second.exit == 0
        assert second.json["counts"]["unchanged"] >= len(arrived)
        titles = [source["title"] for source in list_sources(client, "slow")]
        assert (len(titles), len(set(titles))) == (12, 12)


def _count(installation: Installation) -> int:
    with installation.client() as client:
        answer = client.get("/v1/buckets/slow/sources", params={"status": "all"})
    return len(answer.json().get("sources", []))


@pytest.mark.parametrize("words", [("bucket", "ls"), ("search", "ferries"), ("status",)])
def test_a_pipe_gets_no_escape_codes(shared_installation: Installation, words: tuple[str, ...], tmp_path: Path) -> None:
    shared_installation.environ.pop("NO_COLOR", None)
    finished = shared_installation.svc(*words, cwd=tmp_path)
    assert finished.exit == 0
    assert "\x1b" not in finished.stdout + finished.stderr
