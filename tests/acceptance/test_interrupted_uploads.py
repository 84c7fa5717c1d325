"""`svc upload` or the daemon killed in the middle, and the same command again: it goes on, nothing is there twice."""

import hashlib
import random
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.acceptance.calls import list_sources
from tests.acceptance.holding_proxies import holding
from tests.acceptance.installations import Finished, Installation, wait_until

BUCKET = "inbox"
SIZE = 20_000_000


def _port(installation: Installation) -> int:
    return urlsplit(installation.base_url).port or 0


def _make_files(folder: Path, count: int, size_bytes: int) -> None:
    folder.mkdir(parents=True)
    letters = random.Random(count)
    for number in range(count):
        words = "".join(letters.choices("abcdefghij     ", k=size_bytes))
        (folder / f"{number:03}.md").write_text(f"# Note {number}\n\n{words}", encoding="utf-8")


def _upload(installation: Installation, *words: str) -> Finished:
    return installation.svc("upload", *words, "-b", BUCKET, "--json")


def _kill_in_the_middle(installation: Installation, budget_bytes: int, *words: str) -> None:
    """Run the upload through a proxy that lets so many bytes pass, and kill it there."""
    with holding(_port(installation), budget_bytes) as proxy, _spawn(installation, proxy.url, *words) as process:
        assert proxy.holds.wait(60), "the proxy holds the upload"
        process.kill()


def _spawn(installation: Installation, base_url: str, *words: str) -> "subprocess.Popen[str]":
    """Start an upload at another address, where the key that is stored for this one does not count."""
    installation.environ["SVC_API_KEY"] = installation.key
    return installation.spawn_svc("upload", *words, "-b", BUCKET, "--json", "--base-url", base_url)


def _received(installation: Installation) -> int:
    return sum(part.stat().st_size for part in installation.files.parts.iterdir())


def _held(installation: Installation) -> list[dict[str, Any]]:
    with installation.client() as client:
        return list_sources(client, BUCKET)


