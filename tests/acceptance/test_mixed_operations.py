"""Concurrent operations of all kinds keep every acknowledged result while the daemon is killed and stopped."""

import random
from collections import Counter

import pytest

from svc_daemon.core.problems import Repair
from svc_daemon.offline.verify import verify_directory
from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.promises import assert_promises_kept
from tests.acceptance.workloads import BUCKETS, OPERATION_TIMEOUT_S, Client, Site, have_done, hosting
from tests.conftest import UNLIMITED, MakeInstallation

CLIENTS = 6
OPERATIONS = 132
LARGE_OPERATIONS = 3000
#: The daemon ends once in this many operations; every fourth time it is stopped, otherwise it is killed.
OPERATIONS_PER_END = 22


@pytest.mark.rule("upgrade.restart")
@pytest.mark.sqlite
def test_acknowledged_operations_survive_kills_stops_and_a_restart_of_the_daemon(
    make_installation: MakeInstallation, large: bool
) -> None:
    # A kill counts as an attempt of each running task: with fewer attempts, a source could legitimately fail.
    limits = {"SVC_LIMIT_WEBHOOK_RETRY_SECONDS": "1", "SVC_LIMIT_TASK_ATTEMPTS": "100"}
    installation = make_installation(**UNLIMITED, **limits, SVC_FETCH_ALLOW="127.0.0.0/8").start()
    operations = LARGE_OPERATIONS if large else OPERATIONS
    with hosting() as site:
        clients = _work_under_ends(installation, site, operations)
        done = sum((client.done for client in clients), Counter())
        assert (done.total(), len(done)) == (operations, 14), done
        with installation.client() as client:
            assert_promises_kept(client, clients, site)
    installation.assert_intact()


def _work_under_ends(installation: Installation, site: Site, operations: int) -> list[Client]:
    with installation.client() as client:
        for bucket in BUCKETS:
            make_bucket(client, bucket)
    clients = [Client(installation, site, number, operations // CLIENTS) for number in range(CLIENTS)]
    moments = random.Random(17)
    for each in clients:
        each.start()
    try:
        # The daemon ends by progress and not by time, so that a busy machine does the same between two ends.
        *ends, restart = sorted(moments.sample(range(operations), operations // OPERATIONS_PER_END))
        for turn, threshold in enumerate(ends):
            wait_until(lambda: have_done(clients, threshold), f"{threshold} operations", OPERATION_TIMEOUT_S)  # noqa: B023
            clients[0].join(moments.uniform(0, 0.05))
            if turn % 4 == 3:
                assert installation.stop() == 0
            else:
                installation.kill()
            assert _broken(installation) == []
            installation.start()
        wait_until(lambda: have_done(clients, restart), f"{restart} operations", OPERATION_TIMEOUT_S)
        restarted = installation.svc("daemon", "restart")
        assert restarted.exit == 0, restarted.stderr
    finally:
        for each in clients:
            each.join()
    assert [each.failure for each in clients if each.failure] == []
    return clients


def _broken(installation: Installation) -> list[str]:
    """Return the problems that a kill must not leave: those that the next start doesn't repair."""
    problems = verify_directory(installation.files.root, read_data=False, repair=False).findings.problems
    cleared = {Repair.REMOVE_FILE, Repair.SET_ASIDE, Repair.REMOVE_DOCUMENT}
    return [problem.message for problem in problems if problem.repair not in cleared]
