"""Answers and searches of a month: each that was given counts once, whatever happens to the service."""

from dataclasses import replace

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.operations.usage import counting_answer, record_usage
from svc_daemon.process.usage import Tallies
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.workers.sweeping import CountingWorker
from tests.api.answers import body_of, details_of
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import Away

#: Until it is written, which a worker does within a second, an answer counts on its own node only.
ONE_DAEMON = pytest.mark.one_daemon


def used(daemon: Daemon, key: str | None = None) -> int:
    return int(daemon.show("/v1/limits", key=key)["limits"]["answers_per_month"]["used"])


def search(daemon: Daemon, times: int = 1, key: str | None = None) -> None:
    """Searches that are answered."""
    for _ in range(times):
        body_of(daemon.search("umber", key=key))


def is_stored(daemon: Daemon, answers: int) -> bool:
    """Whether the state has this number of answers of the team in this month, and of no other month."""
    query = "SELECT month, answers FROM usage WHERE team_id = :id"
    rows = daemon.read(lambda connection: connection.execute(query, {"id": daemon.team_id}).fetchall())
    return [tuple(row) for row in rows] == ([(daemon.context.clock.timestamp()[:7], answers)] if answers else [])


@ONE_DAEMON
def test_what_was_answered_is_counted_and_nothing_else(daemon: Daemon) -> None:
    daemon.make_bucket("second")
    assert used(daemon) == 0
    search(daemon)
    body_of(daemon.search("umber", buckets=["inbox", "second"]))
    assert used(daemon) == 2
    details_of(daemon.search("umber", buckets=["nowhere"]), "bucket_not_found")
    details_of(daemon.search("umber", buckets=["inbox"]), "bucket_store_indexing_pending")
    details_of(daemon.search("umber", agent="svc-agent:nobody"), "agent_not_found")
    details_of(daemon.search("umber", max_num_results=99), "invalid_request")
    daemon.provider.fail("search", ProviderFailed("The index is away.", retryable=True))
    details_of(daemon.search("umber"), "search_failed")
    assert (used(daemon), used(daemon, key=daemon.add_team())) == (2, 0)


def test_every_node_knows_what_the_others_have_answered(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=3))
    assert {used(daemon) for _ in daemon.nodes} == {0}
    daemon.start("counting")
    for number in (1, 2, 3):
        search(daemon)
        daemon.wait(lambda: {used(daemon) for _ in daemon.nodes} == {number}, "each has counted it")  # noqa: B023
    for _ in daemon.nodes:
        details_of(daemon.search("umber"), "rag_quota_exceeded")


@ONE_DAEMON
def test_the_plan_ends_searches_until_the_month_does(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=3))
    search(daemon, times=3)
    answer = daemon.search("umber")
    details = details_of(answer, "rag_quota_exceeded")
    assert (details["limit"], details["used"], "Retry-After" in answer.headers) == (3, 3, False)
    assert daemon.context.clock.timestamp() < details["resets_at"]
    assert (details["resets_at"][8:], used(daemon)) == ("01T00:00:00.000Z", 3)
    search(daemon, key=daemon.add_team())
    daemon.advance(32 * 86_400)
    assert used(daemon) == 0
    search(daemon)


@ONE_DAEMON
def test_searches_at_once_don_t_all_take_the_last_one(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=5))
    asks = [daemon.asking("POST", "/v1/search", json={"query": "umber"}) for _ in range(20)]
    codes = [answer.status_code for answer in daemon.ask_together(*asks)]
    assert (codes.count(200), codes.count(429)) == (5, 15)


@ONE_DAEMON
def test_the_count_outlives_the_process_and_searches_share_their_commits(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.start("counting")
    search(daemon)
    daemon.wait(lambda: is_stored(daemon, 1), "the first is stored at once")
    before = daemon.context.database.commits
    search(daemon, times=50)
    daemon.stop()
    assert is_stored(daemon, 51)
    assert daemon.context.database.commits - before <= 10
    daemon.close()
    daemon = make_daemon()
    assert (is_stored(daemon, 51), used(daemon)) == (True, 51)


def test_what_could_not_be_stored_is_stored_later(daemon: Daemon) -> None:
    assert used(daemon) == 0
    away = replace(daemon.context, database=Away(daemon.context.database))
    daemon.run_worker(lambda: CountingWorker(away))
    search(daemon)
    daemon.wait(lambda: not daemon.context.wakes.counting.is_set(), "it was tried")
    daemon.stop()
    assert is_stored(daemon, 0)
    search(daemon)
    daemon.start("counting")
    daemon.stop()
    assert is_stored(daemon, 2)


@ONE_DAEMON
def test_what_another_node_has_counted_counts_once_it_is_stored(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=5))
    clock = replace(daemon.context.clock, shared=daemon.context.clock.monotonic)
    node = replace(daemon.context, tallies=Tallies(), clock=clock)

    async def answer(times: int) -> None:
        for _ in range(times):
            with counting_answer(node, daemon.team_id):
                pass
        await record_usage(node)

    with daemon.serving_with(clock=clock):
        search(daemon)
        daemon.loop.run(answer(3))
        assert used(daemon) == 4
        search(daemon)
        details_of(daemon.search("umber"), "rag_quota_exceeded")
        # What this one has not stored yet may exceed the limit, but no more.
        daemon.loop.run(answer(2))
        with pytest.raises(ServiceError):
            daemon.loop.run(answer(1))
        daemon.loop.run(record_usage(daemon.context))
        assert used(daemon) == 7
