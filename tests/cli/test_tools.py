"""The tools of `svc mcp`: which files they may read, and how they connect to the service."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from svc_cli.client.api import Client
from svc_cli.client.retries import RetryPolicy
from svc_cli.errors import DaemonUnreachable, FileRefused, PathMissing, SvcError, UsageError
from svc_cli.mcp.api_calls import run_tool
from svc_cli.mcp.folders import Folders, PathRefused
from svc_daemon.tools.api_calls import CallFailed
from svc_daemon.tools.catalogue import TOOLS
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import write

MOST = 1000


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with files, next to the folders `docs-secret` and `more`."""
    files = {"docs/a.md": b"allowed", "docs/deep/b.md": b"deeper", "docs-secret/s.md": b"secret", "more/c.md": b"more"}
    for name, text in files.items():
        write(tmp_path, name, data=text)
    return tmp_path / "docs"


def test_file_is_read_by_relative_or_absolute_path_from_each_allowed_folder(docs: Path) -> None:
    (docs.parent / "link").symlink_to(docs)
    folders, linked = Folders([docs, docs.parent / "more"]), Folders([docs.parent / "link"])
    assert folders.read("c.md", MOST) == ("c.md", b"more")
    assert folders.read("a.md", MOST) == folders.read(str(docs / "a.md"), MOST) == ("a.md", b"allowed")
    assert folders.read("deep/../deep/b.md", MOST) == ("b.md", b"deeper")
    for folder in (docs, docs.parent / "link"):
        assert linked.read(str(folder / "a.md"), MOST)[1] == b"allowed", "a folder may be a link itself"


def test_path_outside_the_allowed_folders_is_refused_even_if_missing(docs: Path) -> None:
    outside = docs.parent / "docs-secret"
    links = {"out.md": outside / "s.md", "out": outside, "in.md": docs / "a.md", "loop": docs / "loop"}
    for name, target in links.items():
        (docs / name).symlink_to(target)
    refused = ("out.md", "out/s.md", "/etc/passwd", "a\0b")
    for path in (*refused, "../docs-secret/s.md", f"{outside}/s.md", f"{outside}/none.md"):
        with pytest.raises(PathRefused):
            pytest.fail(f"{path} is read: {Folders([docs]).read(path, MOST)}")
    # Python 3.13 resolves a cycle of links to a path that can't be read.
    with pytest.raises((PathRefused, PathMissing)):
        Folders([docs]).read("loop", MOST)
    assert Folders([docs]).read("in.md", MOST) == ("in.md", b"allowed")


def test_file_that_becomes_a_link_after_its_path_was_checked_is_not_read(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(docs.parent, "docs-secret/b.md", data=b"secret")

    def access_and_swap(path: Path, mode: int) -> bool:
        (docs / "deep").rename(docs.parent / "away")
        (docs / "deep").symlink_to("../docs-secret")
        return path.exists() and mode == os.F_OK

    monkeypatch.setattr("svc_cli.mcp.folders.os.access", access_and_swap)
    with pytest.raises(FileRefused, match="a link or another file has taken its place"):
        Folders([docs]).read("deep/b.md", MOST)


def test_missing_special_empty_or_too_large_file_is_refused(docs: Path) -> None:
    os.mkfifo(docs / "pipe")
    (docs / "empty.md").touch()
    (docs / "large.md").write_bytes(b"x" * (MOST + 1))
    codes = {"none.md": "svc_path_not_found", "x" * 5000: "svc_path_not_found", "pipe": "svc_not_a_file"}
    codes |= {"empty.md": "empty_file", "large.md": "file_too_large"}
    for path, code in codes.items():
        with pytest.raises(SvcError) as raised:
            Folders([docs]).read(path, MOST)
        assert raised.value.code == code


def test_only_existing_folders_can_be_allowed_and_an_empty_list_allows_no_file(docs: Path) -> None:
    assert not Folders([])
    with pytest.raises(PathRefused, match="No folder is allowed"):
        Folders([]).read(str(docs / "a.md"), MOST)
    for name, kind in (("none", PathMissing), ("a.md", UsageError)):
        with pytest.raises(kind):
            Folders([docs / name])


LIST = next(tool for tool in TOOLS if tool.name == "svc-list-buckets")
NOBODY = "http://127.0.0.1:1"


def connecting(*addresses: str) -> Callable[[], AbstractContextManager[Client]]:
    """Return a function that connects to these addresses in turn and then fails as unreachable."""
    left = list(addresses)

    @contextmanager
    def connect() -> Iterator[Client]:
        if not left:
            raise DaemonUnreachable("Nobody answers.", hint="start it.")
        with Client(left.pop(0), "sk-test", policy=RetryPolicy(attempts=1)) as client:
            yield client

    return connect


def list_buckets(connect: Callable[[], AbstractContextManager[Client]]) -> Any:
    return asyncio.run(run_tool(connect, Folders([]), LIST, {}))


def test_each_call_opens_a_connection_and_a_second_one_if_the_first_is_dead(odd: OddServer) -> None:
    odd.answers["GET /v1/buckets"] = (200, {"buckets": []}, {})
    connect = connecting(odd.url, odd.url)
    assert [list_buckets(connect).buckets for _ in range(2)] == [[], []]
    with pytest.raises(CallFailed) as failed:
        list_buckets(connect)
    error = {"code": "svc_daemon_unreachable", "retryable": True, "hint": "start it."}
    assert error.items() <= failed.value.error.items()
    assert list_buckets(connecting(NOBODY, odd.url)).buckets == []
    with pytest.raises(CallFailed) as failed:
        list_buckets(connecting(NOBODY, NOBODY, odd.url))
    assert failed.value.code == "svc_network_failed"


def test_malformed_answer_is_reported_as_a_bad_answer(odd: OddServer) -> None:
    nonsense: list[Any] = [(200, {"buckets": [{"id": "bkt_x"}]}, {}), (200, b"<html>", {}), (200, b'{"a":' * 5000, {})]
    for answer in nonsense:
        odd.answers["GET /v1/buckets"] = answer
        with pytest.raises(CallFailed) as failed:
            list_buckets(connecting(odd.url))
        assert failed.value.code == "svc_bad_answer"
