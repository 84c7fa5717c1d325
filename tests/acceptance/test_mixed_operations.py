"""Everything that the service does, done at once, while it is killed again and again: each answer holds."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from svc_daemon.core.problems import Mend
from svc_daemon.offline import verify_directory
from tests.acceptance.calls import list_sources, make_bucket, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.workloads import BUCKETS, OPERATION_TIMEOUT_S, Client, Made, Site, hosting
from tests.conftest import UNLIMITED, MakeInstallation

CLIENTS = 6
OPERATIONS = 300
LARGE_OPERATIONS = 3000
OPERATIONS_PER_KILL = 25
#: What waits for a lease or a pause after the last kill is done by then.
SETTLE_TIMEOUT_S = 90.0


def test_every_answer_holds_whatever_is_killed(make_installation: MakeInstallation, large: bool) -> None:
    # A kill costs what is being read an attempt; without enough of them a source would fail, which is allowed.
    installation = make_installation(
        **UNLIMITED,
        SVC_FETCH_ALLOW="127.0.0.0/8",
        SVC_LIMIT_WEBHOOK_RETRY_SECONDS="1",
        SVC_LIMIT_TASK_ATTEMPTS="100",
    )
    installation.start()
    operations = LARGE_OPERATIONS if large else OPERATIONS
    with hosting() as site:
        clients = _work_under_kills(installation, site, operations)
        done = sum((Counter(client.done) for client in clients), Counter())
        assert (done.total(), len(done)) == (operations, 14), done
        with installation.client() as client:
            _wait_settled(client, clients)
            made = [made for each in clients for made in each.made]
            _hold_sources(client, made)
            _hold_searches(client, made)
            _hold_webhooks(site, made)
        _hold_keys(clients)
    installation.hold_to_every_promise()


def _work_under_kills(installation: Installation, site: Site, operations: int) -> list[Client]:
    with installation.client() as client:
        for bucket in BUCKETS:
            make_bucket(client, bucket)
    clients = [Client(installation, site, number, operations // CLIENTS) for number in range(CLIENTS)]
    moments = random.Random(17)
    with _running(clients):
        # By progress and not by time: a busy machine does the same in each life of the daemon.
        for threshold in sorted(moments.sample(range(operations), operations // OPERATIONS_PER_KILL)):
            wait_until(lambda: _is_far(clients, threshold), f"{threshold} operations", OPERATION_TIMEOUT_S)  # noqa: B023
            clients[0].join(moments.uniform(0, 0.05))
            installation.kill()
            assert _broken(installation) == []
            installation.start()
    assert [client.failure for client in clients if client.failure] == []
    return clients


def _is_far(clients: Sequence[Client], operations: int) -> bool:
    """Whether so many are done, or nobody goes on."""
    done = sum(sum(list(client.done.values())) for client in clients)
    return done >= operations or not any(client.is_alive() for client in clients)


def _broken(installation: Installation) -> list[str]:
    """What a kill may not leave: anything but what the next start clears away."""
    problems = verify_directory(installation.files.root, read_data=False, repair=False).findings.problems
    cleared = {Mend.REMOVE_FILE, Mend.SET_ASIDE, Mend.REMOVE_DOCUMENT}
    return [problem.message for problem in problems if problem.mend not in cleared]


@contextmanager
def _running(clients: Sequence[Client]) -> Iterator[None]:
    for client in clients:
        client.start()
    try:
        yield
    finally:
        for client in clients:
            client.join()


def _wait_settled(client: httpx.Client, clients: Sequence[Client]) -> None:
    """Until nothing is on its way: cascades, sources and calls have ended."""
    for task_id in (task_id for each in clients for task_id in each.cascades):
        wait_until(lambda: _task(client, task_id) == "succeeded", f"the end of {task_id}", SETTLE_TIMEOUT_S)  # noqa: B023
    for made in (made for each in clients for made in each.made if not made.is_deleted):
        wait_ended(client, made.id, SETTLE_TIMEOUT_S)
    wait_until(lambda: _pending_calls(client) == 0, "the last call", SETTLE_TIMEOUT_S)


def _task(client: httpx.Client, task_id: str) -> str:
    return str(client.get(f"/v1/knowledge/tasks/{task_id}").json()["status"])


def _pending_calls(client: httpx.Client) -> int:
    answer = client.get("/v1/webhooks/deliveries", params={"status": "pending"})
    return len(answer.json()["deliveries"])


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
    """Whoever came from a URL and is there was told to be ready, always as the same event."""
    events: dict[str, set[str]] = {}
    for call in (json.loads(seen.body) for seen in site.server.requests if seen.path == "/hook"):
        assert call["event"] == "source.ready", call
        events.setdefault(call["source_id"], set()).add(call["id"])
    assert {source_id for source_id, ids in events.items() if len(ids) > 1} == set()
    assert {each.id for each in made if each.path and not each.is_deleted} <= events.keys()


def _hold_keys(clients: Sequence[Client]) -> None:
    """Each key is still answered with the source that it made."""
    for client in clients:
        for key, (send, source_id) in client.answered.items():
            assert send(key)["id"] == source_id
        client.close()
