"""Changes of an index that wait at the same time: one commit for all, and each with its own outcome."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from svc_daemon.provider.embedded.indexes import TeamIndex
from svc_daemon.provider.embedded.postings import Postings
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.errors import DocumentMissing, ProviderFailed
from tests.acceptance.installations import wait_until
from tests.provider.samples import TEAM, found, put, put_each

NAMES = {f"src_{number}": f"fox{number} runs" for number in range(5)}


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[Postings]:
    """The postings of each commit."""
    commit, made = Postings.commit, list[Postings]()

    def counted(postings: Postings) -> None:
        made.append(postings)
        commit(postings)

    monkeypatch.setattr(Postings, "commit", counted)
    return made


def together(index: TeamIndex, *changes: Callable[[], Any]) -> "list[Future[Any]]":
    """Make changes that all wait before the first of them is made, in this order."""
    with ThreadPoolExecutor(len(changes)) as threads:
        with index.writing:
            futures = []
            for change in changes:
                waiting = len(index.waiting)
                futures.append(threads.submit(change))
                wait_until(lambda: len(index.waiting) > waiting, "a change that waits")  # noqa: B023 - called at once
        return futures


def retitled(provider: EmbeddedProvider, source_id: str, title: str) -> Callable[[], None]:
    return lambda: provider.set_title(TEAM, source_id, title)


@pytest.fixture
def index(provider: EmbeddedProvider) -> TeamIndex:
    put_each(provider, **NAMES)
    index = provider._files.find(TEAM)
    assert index is not None
    return index


def test_changes_that_wait_have_one_commit(
    provider: EmbeddedProvider, index: TeamIndex, commits: list[Postings]
) -> None:
    changes = [retitled(provider, name, f"Heron {name}") for name in NAMES]
    added = [lambda: put(provider, "src_new", "a new fox"), lambda: provider.set_buckets(TEAM, "src_4", 1, ["bkt_1"])]
    for future in together(index, *changes[:4], *added):
        future.result()
    assert len(commits) == 1
    assert sorted(found(provider, "heron")) == sorted(NAMES)[:4]
    assert (found(provider, "new"), found(provider, "fox4", "bkt_1")) == (["src_new"], ["src_4"])


def test_changes_of_one_source_are_made_in_their_order(
    provider: EmbeddedProvider, index: TeamIndex, commits: list[Postings]
) -> None:
    titles = ["Heron", "Egret", "Stork"]
    for future in together(index, *(retitled(provider, "src_1", title) for title in titles)):
        future.result()
    assert [found(provider, title) for title in titles] == [[], [], ["src_1"]]
    assert len(commits) == 3


def test_a_change_that_is_refused_leaves_the_others(provider: EmbeddedProvider, index: TeamIndex) -> None:
    missing, same, new = together(
        index,
        retitled(provider, "src_none", "Heron"),
        retitled(provider, "src_2", "untitled"),
        retitled(provider, "src_1", "Heron"),
    )
    assert isinstance(missing.exception(), DocumentMissing)
    assert (same.result(), new.result(), found(provider, "heron")) == (None, None, ["src_1"])


def test_if_the_commit_fails_no_change_is_made_and_each_reports_it(
    provider: EmbeddedProvider, index: TeamIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def fail(_: Postings) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(Postings, "commit", fail)
        futures = together(index, *(retitled(provider, name, "Heron") for name in NAMES))
        assert [type(future.exception()) for future in futures] == [ProviderFailed] * len(NAMES)
    assert found(provider, "heron") == []
    for name in NAMES:
        provider.set_title(TEAM, name, "Heron")
    assert sorted(found(provider, "heron")) == sorted(NAMES)


def test_many_threads_that_change_the_same_sources_lose_and_double_nothing(provider: EmbeddedProvider) -> None:
    put_each(provider, **NAMES)
    start = threading.Barrier(6)

    def change(thread: int) -> None:
        start.wait()
        for turn in range(10):
            name = f"src_{(thread + turn) % 5}"
            provider.set_title(TEAM, name, f"Heron {thread}")
            put(provider, name, f"fox {thread} {turn}", generation=2 + 10 * thread + turn)
            provider.set_title(TEAM, name, f"Egret {thread}")

    with ThreadPoolExecutor(6) as threads:
        for future in [threads.submit(change, thread) for thread in range(6)]:
            future.result()
    for word in ("fox", "egret"):
        assert sorted(found(provider, word)) == sorted(NAMES)
    for name in NAMES:
        provider.delete_document(TEAM, name)
    assert found(provider, "fox") == []
