"""`svc sync` completes when it is run again after it or the daemon was killed, without losses or duplicates."""

import random
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sync_folders import BUCKET, assert_equal, fill, list_held, sha256_of, sync

SIZE = 3000


def _total(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _acknowledged(installation: Installation, hashes: Collection[str]) -> int:
    """Return how many bytes with these hashes the daemon has acknowledged, in sessions and in sources."""
    sources = [source for source in list_held(installation) if source["sha256"] in hashes]
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
