"""Create and sync folders, and compare them with their bucket."""

import fcntl
import hashlib
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from svc_daemon.api.middleware.access_logs import NO_ROUTE
from tests.acceptance.calls import list_sources, search, take_in
from tests.acceptance.installations import Finished, Installation, wait_until

BUCKET = "handbook"
#: The timeout of a sync of thousands of files on a busy machine.
TIMEOUT_S = 900.0
Json = dict[str, Any]
#: Drops the capabilities with which root reads everything, and runs `svc`.
WITHOUT_ROOTS_RIGHTS = """
import ctypes, os, sys
for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, "-m", "svc_cli", *sys.argv[1:]])
"""


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Make opening the file fail during the block, even for root, by holding a write lease on it."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # sent when another process opens the file
    descriptor = os.open(path, os.O_RDWR)
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    try:
        yield
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def fill(folder: Path, count: int, size_bytes: int = 60) -> Path:
    """Write `count` different Markdown files in subfolders of 100 files."""
    for number in range(count):
        head = f"# Note {number}\n\nThe word of this note is wren{number}.\n"
        text = head + "moss " * (max(0, size_bytes - len(head)) // 5)
        write(folder, f"{number // 100:03}/{number % 100:02}.md", text)
    return folder


def sync(installation: Installation, *words: str, folder: str = "docs", verb: str = "sync") -> Finished:
    """Run `svc sync docs -b handbook --json`, or `svc diff`."""
    return installation.svc(verb, folder, "-b", BUCKET, "--json", *words, timeout_s=TIMEOUT_S)


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def counts(finished: Finished) -> dict[str, int]:
    """Return how many files had each outcome, without the zeros."""
    return {name: number for name, number in finished.json["counts"].items() if number}


def withheld(finished: Finished) -> list[tuple[str, int | None, list[str]]]:
    """Return why sources of deleted files were kept: code, number of files, and the paths that are the cause."""
    return [(each["code"], each["files"], each["because"]) for each in finished.json["withheld"]]


def items(finished: Finished) -> dict[str, Json]:
    return {item["path"]: item for item in finished.json["items"]}


def list_held(installation: Installation, bucket: str = BUCKET) -> list[Json]:
    with installation.client() as client:
        return list_sources(client, bucket)


def titles(installation: Installation, bucket: str = BUCKET) -> list[str]:
    return sorted(source["title"] for source in list_held(installation, bucket))


def found(installation: Installation, query: str) -> list[str]:
    """Return the titles that a search of the bucket finds."""
    with installation.client() as client:
        return [hit["title"] for hit in search(client, query, BUCKET)]


def upload_outside_sync(installation: Installation, name: str = "stranger.md") -> str:
    """Upload a document outside of sync and return its id."""
    with installation.client() as client:
        return take_in(client, BUCKET, name, b"# Stranger\n\nNobody of the folder.", title=name)


def forget(installation: Installation) -> None:
    """Delete the local state of sync, as on a new machine."""
    shutil.rmtree(installation.root / "state")


def assert_equal(installation: Installation, folder: Path) -> None:
    """Assert that the bucket has each file of the folder once, with its bytes and ready, and nothing else."""
    hashes = {path.relative_to(folder).as_posix(): sha256_of(path) for path in folder.rglob("*") if path.is_file()}
    held = [(source["title"], source["sha256"], source["ready"]) for source in list_held(installation)]
    assert sorted(held) == sorted((title, sha256, True) for title, sha256 in hashes.items())


def count_requests(installation: Installation) -> Counter[str]:
    """Count the requests to the daemon so far by method and route, from its log."""

    def logged() -> Counter[str]:
        lines = [line.get("fields") or {} for line in installation.log_lines()]
        return Counter(f"{fields['method']} {fields['route']}" for fields in lines if "method" in fields)

    # Requests are logged after their responses: once this request is in the log, all earlier ones are.
    mark, before = f"GET {NO_ROUTE}", logged()
    with installation.client() as client:
        client.get("/nothing")
    wait_until(lambda: logged()[mark] > before[mark], "the log of the last request")
    counted = logged()
    del counted[mark]
    return counted


@contextmanager
def moved_away(folder: Path) -> Iterator[None]:
    """Move the folder away during the block, as if its disk were not mounted."""
    away = folder.with_name(f"{folder.name}-away")
    folder.rename(away)
    try:
        yield
    finally:
        if folder.is_dir():
            folder.rmdir()
        elif folder.exists():
            folder.unlink()
        away.rename(folder)
