"""`svc sync` or the daemon killed, and the same command again: nothing twice, nothing lost, no byte sent again."""

import random
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.acceptance.holding_proxies import holding
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sync_folders import BUCKET, assert_equal, counts, fill, held, sha256_of, sync, write
from tests.conftest import UNLIMITED, MakeInstallation
from tests.samples import make_killing_pdf

SIZE = 3000
MB = 1024**2


def _total(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _acknowledged(installation: Installation, hashes: Collection[str] | None = None) -> int:
    """Bytes that are safe at the daemon: parts on their way, and sources, with `hashes` only of these files."""
    sources = [source for source in held(installation) if hashes is None or source["sha256"] in hashes]
    parts = [part.stat().st_size for part in installation.files.parts.iterdir()]
    return sum(parts) + sum(int(source["size_bytes"]) for source in sources)


def _kill_after(installation: Installation, seconds: float) -> bool:
    """Start a sync and kill it so much later; whether it was still running."""
    running = installation.spawn_svc("sync", "docs", "-b", BUCKET, "--json")
    try:
        running.wait(seconds)
    except subprocess.TimeoutExpired:
        running.kill()
    running.communicate()
    return running.returncode < 0


def test_kills_at_random_points_double_nothing_and_lose_nothing(installation: Installation, large: bool) -> None:
    rounds, kills, count = (25, 4, 2000) if large else (2, 2, 200)
    docs = installation.root / "docs"
    moments = random.Random(4)
    fill(docs, count, SIZE)
    began_s = time.monotonic()
    assert sync(installation, "--wait", "accepted").exit == 0
    whole_s = time.monotonic() - began_s
    for number in range(rounds):
        # New bytes in every file: the next run has all of them to send again.
        for path in docs.rglob("*.md"):
            path.write_text(f"Round {number}. {path.read_text()[-SIZE:]}")
        # Each run goes on where the one before was killed.
        killed = [_kill_after(installation, moments.uniform(0.2, whole_s)) for _ in range(kills)]
        stored = _acknowledged(installation, {sha256_of(path) for path in docs.rglob("*.md")})
        finished = sync(installation)
        assert finished.exit == 0, (number, killed, finished.json["error"])
        assert finished.json["bytes_sent"] <= _total(docs) - stored
        assert_equal(installation, docs)
    installation.hold_to_every_promise()


def _kill_a_sync(installation: Installation, sent_bytes: int) -> None:
    """A sync of `docs` that is killed when about so many bytes have gone out."""
    port = int(installation.base_url.rpartition(":")[2])
    installation.environ["SVC_API_KEY"] = installation.key
    with holding(port, sent_bytes) as proxy:
        first = installation.spawn_svc("sync", "docs", "-b", BUCKET, "--json", "--base-url", proxy.url)
        assert proxy.holds.wait(60), "the proxy holds the sync"
        first.kill()
        first.communicate()


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_a_killed_run_goes_on_with_the_byte_where_it_was(installation: Installation, share: float) -> None:
    docs = installation.root / "docs"
    fill(docs, 250, SIZE)
    write(docs, "large.md", "Large words. " * 800_000)
    _kill_a_sync(installation, int(_total(docs) * share))
    stored = wait_until(lambda: _acknowledged(installation), "what has arrived")
    second = sync(installation)
    assert second.exit == 0
    # A block that was on its way when the proxy stopped may be counted a moment too late; nothing else is.
    assert second.json["bytes_sent"] <= _total(docs) - stored + 1024 * 1024 * (share > 0.5)
    assert second.json["counts"]["created"] + second.json["counts"]["unchanged"] == 251
    assert_equal(installation, docs)
    third = sync(installation)
    assert (counts(third), third.json["bytes_sent"]) == ({"unchanged": 251}, 0)
    installation.hold_to_every_promise()


def test_a_killed_batch_of_changed_and_deleted_files_ends_as_the_folder_is(installation: Installation) -> None:
    docs = installation.root / "docs"
    fill(docs, 100, SIZE)
    _kill_a_sync(installation, 150_000)
    for path in sorted(docs.rglob("*.md"))[:20]:
        path.write_text(f"Other words of {path.name}.")
    for path in sorted(docs.rglob("*.md"))[-5:]:
        path.unlink()
    (docs / "000" / "50.md").rename(docs / "moved.md")
    finished = sync(installation, "--prune", "detach", "--name", "docs")
    assert finished.exit == 0, finished.json["error"]
    assert_equal(installation, docs)
    installation.hold_to_every_promise()


def test_a_killed_run_whose_folder_is_away_keeps_what_has_arrived(installation: Installation) -> None:
    docs = installation.root / "docs"
    fill(docs, 100, SIZE)
    _kill_a_sync(installation, 150_000)
    docs.rename(installation.root / "away")
    stored = _acknowledged(installation)
    assert stored > 50_000
    assert sync(installation).exit in {5, 11}
    (installation.root / "away").rename(docs)
    finished = sync(installation)
    assert finished.exit == 0
    assert finished.json["bytes_sent"] <= _total(docs) - stored
    assert_equal(installation, docs)


def test_a_daemon_killed_in_the_middle_loses_nothing(installation: Installation) -> None:
    docs = installation.root / "docs"
    fill(docs, 300, SIZE)
    first = installation.spawn_svc("sync", "docs", "-b", BUCKET, "--json", "--no-autostart")
    wait_until(lambda: any(installation.files.parts.iterdir()) or _has_sources(installation), "the first bytes")
    installation.kill()
    first.communicate(timeout=120)
    assert first.returncode in {7, 12, 3}
    installation.start()
    assert sync(installation).exit == 0
    assert_equal(installation, docs)
    installation.hold_to_every_promise()


def _has_sources(installation: Installation) -> bool:
    buckets = installation.svc("bucket", "ls", "--json").json["buckets"]
    return bool(buckets and held(installation))


def test_a_file_whose_parser_dies_is_the_same_one_each_time(make_installation: MakeInstallation, large: bool) -> None:
    # Less memory than the default only lets the parser die sooner.
    installation = make_installation(**UNLIMITED, SVC_LIMIT_EXTRACT_MEMORY_BYTES=str(256 * MB))
    installation.start()
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
        # Tried again from the stored bytes, never sent again.
        assert (finished.json["bytes_sent"] > 0) == (not seen)
        seen.add(tuple(sorted(source["id"] for source in held(installation))))
    assert {len(ids) for ids in seen} == {count + 1}
    assert len(seen) == 1, "the same sources each time"
    assert "The parser died" in failed["error"]["message"]
