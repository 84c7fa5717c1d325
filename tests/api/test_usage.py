"""The monthly count of answers and searches: what counts, the quota, concurrency, nodes and restarts."""

from dataclasses import replace

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.operations.shared.usage import counting_answer, record_usage
from svc_daemon.process.usage_counters import UsageCounters
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.workers.sweeping import CountingWorker
from tests.api.answers import body_of, details_of
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import Away

#: For counts that other nodes don't see yet: a worker writes the count of a node to the state within a second.
ONE_DAEMON = pytest.mark.one_daemon


def used(daemon: Daemon, key: str | None = None) -> int:
    return int(daemon.show("/v1/limits", key=key)["limits"]["answers_per_month"]["used"])


def search(daemon: Daemon, times: int = 1, key: str | None = None) -> None:
    """Make searches that succeed."""
    for _ in range(times):
        body_of(daemon.search("umber", key=key))


def is_stored(daemon: Daemon, answers: int) -> bool:
    """Whether the state has this number of answers for the team's current month, and none for other months."""
    query = "SELECT month, answers FROM usage WHERE team_id = :id"
    rows = daemon.read(lambda connection: connection.execute(query, {"id": daemon.team_id}).fetchall())
    return [tuple(row) for row in rows] == ([(daemon.context.clock.timestamp()[:7], answers)] if answers else [])


@pytest.mark.rule("agents.agent")
@ONE_DAEMON
def test_only_successful_searches_are_counted(daemon: Daemon) -> None:
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


def test_every_node_counts_the_searches_of_the_other_nodes(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=3))
    assert {used(daemon) for _ in daemon.nodes} == {0}
    daemon.start("counting")
    for number in (1, 2, 3):
        search(daemon)
        daemon.wait(lambda: {used(daemon) for _ in daemon.nodes} == {number}, "each node has counted the search")  # noqa: B023
    for _ in daemon.nodes:
        details_of(daemon.search("umber"), "rag_quota_exceeded")


@pytest.mark.rule("rag_quota_exceeded")
@ONE_DAEMON
def test_searches_beyond_the_monthly_quota_are_refused_until_the_next_month(make_daemon: MakeDaemon) -> None:
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
def test_concurrent_searches_do_not_exceed_the_quota(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=5))
    asks = [daemon.asking("POST", "/v1/search", json={"query": "umber"}) for _ in range(20)]
    codes = [answer.status_code for answer in daemon.ask_together(*asks)]
    assert (codes.count(200), codes.count(429)) == (5, 15)


@ONE_DAEMON
def test_count_survives_a_restart_and_many_searches_share_commits(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.start("counting")
    search(daemon)
    daemon.wait(lambda: is_stored(daemon, 1), "the first search is stored")
    before = daemon.context.database.commits
    search(daemon, times=50)
    daemon.stop()
    assert is_stored(daemon, 51)
    assert daemon.context.database.commits - before <= 10
    daemon.close()
    daemon = make_daemon()
    assert (is_stored(daemon, 51), used(daemon)) == (True, 51)


def test_count_that_could_not_be_stored_is_stored_later(daemon: Daemon) -> None:
    assert used(daemon) == 0
    away = replace(daemon.context, database=Away(daemon.context.database))
    daemon.run_worker(lambda: CountingWorker(away))
    search(daemon)
    daemon.wait(lambda: not daemon.context.wakes.counting.is_set(), "the worker has tried to store the count")
    daemon.stop()
    assert is_stored(daemon, 0)
    search(daemon)
    daemon.start("counting")
    daemon.stop()
    assert is_stored(daemon, 2)


@ONE_DAEMON
def test_stored_count_of_another_node_counts_towards_the_quota(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, answers_per_month=5))
    clock = replace(daemon.context.clock, shared=daemon.context.clock.monotonic)
    node = replace(daemon.context, usage_counters=UsageCounters(), clock=clock)

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
        # The answers that this node has not stored yet may exceed the limit, but no others.
        daemon.loop.run(answer(2))
        with pytest.raises(ServiceError):
            daemon.loop.run(answer(1))
        daemon.loop.run(record_usage(daemon.context))
        assert used(daemon) == 7
