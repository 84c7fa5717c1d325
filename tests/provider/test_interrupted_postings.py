"""Postings of which a writer is lost, a folder closed, or a team deleted, while something is written or rebuilt."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from svc_daemon.errors import ShuttingDown
from svc_daemon.provider.embedded.indexes import MOST_BUILDS
from svc_daemon.provider.embedded.packing import SLICE_CHUNKS
from svc_daemon.provider.embedded.postings import Latest, Posting, Postings, count_terms
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.errors import IndexBuilding, ProviderFailed
from tests.acceptance.installations import wait_until
from tests.provider.samples import TEAM, found, put, put_each, search, settled


def test_a_write_that_takes_long_loses_nothing_of_what_it_has_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that was suspended meanwhile."""
    monkeypatch.setattr("svc_daemon.provider.embedded.postings.IDLE_S", 0.01)
    changed, unchanged = (Postings(tmp_path / name, is_new=True) for name in ("changed", "unchanged"))
    changed.add([Posting(1 << 20, "", "fox", "", "", "")])
    unchanged.commit()
    wait_until(lambda: unchanged.dropped == 1, "a writer is closed")
    unchanged.commit()
    wait_until(lambda: unchanged.dropped == 2, "a writer is closed")
    changed.commit()
    assert changed.count_documents() == {1: 1}
    wait_until(lambda: changed.dropped == 1, "the other writer is closed")
    unchanged.close()
    changed.close()


