"""Files that the user names: read up to a size, and written in the folder that was checked."""

import os
import threading
from pathlib import Path

import pytest

from svc_cli.errors import UsageError
from svc_cli.given_files import read_given
from svc_cli.transfer.downloads import replacing
from tests.cli.terminals import RunSvc


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "folder", "large"])
def test_endless_or_large_file_is_refused_at_once(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "large").open("wb") as sparse:
        sparse.truncate(2**40)
    link = tmp_path / "answer.json"
    link.symlink_to(tmp_path / target)
    with pytest.raises(OSError, match=r"regular|more than|directory"):
        read_given(link, 1000)


def test_stream_of_the_shell_is_read() -> None:
    read, write = os.pipe()
    os.write(write, b"sk-key")
    os.close(write)
    try:
        assert read_given(Path(f"/dev/fd/{read}")) == b"sk-key"
    finally:
        os.close(read)


@pytest.mark.parametrize("words", ["search moss", "sync . -b docs", "upload /etc/hostname -b docs", "config path"])
def test_command_says_that_the_current_folder_is_gone(
    svc: RunSvc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    ended = svc(*words.split(), "--json")
    assert ended.failure == (5, "svc_path_not_found")
    assert "The current folder is gone" in ended.json["error"]["message"]


@pytest.mark.parametrize("words", ["cite verify x", "webhook verify x --secret-file x", "eval x"])
def test_command_refuses_a_pipe_that_nobody_writes(svc: RunSvc, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    os.mkfifo("x")
    if words == "status":
        monkeypatch.setenv("SVC_API_KEY_FILE", "x")
    refused = svc(*words.split(), "--json")
    assert refused.exit == 2
    assert "it is not a regular file" in refused.stderr


@pytest.mark.rule("trust.link")
def test_output_stays_in_its_repository_while_its_folder_is_swapped_for_a_link(tmp_path: Path) -> None:
    outside, folder = tmp_path / "private", tmp_path / "clone" / "out"
    outside.mkdir()
    folder.mkdir(parents=True)
    (tmp_path / "clone" / ".git").mkdir()
    stopped, written, refused = threading.Event(), 0, 0

    def swap() -> None:
        while not stopped.is_set():
            folder.rename(tmp_path / "aside")
            folder.symlink_to(outside)
            folder.unlink()
            (tmp_path / "aside").rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        while written < 50 or refused < 50:
            try:
                with replacing(str(folder / "report.xml")) as file:
                    file.write(b"report")
                written += 1
            except (UsageError, OSError):
                refused += 1
    finally:
        stopped.set()
        swapper.join()
    assert list(outside.iterdir()) == []


def test_planted_draft_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / ".a.xml.part").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="is in use, or is not ours"), replacing(str(tmp_path / "a.xml")):
        pytest.fail("the draft was opened")
