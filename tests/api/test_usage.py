"""Answers and searches of a month: each that was given counts once, whatever happens to the service."""

from dataclasses import replace
from typing import Any

import httpx

from svc_daemon.provider.errors import ProviderFailed
from tests.api.answers import body_of, details_of
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon


def used(daemon: Daemon, key: str | None = None) -> int:
    return int(daemon.show("/v1/limits", key=key)["limits"]["answers_per_month"]["used"])


def stored(daemon: Daemon) -> dict[str, int]:
    """Answers of this team by month, as they stand in the state."""
    rows = daemon.read(
        lambda connection: connection.execute(
            "SELECT month, answers FROM usage WHERE team_id = ?", (daemon.team_id,)
        ).fetchall()
    )
    return {row["month"]: row["answers"] for row in rows}


def month(daemon: Daemon) -> str:
    return daemon.context.clock.timestamp()[:7]


def search(daemon: Daemon, **body: Any) -> httpx.Response:
    return daemon.search("umber", **body)


def test_what_was_answered_is_counted_and_nothing_else(daemon: Daemon) -> None:
    daemon.make_bucket("second")
    assert used(daemon) == 0
    body_of(search(daemon))
    body_of(search(daemon, buckets=["inbox", "second"]))
    assert used(daemon) == 2
    details_of(search(daemon, buckets=["nowhere"]), "bucket_not_found")
    details_of(search(daemon, buckets=["inbox"]), "bucket_store_indexing_pending")
    details_of(search(daemon, agent="svc-agent:nobody"), "agent_not_found")
    details_of(search(daemon, max_num_results=99), "invalid_request")
    daemon.provider.fail("search", ProviderFailed("The index is away.", retryable=True))
    details_of(search(daemon), "search_failed")
    assert used(daemon) == 2
    assert used(daemon, key=daemon.add_team()) == 0


def test_the_plan_ends_searches_until_the_month_does(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=3))
    for _ in range(3):
        body_of(search(daemon))
    answer = search(daemon)
    told = details_of(answer, "rag_quota_exceeded")
    assert (told["limit"], told["used"]) == (3, 3)
    assert daemon.context.clock.timestamp() < told["resets_at"]
    assert told["resets_at"][8:] == "01T00:00:00.000Z"
    assert "Retry-After" not in answer.headers
    assert used(daemon) == 3
    body_of(search(daemon, key=daemon.add_team()))
    daemon.advance(32 * 86_400)
    assert used(daemon) == 0
    body_of(search(daemon))


def test_searches_at_once_don_t_all_take_the_last_one(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=5))
    asks = [daemon.asking("POST", "/v1/search", json={"query": "umber"}) for _ in range(20)]
    codes = [answer.status_code for answer in daemon.ask_together(*asks)]
    assert (codes.count(200), codes.count(429)) == (5, 15)


def test_the_count_outlives_the_process(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.start("counting")
    body_of(search(daemon))
    daemon.wait(lambda: stored(daemon) == {month(daemon): 1}, "the first is told at once")
    for _ in range(4):
        body_of(search(daemon))
    daemon.close()
    daemon = make_daemon()
    assert (stored(daemon), used(daemon)) == ({month(daemon): 5}, 5)


def test_searches_share_their_commits(daemon: Daemon) -> None:
    daemon.start("counting")
    before = daemon.context.database.commits
    for _ in range(50):
        body_of(search(daemon))
    daemon.stop()
    assert stored(daemon) == {month(daemon): 50}
    assert daemon.context.database.commits - before <= 10


def test_what_could_not_be_told_is_told_later(daemon: Daemon) -> None:
    assert used(daemon) == 0
    daemon.write(lambda connection: connection.execute("ALTER TABLE usage RENAME TO elsewhere"))
    daemon.start("counting")
    body_of(search(daemon))
    daemon.wait(lambda: not daemon.context.wakes.counting.is_set(), "it was tried")
    daemon.stop()
    daemon.write(lambda connection: connection.execute("ALTER TABLE elsewhere RENAME TO usage"))
    assert stored(daemon) == {}
    body_of(search(daemon))
    daemon.start("counting")
    daemon.stop()
    assert stored(daemon) == {month(daemon): 2}