def test_a_large_document_that_must_be_added_again_is_found_once(
    provider: EmbeddedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another write commits the first part of it, and then fails, whereby the next part is lost."""
    add, adds = Postings.add, [0]

    def fail() -> Iterator[Posting]:
        yield Posting(1 << 60, "", "fox", "", "", "")
        raise OSError("anything")

    def add_and_interrupt(postings: Postings, more: Iterable[Posting]) -> None:
        adds[0] += 1
        add(postings, more)
        if adds[0] == 1:
            postings.commit()
        if adds[0] == 2:
            with pytest.raises(OSError, match="anything"):
                add(postings, fail())

    monkeypatch.setattr(Postings, "add", add_and_interrupt)
    put(provider, "src_1", *["fox"] * 600)
    assert adds[0] > 3
    assert len(found(provider, "fox", limit=2000)) == 600


@pytest.mark.parametrize("damage", [shutil.rmtree, lambda path: os.truncate(next(path.glob("*.pos")), 4)])
def test_postings_that_are_damaged_while_open_are_made_anew_when_a_write_notices(
    folder: Path, provider: EmbeddedProvider, damage: Callable[[Path], object]
) -> None:
    for number in range(7):
        put(provider, f"src_{number}", "fox")
    (path,) = folder.glob(f"{TEAM}.postings-*")
    damage(path)

    def is_taken() -> bool:
        try:
            for number in range(7, 10):
                put(provider, f"src_{number}", "fox")
        except ProviderFailed:
            return False
        return True

    wait_until(is_taken, "the writes are taken")
    settled(provider).delete_document(TEAM, "src_0")
    assert sorted(found(provider, "fox")) == [f"src_{number}" for number in range(1, 10)]


def test_postings_of_a_large_document_are_removed_with_it(folder: Path, provider: EmbeddedProvider) -> None:
    put(provider, "src_1", *["fox"] * 600)
    put(provider, "src_2", *["fox"] * 600)
    put(provider, "src_2", "owl", generation=2)
    provider.delete_document(TEAM, "src_1")
    provider.close()
    (path,) = folder.glob(f"{TEAM}.postings-*")
    assert list(count_terms(path, "document")[0].values()) == [1]


# Closing


def test_a_team_that_is_deleted_while_its_postings_are_made_leaves_nothing(
    folder: Path, reopened: Callable[[], EmbeddedProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = reopened()
    put_each(provider, src_1="fox", src_2="owl")
    provider.delete_document(TEAM, "src_2")
    is_committing, may_go_on, commit = threading.Event(), threading.Event(), Postings.commit

    def wait_and_commit(postings: Postings) -> None:
        is_committing.set()
        assert may_go_on.wait(60)
        commit(postings)

    monkeypatch.setattr(Postings, "commit", wait_and_commit)
    with ThreadPoolExecutor() as threads:
        purged = threads.submit(provider.purge, TEAM)
        assert is_committing.wait(60)
        deleted = threads.submit(provider.delete_team, TEAM)
        may_go_on.set()
        deleted.result(60)
        with suppress(ProviderFailed):
            purged.result(60)
    assert [path.name for path in folder.iterdir()] == []


def test_a_rebuild_ends_within_a_large_document_when_the_index_is_closed_and_goes_on_later(
    reopened: Callable[[], EmbeddedProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = reopened()
    put(provider, "src_1", *["fox"] * 2000)
    put(provider, "src_2", "owl")
    provider.delete_document(TEAM, "src_2")
    adds, is_adding, may_go_on, add = [0], threading.Event(), threading.Event(), Postings.add

    def wait_and_add(postings: Postings, more: Iterable[Posting]) -> None:
        adds[0] += 1
        is_adding.set()
        assert may_go_on.wait(60)
        add(postings, more)

    with monkeypatch.context() as patched, ThreadPoolExecutor() as threads:
        patched.setattr(Postings, "add", wait_and_add)
        purged = threads.submit(provider.purge, TEAM)
        assert is_adding.wait(60)
        closed = threads.submit(provider.close)
        wait_until(closed.running, "the index is being closed")
        time.sleep(0.2)
        may_go_on.set()
        closed.result(60)
        with suppress(ProviderFailed, ShuttingDown):
            purged.result(60)
    assert adds[0] < 2000 / SLICE_CHUNKS
    assert len(found(reopened(), "fox", limit=3000)) == 2000


def test_postings_that_are_closed_take_no_writes(tmp_path: Path) -> None:
    postings = Postings(tmp_path / "closed", is_new=True)
    postings.close()
    with pytest.raises(OSError, match="closed"):
        postings.add([Posting(1 << 20, "", "fox", "", "", "")])


# Many teams


def test_of_many_postings_few_are_open_and_all_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "svc_daemon.provider.embedded.postings"
    monkeypatch.setattr(f"{module}._open_folders", folders := Latest(2, Postings.close_folder))
    monkeypatch.setattr(f"{module}._open_writers", writers := Latest(1, Postings.close_writer))
    every = [Postings(tmp_path / str(number), is_new=True) for number in range(5)]
    for number, postings in enumerate(every, start=1):
        postings.add([Posting(number << 20, "", "fox", "", "", "")])
    # A writer that has something to commit stays open.
    assert (writers.count(), [postings.dropped for postings in every]) == (5, [0] * 5)
    for postings in every:
        postings.commit()
    assert (writers.count(), folders.count()) == (1, 2)
    assert [postings.count_documents() for postings in every] == [{number: 1} for number in range(1, 6)]
    for postings in every:
        postings.close()
    assert (writers.count(), folders.count()) == (0, 0)


def test_few_indexes_are_built_at_a_time(
    folder: Path, reopened: Callable[[], EmbeddedProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, teams = reopened(), [f"team_{number}" for number in range(6)]
    for team_id in teams:
        put(provider, "src_1", "fox", team_id=team_id)
    provider.close()
    for path in folder.glob("*/meta.json"):
        path.unlink()
    commit, lock, running, most = Postings.commit, threading.Lock(), [0], [0]
    may_go_on = threading.Event()

    def count_and_commit(postings: Postings) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        assert may_go_on.wait(60)
        commit(postings)
        with lock:
            running[0] -= 1

    monkeypatch.setattr(Postings, "commit", count_and_commit)
    provider = reopened()
    for team_id in teams:
        with pytest.raises(IndexBuilding):
            search(provider, "fox", team_id=team_id)
    provider.delete_team(teams.pop())
    may_go_on.set()
    for team_id in teams:
        assert found(settled(provider, team_id), "fox", team_id=team_id) == ["src_1"]
    assert most[0] <= MOST_BUILDS
