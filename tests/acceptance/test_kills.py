"""kill -9 of the daemon at random moments: what was acknowledged is there once, with its bytes, and becomes ready."""

import hashlib
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import psutil
import pytest

from tests.acceptance.calls import list_sources, make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation, TooLate, process_tree, wait_until
from tests.corpus import Prose, make_corpus

BUCKET = "load"
CLIENTS = 8
#: No upload needs longer than a few kills and restarts.
UPLOAD_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a client was told about one key."""

    key: str
    data: bytes
    source_id: str


class Client(threading.Thread):
    """Uploads one document after the other, each with its key, and sends again whatever was not acknowledged."""

    def __init__(self, installation: Installation, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"client-{number}")
        self.acknowledged: list[Acknowledged] = []
        self.failure: BaseException | None = None
        self._installation = installation
        self._number = number
        self._stop_event = stop

    def run(self) -> None:
        try:
            while not self._stop_event.is_set():
                self._upload_next()
        except (AssertionError, KeyError, ValueError) as failure:
            self.failure = failure

    def _upload_next(self) -> None:
        key = f"client-{self._number}-{len(self.acknowledged)}"
        data = "\n\n".join(["# Notes", *Prose(key).paragraphs(12)]).encode()
        answer = wait_until(lambda: self._attempt(key, data), f"the acknowledgement of {key}", UPLOAD_TIMEOUT_S)
        self.acknowledged.append(Acknowledged(key, data, answer["id"]))

    def _attempt(self, key: str, data: bytes) -> dict[str, Any] | None:
        """The source, or None where it must be sent again: the daemon is gone, going or not yet there."""
        try:
            with self._installation.client() as client:
                answer = upload(client, BUCKET, f"{key}.md", data, key)
        except (httpx.TransportError, KeyError):
            return None
        if answer.status_code in {200, 201}:
            return dict(answer.json())
        if answer.json()["error"]["retryable"]:
            return None
        raise AssertionError(f"{key}: {answer.status_code} {answer.text}")


def test_every_acknowledged_upload_survives_kills(installation: Installation, large: bool) -> None:
    acknowledged = _upload_under(installation, installation.kill, rounds=40 if large else 6)
    _hold_to_every_word(installation, acknowledged)


def test_every_acknowledged_upload_survives_stops(installation: Installation, large: bool) -> None:
    exits: list[int] = []
    acknowledged = _upload_under(installation, lambda: exits.append(installation.stop()), rounds=20 if large else 2)
    assert set(exits) == {0}
    _hold_to_every_word(installation, acknowledged)


def _hold_to_every_word(installation: Installation, acknowledged: list[Acknowledged]) -> None:
    """Each source exists once, is ready, has its bytes and replays; nothing else is there."""
    assert len(acknowledged) >= CLIENTS
    with installation.client() as client:
        _wait_indexed(client)
        _retry_killed_thrice(client)
        sources = {source["id"]: source for source in list_sources(client, BUCKET)}
        assert sorted(sources) == sorted(one.source_id for one in acknowledged)
        assert [source for source in sources.values() if not source["ready"]] == []
        for one in acknowledged:
            sha256 = hashlib.sha256(one.data).hexdigest()
            content = client.get(f"/v1/sources/{one.source_id}/content").content
            assert (sources[one.source_id]["sha256"], hashlib.sha256(content).hexdigest()) == (sha256, sha256)
            replay = upload(client, BUCKET, f"{one.key}.md", one.data, one.key)
            assert (replay.status_code, replay.json()["id"]) == (200, one.source_id)
    installation.hold_to_every_promise()


def _retry_killed_thrice(client: httpx.Client) -> None:
    """A document that was in work at three kills may be what killed the daemon: it ends `failed` and can be retried."""
    for source in list_sources(client, BUCKET):
        if not source["ready"]:
            assert source["error"]["code"] == "max_attempts_exhausted", source
            client.post(f"/v1/sources/{source['id']}/retry").raise_for_status()
    _wait_indexed(client)


def _upload_under(installation: Installation, end: Callable[[], None], rounds: int) -> list[Acknowledged]:
    """Eight clients upload while the daemon is ended at random moments and started again; what they were told."""
    with installation.client() as client:
        make_bucket(client, BUCKET)
    moments = random.Random(2)
    # The first one reads the standard library; Python's parser can't do that in several threads at once.
    Prose("first")
    stop = threading.Event()
    clients = [Client(installation, number, stop) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    try:
        for _ in range(rounds):
            stop.wait(moments.uniform(0.05, 1.0))
            end()
            installation.start()
    finally:
        stop.set()
        for thread in clients:
            thread.join()
    assert [thread.failure for thread in clients if thread.failure] == []
    return [one for thread in clients for one in thread.acknowledged]


def _wait_indexed(client: httpx.Client) -> None:
    def indexed() -> bool:
        store = client.get(f"/v1/buckets/{BUCKET}").json()["bucketStore"]
        return bool(store["pending_member_count"] == 0)

    wait_until(indexed, "the end of indexing", 120)


@pytest.mark.parametrize("victim", ["daemon", "svc"])
def test_a_killed_upload_of_a_folder_goes_on_where_it_was(installation: Installation, victim: str) -> None:
    folder = installation.root / "folder"
    made = [document for document in make_corpus(folder, 40) if document.phrase]
    command = ("upload", "folder", "-b", BUCKET, "--json")
    with installation.client() as client:
        make_bucket(client, BUCKET)

    first = installation.spawn_svc(*command)
    with installation.client() as client:
        wait_until(lambda: len(list_sources(client, BUCKET)) >= 5, "the first five files")
    if victim == "daemon":
        installation.kill()
    else:
        first.kill()
    first.communicate(timeout=120)

    second = installation.svc(*command)
    assert second.exit == 3, "the folder has documents that fail"
    with installation.client() as client:
        sources = list_sources(client, BUCKET)
        titles = [source["title"] for source in sources]
        assert len(titles) == len(set(titles))
        assert sum(source["ready"] for source in sources) == len(made)
    third = installation.svc(*command)
    assert third.json["bytes_sent"] == 0
    installation.hold_to_every_promise()


def test_children_end_with_a_killed_daemon(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, BUCKET)
        wait_ended(client, upload(client, BUCKET, "notes.md", b"# Notes\n\nSome text.").json()["id"])
    assert installation.pid is not None
    children = process_tree(installation.pid)[1:]
    installation.kill()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_a_boot_after_a_kill_leaves_nothing_where_it_does_not_belong(installation: Installation) -> None:
    installation.kill()
    stray_blob = installation.files.blobs / "src_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    stray_staging = installation.files.staging / ("0" * 32)
    for stray in (stray_blob, stray_staging):
        stray.write_bytes(b"nobody's")
    installation.start()
    wait_until(lambda: not stray_blob.exists() and not stray_staging.exists(), "the sweeper's round")
    assert [path.read_bytes() for path in installation.files.aside.glob(f"*/{stray_blob.name}")] == [b"nobody's"]
    installation.hold_to_every_promise()


def test_a_deadline_names_what_it_waited_for() -> None:
    with pytest.raises(TooLate, match=r"the moon: not within 0\.01 s"):
        wait_until(lambda: False, "the moon", timeout_s=0.01)
