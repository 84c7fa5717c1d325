"""A daemon without file descriptors or disk space delays the indexing of files, fails none, and continues by itself."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.acceptance.calls import get_source, make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation

#: Longer than all attempts of a task and the pauses between them would take.
ATTEMPTS_S = 4.0


@contextmanager
def no_descriptors(installation: Installation) -> Iterator[None]:
    """Keep the daemon from opening any more descriptors during the block."""
    pid = installation.pid or 0
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@pytest.mark.one_daemon
@pytest.mark.skipif(not psutil.LINUX, reason="only Linux sets the limits of another process")
def test_daemon_without_descriptors_fails_no_file_and_continues_afterwards(make_installation: MakeInstallation) -> None:
    installation = make_installation(**UNLIMITED, SVC_LIMIT_TASK_ATTEMPTS="2").start()
    with installation.client() as client:
        make_bucket(client, "inbox")
        texts = [f"The umber quay {number}.\n\n".encode() * 10_000 for number in range(12)]
        answers = [upload(client, "inbox", f"{number}.txt", text) for number, text in enumerate(texts)]
        assert {answer.status_code for answer in answers} == {201}
        made = [answer.json()["id"] for answer in answers]
        with no_descriptors(installation):
            shortage = wait_until(lambda: client.get("/healthz").json()["shortage"], "the shortage is reported")
            assert shortage["lack"] == "descriptors"
            waiting = [source for source_id in made if not (source := get_source(client, source_id))["ready"]]
            assert {source["waits_for"]["lack"] for source in waiting} == {"descriptors"}
            time.sleep(ATTEMPTS_S)
            assert client.get("/healthz").json()["shortage"]
        for source_id in made:
            source = wait_ended(client, source_id)
            task = client.get(f"/v1/knowledge/tasks/{source['task']['id']}").json()
            assert (source["ready"], task["attempt"]) == (True, 1), source
    log = installation.files.log.read_text()
    assert log.count("Work waits") == 1
    assert "Traceback" not in log
    installation.assert_intact()


@pytest.mark.folders  # a node of a cluster needs no room on its disk
def test_file_that_waits_for_disk_space_is_shown_everywhere_and_indexed_once_there_is_room(
    make_installation: MakeInstallation,
) -> None:
    installation = make_installation(**UNLIMITED).start()
    with installation.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "quays.txt", b"Another quay.\n" * 100_000).json()["id"]
    installation.kill()
    installation.environ["SVC_LIMIT_FREE_DISK_BYTES"] = str(10**15)
    with installation.start().client() as client:
        wait_until(lambda: client.get("/healthz").json()["shortage"], "the shortage of disk space is reported")
    assert installation.svc("daemon", "status", "--json").json["shortage"]["lack"] == "disk_reserve"
    installation.environ["SVC_API_KEY"] = installation.files.admin_key.read_text().strip()
    for words in (
        ("status", source_id),
        ("daemon", "status"),
        ("doctor",),
        ("doctor", "--base-url", installation.base_url),
    ):
        assert installation.svc(*words).stdout.count("nearly full") == 1, words
    installation.stop()
    del installation.environ["SVC_LIMIT_FREE_DISK_BYTES"]
    installation.start()
    assert installation.svc("wait", source_id).exit == 0
