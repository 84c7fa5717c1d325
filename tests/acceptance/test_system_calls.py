"""Acknowledged files survive a failing system call or a kill at one: each is stored once and becomes ready.

`strace` injects the faults. It counts calls per thread, so the number of a call tells how far a thread has come.
"""

import hashlib
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.calls import list_sources, make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation, WaitTimeout, wait_until
from tests.conftest import UNLIMITED, MakeInstallation
from tests.corpus import Prose

BUCKET = "faults"
STRACE = shutil.which("strace")
#: The system calls that write, sync, rename and remove files, and how many of each one thread makes from the
#: start to the end of the load below.
CALLS = {
    "fsync": 16,
    "fdatasync": 44,
    "syncfs": 1,
    "link": 12,
    "rename": 9,
    "unlink": 2,
    "pwrite64": 480,
    "write": 17,
    "openat": 1500,
}
#: A disk that is full or turns read-only fails all of these from some moment on.
DISK_CALLS, DISK_FAULTS = "pwrite64,ftruncate,fsync,fdatasync,syncfs,rename,link,mkdir", ("error=ENOSPC", "error=EROFS")
#: A full, broken or read-only disk, too few descriptors, no memory, and a kill of the process.
FAULTS = ("error=ENOSPC", "error=EIO", "error=EROFS", "error=EMFILE", "error=ENOMEM", "signal=KILL")
#: How long a client waits for a response before it sends the request again.
ANSWER_S = 10.0


def can_trace() -> bool:
    """Whether strace is installed and allowed to trace."""
    if STRACE is None:
        return False
    return subprocess.run([STRACE, "-qq", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.skipif(not can_trace(), reason="no strace is installed, or it may not trace here"),
    pytest.mark.sqlite,
    pytest.mark.folders,
]


@dataclass
class Load:
    """Files that a client sends with idempotency keys, repeatedly until each is acknowledged."""

    files: dict[str, bytes] = field(default_factory=lambda: {f"{n}.md": _note(n) for n in range(8)})
    #: Files that are sent as one pack.
    packed: dict[str, bytes] = field(default_factory=lambda: {f"{n}.md": _note(n) for n in range(8, 20)})
    #: The acknowledged source ids, by file.
    ids: dict[str, str] = field(default_factory=dict)
    #: Sources whose deletion was acknowledged.
    deleted: set[str] = field(default_factory=set)

    def send(self, installation: Installation) -> None:
        """Send all files and delete the source of the first; raises httpx.TransportError."""
        with installation.client() as client:
            client.timeout = httpx.Timeout(ANSWER_S)
            client.put(f"/v1/buckets/{BUCKET}")
            for name, data in self.files.items():
                answer = upload(client, BUCKET, name, data, f"key-{name}")
                if _is_taken(answer):
                    assert self.ids.setdefault(name, answer.json()["id"]) == answer.json()["id"]
            self._send_pack(client)
            if "0.md" in self.ids and client.delete(f"/v1/sources/{self.ids['0.md']}").status_code in {200, 404}:
                self.deleted.add(self.ids["0.md"])

    @property
    def is_sent(self) -> bool:
        return self.ids.keys() == {*self.files, *self.packed}

    def _send_pack(self, client: httpx.Client) -> None:
        """Send the pack from its beginning, and finalize its batch."""
        items = [{"client_file_id": name, "sha256": _hash(data)} for name, data in self.packed.items()]
        files = [{"client_file_id": n, "filename": n, "size_bytes": len(data)} for n, data in self.packed.items()]
        body = {"pack": True, "manifest": {"version": 1, "items": items}, "files": files}
        path = f"/v1/buckets/{BUCKET}/batches"
        opened = client.post(path, json=body, headers={"Idempotency-Key": "pack"})
        if not _is_taken(opened):
            return
        url = urlsplit(opened.json()["pack"]["upload_url"]).path
        if not _is_taken(client.put(url, content=b"".join(self.packed.values()))):
            return
        ended = client.post(f"{path}/{opened.json()['batch_id']}/finalize")
        for item in [*ended.json()["finalized"], *ended.json()["replayed"]] if _is_taken(ended) else []:
            name, source_id = item["client_file_id"], item["knowledge_id"]
            assert self.ids.setdefault(name, source_id) == source_id

    def assert_stored(self, installation: Installation) -> None:
        """Assert that each acknowledged file is one ready source with its bytes, and that deleted sources are gone."""
        with installation.client() as client:
            kept = {name: source_id for name, source_id in self.ids.items() if source_id not in self.deleted}
            for name, source_id in kept.items():
                assert wait_ended(client, source_id)["ready"], name
                content = client.get(f"/v1/sources/{source_id}/content").content
                assert _hash(content) == _hash((self.files | self.packed)[name])
            assert sorted(source["id"] for source in list_sources(client, BUCKET)) == sorted(kept.values())


def _is_taken(answer: httpx.Response) -> bool:
    """Return whether the request succeeded, and assert that it may be retried if not."""
    assert answer.status_code in {200, 201} or answer.json()["error"]["retryable"], answer.text
    return answer.is_success


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _note(number: int) -> bytes:
    return "\n\n".join([f"# Note {number}", *Prose(f"note-{number}").paragraphs(3)]).encode()


def _moments(count: int) -> Iterator[tuple[str, str, str]]:
    """Yield random system calls, faults and call numbers (`+`: from this call on), the same ones in each run."""
    draw = random.Random(count)
    for call in draw.choices(list(CALLS), k=count):
        yield call, draw.choice(FAULTS), f"{draw.randint(1, CALLS[call])}{draw.choice(['', '+'])}"
    for fault in DISK_FAULTS:
        for first in draw.sample(range(1, CALLS["fdatasync"]), max(1, count // 10)):
            yield DISK_CALLS, fault, f"{first}+"


def test_acknowledged_files_survive_failed_system_calls(make_installation: MakeInstallation, large: bool) -> None:
    for number, moment in enumerate(_moments(200 if large else 3)):
        installation = make_installation(f"at-{number}", **UNLIMITED)
        try:
            _run_through(installation, moment)
        except AssertionError as failed:
            raise AssertionError(f"{moment}: {failed}; it printed: {installation.printed()}") from failed
        # Only for the space: the daemon is still running.
        shutil.rmtree(installation.files.root, ignore_errors=True)


def _run_through(installation: Installation, moment: tuple[str, str, str]) -> None:
    """Run the load against a daemon with the fault, restart it without, and assert that every file is stored."""
    with installation.start().client() as client:
        make_bucket(client, BUCKET)
    assert installation.stop() == 0
    load, (call, fault, when) = Load(), moment
    launcher = (STRACE or "", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null")
    try:
        installation.start((*launcher, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}"))
        load.send(installation)
    except (WaitTimeout, httpx.TransportError):
        pass
    finally:
        installation.kill()
    installation.start()

    def is_all_sent() -> bool:
        load.send(installation)
        return load.is_sent

    wait_until(is_all_sent, "the acknowledgement of all files")
    load.assert_stored(installation)
    installation.assert_intact()
