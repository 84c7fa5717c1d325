"""A real daemon that runs short: acknowledged files wait, none fails, and all goes on by itself."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation

BUCKET = "/v1/buckets/inbox"
#: Longer than three attempts with their pauses would take.
ATTEMPTS_S = 10.0


@contextmanager
def no_descriptors(installation: Installation) -> Iterator[None]:
    """The daemon can open nothing more than it has open."""
    pid = installation.pid
    assert pid is not None
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux sets the limits of another process")
def test_a_daemon_without_descriptors_fails_no_file_and_goes_on(installation: Installation) -> None:
    installation.svc("bucket", "create", "inbox")
    with installation.client() as client:
        made = []
        for number in range(24):
            files = {"file": (f"{number}.txt", f"The umber quay {number}.\n\n".encode() * 20_000)}
            answer = client.post(f"{BUCKET}/files", files=files)
            assert answer.status_code == 201, answer.text
            made.append(answer.json()["id"])
        with no_descriptors(installation):

            def told() -> bool:
                return client.get("/healthz").json()["shortage"] is not None

            wait_until(told, "the daemon says what it is short of")
            health = client.get("/healthz").json()
            assert health["shortage"]["lack"] == "descriptors"
            waiting = [
                source for source_id in made if not (source := client.get(f"/v1/sources/{source_id}").json())["ready"]
            ]
            assert waiting
            assert {source["waits_for"]["lack"] for source in waiting} == {"descriptors"}
            with pytest.raises(AssertionError):
                wait_until(lambda: not told(), "the end of it", ATTEMPTS_S)

        def are_ready() -> bool:
            return all(client.get(f"/v1/sources/{source_id}").json()["ready"] for source_id in made)

        wait_until(are_ready, "every file is ready")
        for source_id in made:
            task = client.get(f"/v1/sources/{source_id}").json()["task"]["id"]
            assert client.get(f"/v1/knowledge/tasks/{task}").json()["attempt"] == 1
    log = installation.files.log.read_text()
    assert log.count("Work waits") == 1
    assert "Traceback" not in log
    installation.hold_to_every_promise()


def test_what_waits_for_room_goes_on_after_restarts(make_installation: MakeInstallation) -> None:
    installation = make_installation(**UNLIMITED)
    installation.start()
    assert installation.svc("upload", "-", "--title", "first.txt", "-b", "inbox", stdin="The umber quay.\n").exit == 0
    with installation.client() as client:
        posted = client.post(f"{BUCKET}/files", files={"file": ("second.txt", b"Another quay.\n" * 100_000)})
    installation.kill()
    source_id = posted.json()["id"]
    # One more than a task has attempts.
    for attempt in range(1, 5):
        installation.environ["SVC_LIMIT_FREE_DISK_BYTES"] = str(10**15)
        installation.start()
        with installation.client() as client:
            wait_until(lambda: client.get("/healthz").json()["shortage"], "it waits for room")
        last = installation.svc("daemon", "status", "--json")
        assert last.json["shortage"]["lack"] == "disk_reserve"
        if attempt == 4:
            for words in (("status", source_id), ("daemon", "status"), ("doctor",)):
                assert "nearly full" in installation.svc(*words).stdout
        installation.stop()
    del installation.environ["SVC_LIMIT_FREE_DISK_BYTES"]
    installation.start()
    assert installation.svc("wait", source_id).exit == 0
    installation.hold_to_every_promise()
