"""Folders for tests of sync, and what the bucket has of them."""

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
#: Thousands of files on a machine that has other things to do.
TIMEOUT_S = 900.0
Json = dict[str, Any]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """The file can't be opened while the block runs, not even by root: somebody has a lease on it."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # the news that another process opens it
    descriptor = os.open(path, os.O_RDWR)
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    try:
        yield
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def fill(folder: Path, count: int, size_bytes: int = 60) -> Path:
    """Markdown files in subfolders of 100, each another."""
    for number in range(count):
        head = f"# Note {number}\n\nThe word of this note is wren{number}.\n"
        text = head + "moss " * (max(0, size_bytes - len(head)) // 5)
        write(folder, f"{number // 100:03}/{number % 100:02}.md", text)
    return folder


def sync(installation: Installation, *words: str, folder: str = "docs", verb: str = "sync") -> Finished:
    """`svc sync docs -b handbook --json`, or `diff`."""
    return installation.svc(verb, folder, "-b", BUCKET, "--json", *words, timeout_s=TIMEOUT_S)


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def counts(finished: Finished) -> dict[str, int]:
    """Outcomes that occurred at all."""
    return {name: number for name, number in finished.json["counts"].items() if number}


def withheld(finished: Finished) -> list[tuple[str, int | None, list[str]]]:
    """Why files that are gone were left: code, number of files, and paths that are the cause."""
    return [(each["code"], each["files"], each["because"]) for each in finished.json["withheld"]]


def items(finished: Finished) -> dict[str, Json]:
    return {item["path"]: item for item in finished.json["items"]}


def list_held(installation: Installation, bucket: str = BUCKET) -> list[Json]:
    with installation.client() as client:
        return list_sources(client, bucket)


def titles(installation: Installation, bucket: str = BUCKET) -> list[str]:
    return sorted(source["title"] for source in list_held(installation, bucket))


def found(installation: Installation, query: str) -> list[str]:
    """Titles that a search of the bucket finds."""
    with installation.client() as client:
        return [hit["title"] for hit in search(client, query, BUCKET)]


def put_stranger(installation: Installation, name: str = "stranger.md") -> str:
    """A document that sync did not create; its id."""
    with installation.client() as client:
        return take_in(client, BUCKET, name, b"# Stranger\n\nNobody of the folder.", title=name)


def forget(installation: Installation) -> None:
    """Lose all local state, as a fresh machine has none."""
    shutil.rmtree(installation.root / "state")


def assert_equal(installation: Installation, folder: Path) -> None:
    """The bucket has each file of the folder once, with its bytes, ready, and nothing else."""
    hashes = {path.relative_to(folder).as_posix(): sha256_of(path) for path in folder.rglob("*") if path.is_file()}
    held = [(source["title"], source["sha256"], source["ready"]) for source in list_held(installation)]
    assert sorted(held) == sorted((title, sha256, True) for title, sha256 in hashes.items())


def count_requests(installation: Installation) -> Counter[str]:
    """How often the daemon was asked for each method and route so far, from its log."""

    def logged() -> Counter[str]:
        lines = [line.get("fields") or {} for line in installation.log_lines()]
        return Counter(f"{fields['method']} {fields['route']}" for fields in lines if "method" in fields)

    # A request is logged after its answer: those before this one are, when this one is.
    mark, before = f"GET {NO_ROUTE}", logged()
    with installation.client() as client:
        client.get("/nothing")
    wait_until(lambda: logged()[mark] > before[mark], "the log of the last request")
    counted = logged()
    del counted[mark]
    return counted


@contextmanager
def moved_away(folder: Path) -> Iterator[None]:
    """The folder is elsewhere while the block runs, as a disk that is not mounted."""
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
