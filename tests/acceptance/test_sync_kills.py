"""`svc sync` completes when it is run again after it or the daemon was killed, without losses or duplicates."""

import random
import subprocess
import time
import zipfile
from collections.abc import Collection
from pathlib import Path

from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.proxies import held
from tests.acceptance.sync_folders import BUCKET, assert_equal, counts, fill, list_held, sha256_of, sync, write
from tests.conftest import UNLIMITED, MakeInstallation
from tests.samples import make_docx, make_killing_pdf

SIZE = 3000
MB = 1024**2


def _total(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _acknowledged(installation: Installation, hashes: Collection[str] | None = None) -> int:
    """Return how many bytes the daemon has acknowledged, in sessions and in sources (with `hashes`, only these)."""
    sources = [source for source in list_held(installation) if hashes is None or source["sha256"] in hashes]
    return sum(installation.part_sizes().values()) + sum(int(source["size_bytes"]) for source in sources)


def _kill_after(installation: Installation, seconds: float) -> bool:
    """Start a sync, kill it after these seconds, and return whether it was still running."""
    with installation.spawn_svc("sync", "docs", "-b", BUCKET, "--json") as running:
        try:
            running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            running.kill()
    return running.returncode < 0


def test_sync_killed_at_random_moments_sends_no_stored_file_again_and_completes(
    installation: Installation, large: bool
) -> None:
    rounds, kills, count = (25, 4, 2000) if large else (2, 2, 80)
    docs = installation.root / "docs"
    moments = random.Random(4)
    fill(docs, count, SIZE)
    began_s = time.monotonic()
    assert sync(installation, "--wait", "accepted").exit == 0
    whole_s = time.monotonic() - began_s
    for number in range(rounds):
        # Change every file, so that the next run has to send all of them.
        for path in docs.rglob("*.md"):
            path.write_text(f"Round {number}. {path.read_text()[-SIZE:]}")
        # Each run continues where the last one was killed.
        killed = [_kill_after(installation, moments.uniform(0.1, whole_s)) for _ in range(kills)]
        stored = _acknowledged(installation, {sha256_of(path) for path in docs.rglob("*.md")})
        finished = sync(installation)
        assert finished.exit == 0, (number, killed, finished.json["error"])
        assert finished.json["bytes_sent"] <= _total(docs) - stored
        assert_equal(installation, docs)
    installation.assert_intact()


def test_sync_killed_within_a_large_file_resumes_without_sending_acknowledged_bytes_again(
    installation: Installation,
) -> None:
    docs = fill(installation.root / "docs", 20, SIZE)
    # Too large for a batch, and quick to index.
    with zipfile.ZipFile(write(docs, "large.docx", make_docx({"Large": "Large words."})), "a") as archive:
        archive.writestr("word/media/image1.png", random.Random(1).randbytes(9 * MB))
    with held(installation, _total(docs) // 2, "sync", "docs", "-b", BUCKET):
        pass  # killed after about this many bytes were sent
    wait_until(lambda: _acknowledged(installation) > _total(docs) // 3, "the bytes have arrived")
    stored = _acknowledged(installation)
    last = sync(installation)
    assert last.exit == 0
    # At most one block that was in transit when the proxy stopped may be missing in `stored`.
    assert last.json["bytes_sent"] <= _total(docs) - stored + MB
    assert last.json["counts"]["created"] + last.json["counts"]["unchanged"] == 21
    assert_equal(installation, docs)
    again = sync(installation)
    assert (counts(again), again.json["bytes_sent"]) == ({"unchanged": 21}, 0)
    installation.assert_intact()


def test_killed_sync_keeps_sent_bytes_while_the_folder_is_missing_and_then_completes(
    installation: Installation,
) -> None:
    docs = fill(installation.root / "docs", 100, SIZE)
    with held(installation, 150_000, "sync", "docs", "-b", BUCKET):
        pass
    docs.rename(installation.root / "away")
    wait_until(lambda: _acknowledged(installation) > 50_000, "the sent bytes have arrived")
    stored = _acknowledged(installation)
    assert sync(installation).exit in {5, 11}
    assert _acknowledged(installation) >= stored
    (installation.root / "away").rename(docs)
    files = sorted(docs.rglob("*.md"))
    for path in files[:20]:
        path.write_text(f"Other words of {path.name}.")
    for path in files[-5:]:
        path.unlink()
    files[50].rename(docs / "moved.md")
    finished = sync(installation, "--prune", "detach", "--name", "docs")
    assert finished.exit == 0, finished.json["error"]
    assert_equal(installation, docs)
    installation.assert_intact()


def test_sync_completes_when_run_again_after_the_daemon_was_killed(installation: Installation) -> None:
    docs = fill(installation.root / "docs", 120, SIZE)
    with installation.spawn_svc("sync", "docs", "-b", BUCKET, "--json", "--no-autostart") as first:
        wait_until(lambda: installation.part_sizes() or installation.blob_sizes(), "the first bytes")
        installation.kill()
        first.communicate(timeout=120)
    assert first.returncode in {7, 12, 3}
    installation.start()
    assert sync(installation).exit == 0
    assert_equal(installation, docs)
    installation.assert_intact()


def test_file_whose_parser_dies_is_reported_by_each_sync_and_sent_only_once(
    make_installation: MakeInstallation, large: bool
) -> None:
    # Less memory and fewer attempts than the default make it fail sooner.
    limits = {"SVC_LIMIT_EXTRACT_MEMORY_BYTES": str(256 * MB), "SVC_LIMIT_TASK_ATTEMPTS": "2"}
    installation = make_installation(**UNLIMITED, **limits).start()
    docs = installation.root / "docs"
    count, rounds = (999, 20) if large else (20, 2)
    fill(docs, count)
    (docs / "poison.pdf").write_bytes(make_killing_pdf(300 * MB))
    seen: set[tuple[str, ...]] = set()
    for _ in range(rounds):
        finished = sync(installation)
        assert finished.exit == 3
        (failed,) = [item for item in finished.json["items"] if item["error"]]
        assert (failed["path"], failed["error"]["code"]) == ("poison.pdf", "max_attempts_exhausted")
        # Only the first run sends bytes; later ones retry the stored file.
        assert (finished.json["bytes_sent"] > 0) == (not seen)
        seen.add(tuple(sorted(source["id"] for source in list_held(installation))))
    assert [len(ids) for ids in seen] == [count + 1], "a sync has changed the set of sources"
    assert "The parser died" in failed["error"]["message"]