def test_a_killed_upload_of_a_large_file_goes_on_where_it_stopped(installation: Installation) -> None:
    data = random.Random(7).randbytes(SIZE)
    (installation.root / "large.bin").write_bytes(data)
    _kill_in_the_middle(installation, SIZE // 2, "large.bin")
    wait_until(lambda: _received(installation) > SIZE // 3, "the first half")
    second = _upload(installation, "large.bin")
    # A file of random bytes can't be read; it is stored all the same.
    assert second.json["items"][0]["error"]["code"] == "unsupported_format"
    # All that the proxy let pass is there; what it held is not.
    assert SIZE // 2 <= second.json["bytes_sent"] < SIZE * 0.6
    (source,) = _held(installation)
    assert source["sha256"] == hashlib.sha256(data).hexdigest()
    installation.hold_to_every_promise()


def test_a_killed_batch_goes_on_with_the_same_sessions(installation: Installation) -> None:
    _make_files(installation.root / "docs", 30, 50_000)
    _kill_in_the_middle(installation, 800_000, "docs")
    stored = wait_until(lambda: _received(installation), "the first files")
    assert stored > 300_000
    sessions = {part.name for part in installation.files.parts.iterdir()}
    second = _upload(installation, "docs")
    assert (second.exit, second.json["counts"]["created"], second.json["counts"]["ready"]) == (0, 30, 30)
    total = sum(path.stat().st_size for path in (installation.root / "docs").iterdir())
    assert second.json["bytes_sent"] <= total - stored + 50_100
    (batch_id,) = second.json["batch_ids"]
    shown = installation.svc("batch", "show", batch_id, "--items", "--json").json
    assert sessions <= {item["session_id"] for item in shown["items"]}
    assert len(_held(installation)) == 30
    third = _upload(installation, "docs")
    assert (third.json["bytes_sent"], third.json["counts"]["unchanged"]) == (0, 30)
    installation.hold_to_every_promise()


@pytest.mark.parametrize("budget_bytes", [3_000, 60_000, 500_000])
def test_a_daemon_killed_in_the_middle_of_a_batch_loses_nothing(installation: Installation, budget_bytes: int) -> None:
    _make_files(installation.root / "docs", 30, 20_000)
    with holding(_port(installation), budget_bytes) as proxy:
        first = _spawn(installation, proxy.url, "docs")
        assert proxy.holds.wait(60), "the proxy holds the upload"
        installation.kill()
        out, _ = first.communicate(timeout=120)
    assert first.returncode in {3, 7}, out
    installation.start()
    second = _upload(installation, "docs")
    assert (second.exit, second.json["counts"]["ready"]) == (0, 30)
    assert len(_held(installation)) == 30
    installation.hold_to_every_promise()


def test_removed_sources_of_a_batch_come_back(installation: Installation) -> None:
    _make_files(installation.root / "docs", 5, 100)
    first = _upload(installation, "docs")
    gone = [item["source_id"] for item in first.json["items"][:3]]
    assert installation.svc("source", "rm", "--force", *gone).exit == 0
    # The whole folder would be the same batch; what is left of it is another one.
    second = _upload(installation, "docs")
    assert (second.exit, second.json["counts"]["created"], second.json["counts"]["unchanged"]) == (0, 3, 2)
    assert installation.svc("source", "rm", "--force", *(source["id"] for source in _held(installation))).exit == 0
    for _ in range(2):
        again = _upload(installation, "docs")
        assert (again.exit, again.json["counts"]["created"], again.json["counts"]["ready"]) == (0, 5, 5)
        ids = [source["id"] for source in _held(installation)]
        assert len(ids) == 5
        assert installation.svc("source", "rm", "--force", *ids).exit == 0


def test_a_poisoned_file_among_many_is_named_and_the_others_are_ready(installation: Installation) -> None:
    _make_files(installation.root / "docs", 120, 100)
    (installation.root / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing that a PDF has")
    for _ in range(2):
        finished = _upload(installation, "docs")
        assert (finished.exit, finished.json["counts"]["ready"]) == (3, 120)
        assert [item["path"] for item in finished.json["items"] if item["error"]] == ["docs/broken.pdf"]
    assert len(_held(installation)) == 121


def test_a_file_that_a_batch_rejects_is_recorded_and_the_others_go_up(installation: Installation) -> None:
    _make_files(installation.root / "docs", 3, 100)
    far = Path("docs", *["long" * 40] * 8, "far.md")
    (installation.root / far).parent.mkdir(parents=True)
    (installation.root / far).write_text("Words in a place with too long a name.")
    finished = _upload(installation, "docs", str(far))
    assert (finished.exit, finished.json["counts"]["ready"], finished.json["counts"]["failed"]) == (3, 3, 1)
    assert finished.json["error"]["code"] == "invalid_request"
    assert len(_held(installation)) == 3
    again = _upload(installation, "docs", str(far))
    assert (again.exit, again.json["counts"]["unchanged"], again.json["bytes_sent"]) == (3, 3, 0)


def test_a_batch_of_files_that_are_all_refused_says_why_for_each(installation: Installation) -> None:
    _make_files(installation.root / "docs", 4, 100)
    finished = _upload(installation, "docs", *(word for number in range(21) for word in ("--tag", f"t{number}")))
    assert finished.exit == 3
    assert {item["error"]["code"] for item in finished.json["items"]} == {"too_many_tags"}
    assert _held(installation) == []


@pytest.mark.parametrize("mode", ["one", "session", "batch"])
def test_each_mode_brings_the_same_sources(installation: Installation, mode: str) -> None:
    _make_files(installation.root / "docs", 3, 3000)
    first, second = _upload(installation, "docs", "--mode", mode), _upload(installation, "docs")
    assert (first.exit, first.json["counts"]["ready"], len(first.json["batch_ids"])) == (0, 3, mode == "batch")
    assert (second.json["counts"]["unchanged"], second.json["bytes_sent"]) == (3, 0)
    ids = [source["id"] for source in _held(installation)]
    assert installation.svc("source", "rm", "--force", *ids).exit == 0
    third = _upload(installation, "docs", "--mode", mode)
    assert (third.exit, third.json["counts"]["ready"]) == (0, 3)
    for name in ("000", "001", "002"):
        (installation.root / "docs" / f"{name}.md").write_text(f"Other words of {name}.")
    swapped = _upload(installation, "docs", "--mode", mode, "--replace")
    assert (swapped.exit, swapped.json["counts"]["replaced"], len(_held(installation))) == (0, 3, 3)


def test_the_shipped_limits_refuse_nothing(installation: Installation, large: bool) -> None:
    installation.stop()
    for name in ("SVC_LIMIT_CREATES_PER_SECOND", "SVC_LIMIT_BYTES_PER_MINUTE"):
        installation.environ.pop(name)
    installation.start()
    _make_files(installation.root / "docs", 2000 if large else 12, 100)
    mode = "auto" if large else "one"
    finished = _upload(installation, "docs", "--mode", mode, "-j", "8")
    assert finished.exit == 0
    log = installation.files.log.read_text(encoding="utf-8")
    assert '"status":429' not in log
    assert log.count('"status":201') >= 12


def test_with_no_terminal_an_upload_writes_few_plain_lines(installation: Installation) -> None:
    _make_files(installation.root / "docs", 150, 50)
    finished = installation.svc("upload", "docs", "-b", BUCKET)
    assert finished.exit == 0
    assert "\x1b" not in finished.stdout + finished.stderr
    assert len(finished.stderr.splitlines()) <= 12
