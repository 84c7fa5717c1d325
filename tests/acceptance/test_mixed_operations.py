"""Everything that the service does, done at once, while it is killed and stopped again and again: each answer holds."""

import json
import random
from collections import Counter
from collections.abc import Sequence

import httpx

from svc_daemon.core.problems import Repair
from svc_daemon.offline_repair import verify_directory
from tests.acceptance.calls import list_sources, make_bucket, wait_ended, wait_task
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.workloads import BUCKETS, OPERATION_TIMEOUT_S, Client, Made, Site, hosting
from tests.conftest import UNLIMITED, MakeInstallation

CLIENTS = 6
OPERATIONS = 300
LARGE_OPERATIONS = 3000
#: One end of the daemon in so many operations; every fourth is a stop.
OPERATIONS_PER_END = 25
#: What waits for a lease or a pause after the last kill is done by then.
SETTLE_TIMEOUT_S = 90.0


def test_every_answer_holds_whatever_is_killed(make_installation: MakeInstallation, large: bool) -> None:
    # A kill costs what is being read an attempt; without enough of them a source would fail, which is allowed.
    limits = {"SVC_LIMIT_WEBHOOK_RETRY_SECONDS": "1", "SVC_LIMIT_TASK_ATTEMPTS": "100"}
    installation = make_installation(**UNLIMITED, **limits, SVC_FETCH_ALLOW="127.0.0.0/8").start()
    operations = LARGE_OPERATIONS if large else OPERATIONS
    with hosting() as site:
        clients = _work_under_ends(installation, site, operations)
        done = sum((client.done for client in clients), Counter())
        assert (done.total(), len(done)) == (operations, 14), done
        with installation.client() as client:
            _wait_settled(client, clients)
            made = [made for each in clients for made in each.made]
            _hold_sources(client, made)
            _hold_searches(client, made)
            _hold_webhooks(site, made)
        for each in clients:
            # Each key is still answered with the source that it made.
            assert [key for key, (send, source_id) in each.answered.items() if send(key)["id"] != source_id] == []
            each.close()
    installation.hold_to_every_promise()


def _work_under_ends(installation: Installation, site: Site, operations: int) -> list[Client]:
    with installation.client() as client:
        for bucket in BUCKETS:
            make_bucket(client, bucket)
    clients = [Client(installation, site, number, operations // CLIENTS) for number in range(CLIENTS)]
    moments = random.Random(17)
    for each in clients:
        each.start()
    try:
        # By progress and not by time: a busy machine does the same in each life of the daemon.
        for turn, threshold in enumerate(sorted(moments.sample(range(operations), operations // OPERATIONS_PER_END))):
            wait_until(lambda: _has_come_to(clients, threshold), f"{threshold} operations", OPERATION_TIMEOUT_S)  # noqa: B023
            clients[0].join(moments.uniform(0, 0.05))
            if turn % 4 == 3:
                assert installation.stop() == 0
            else:
                installation.kill()
            assert _broken(installation) == []
            installation.start()
    finally:
        for each in clients:
            each.join()
    assert [each.failure for each in clients if each.failure] == []
    return clients


def _has_come_to(clients: Sequence[Client], operations: int) -> bool:
    """Whether so many are done, or no client runs any more."""
    done = sum(sum(list(client.done.values())) for client in clients)
    return done >= operations or not any(client.is_alive() for client in clients)


def _broken(installation: Installation) -> list[str]:
    """What a kill may not leave: anything but what the next start clears away."""
    problems = verify_directory(installation.files.root, read_data=False, repair=False).findings.problems
    cleared = {Repair.REMOVE_FILE, Repair.SET_ASIDE, Repair.REMOVE_DOCUMENT}
    return [problem.message for problem in problems if problem.repair not in cleared]


def _wait_settled(client: httpx.Client, clients: Sequence[Client]) -> None:
    """Until nothing is on its way: cascades, sources and calls have ended."""
    for task_id in (task_id for each in clients for task_id in each.cascades):
        assert wait_task(client, task_id, SETTLE_TIMEOUT_S)["status"] == "succeeded"
    for made in (made for each in clients for made in each.made if not made.is_deleted):
        wait_ended(client, made.id, SETTLE_TIMEOUT_S)

    def is_quiet() -> bool:
        return not client.get("/v1/webhooks/deliveries", params={"status": "pending"}).json()["deliveries"]

    wait_until(is_quiet, "the last call", SETTLE_TIMEOUT_S)


def _hold_sources(client: httpx.Client, made: Sequence[Made]) -> None:
    """The buckets hold what was promised, once, and nothing else."""
    wanted = {(place, each.id) for each in made if not each.is_deleted for place in each.places}
    listed = [(bucket, source) for bucket in BUCKETS for source in list_sources(client, bucket)]
    assert Counter((bucket, source["id"]) for bucket, source in listed) == Counter(wanted)
    sources = {source["id"]: source for _, source in listed}
    for each in made:
        if each.is_deleted:
            assert client.get(f"/v1/sources/{each.id}").status_code == 404, each
            continue
        source = sources[each.id]
        assert source["ready"] == each.is_readable, source
        assert each.title in (None, source["title"])
        assert each.sha256 in (None, source["sha256"])


def _hold_searches(client: httpx.Client, made: Sequence[Made]) -> None:
    """Found in the buckets by the word that only it has; deleted ones, and questions, nowhere."""
    for each in made:
        is_there = each.is_readable and each.type != "qa" and not each.is_deleted
        answer = client.post("/v1/search", json={"query": each.word, "buckets": list(BUCKETS)})
        found = {hit["source_id"] for hit in answer.json()["data"]}
        assert (each.id in found) == is_there, (each, found)


def _hold_webhooks(site: Site, made: Sequence[Made]) -> None:
    """Each source that came from a URL and is there was reported ready, always as the same event."""
    events: dict[str, set[str]] = {}
    for call in (json.loads(seen.body) for seen in site.server.requests if seen.path == "/hook"):
        assert call["event"] == "source.ready", call
        events.setdefault(call["source_id"], set()).add(call["id"])
    assert {source_id for source_id, ids in events.items() if len(ids) > 1} == set()
    assert {each.id for each in made if each.path and not each.is_deleted} <= events.keys()
