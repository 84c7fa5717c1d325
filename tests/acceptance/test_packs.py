"""Packs that are cut, sent by two clients or interrupted by kills store each file once with its own bytes."""

import random
import socket
import struct
import threading
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.calls import list_sources, make_bucket, port_of, wait_ended
from tests.acceptance.installations import PATIENCE_S, Installation, wait_until

BUCKET = "packed"


@dataclass
class Pack:
    """A batch of random files and the pack in which they are sent."""

    installation: Installation
    seed: int
    count: int = 30
    files: dict[str, bytes] = field(init=False)
    opened: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.files = {f"{self.seed}-{number}": self._text(number) for number in range(self.count)}
        self.data = b"".join(self.files.values())
        items = [{"client_file_id": name, "sha256": sha256(data).hexdigest()} for name, data in self.files.items()]
        sized = [
            {"client_file_id": name, "filename": f"{name}.md", "size_bytes": len(data)}
            for name, data in self.files.items()
        ]
        body = {"pack": True, "manifest": {"version": 1, "items": items}, "files": sized}
        with self.installation.client() as client:
            make_bucket(client, BUCKET)
            self.opened = client.post(f"/v1/buckets/{BUCKET}/batches", json=body).raise_for_status().json()
        self.path = urlsplit(self.opened["pack"]["upload_url"]).path

    def _text(self, number: int) -> bytes:
        words = self.random.choices(["quay", "mole", "crane", "tide", "umber"], k=self.random.randint(1, 2000))
        return f"# Note {self.seed}-{number}\n\n{' '.join(words)}\n".encode()

    def ask(self) -> int:
        """Ask the daemon how many bytes of the pack it has."""
        with self.installation.client() as client:
            return self._received(client.put(self.path, headers={"Content-Range": f"bytes */{len(self.data)}"}))

    def send(self, first: int, end: int) -> int:
        """Send a part of the pack and return how many bytes are acknowledged."""
        headers = {"Content-Range": f"bytes {first}-{end - 1}/{len(self.data)}"}
        with self.installation.client() as client:
            return self._received(client.put(self.path, content=self.data[first:end], headers=headers))

    def _received(self, answer: httpx.Response) -> int:
        """Return how many bytes a response acknowledges; 0 if another client is sending or has sent them."""
        if answer.status_code == 200:
            return len(self.data)
        if answer.status_code == 409:
            assert answer.json()["error"]["code"] in {"request_in_progress", "offset_mismatch"}
            return 0
        assert answer.status_code == 308, answer.text
        stored = answer.headers.get("Range")
        return int(stored.removeprefix("bytes=0-")) + 1 if stored else 0

    def cut(self, first: int, length: int) -> None:
        """Send a request for all remaining bytes with only `length` of them, and close or reset the connection."""
        total = len(self.data)
        head = f"PUT {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Range: bytes {first}-{total - 1}/{total}\r\n"
        head += f"Content-Length: {total - first}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port_of(self.installation)), timeout=PATIENCE_S) as connection:
            connection.sendall(head.encode() + self.data[first : first + length])
            if self.random.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def finalize(self) -> dict[str, str]:
        """Finalize the batch and return the ids of all sources created so far, by file."""
        path = f"/v1/buckets/{BUCKET}/batches/{self.opened['batch_id']}/finalize"
        with self.installation.client() as client:
            # The request has to be repeated while another client finalizes the batch.
            answer = wait_until(
                lambda: None if (one := client.post(path)).status_code == 409 else one, "the end of the other finalize"
            )
            ended = answer.raise_for_status().json()
        assert ended["failed"] == []
        assert {item["reason"] for item in ended["pending"]} <= {"blob_not_uploaded"}
        return {item["client_file_id"]: item["knowledge_id"] for item in ended["finalized"] + ended["replayed"]}

    def assert_stored(self) -> None:
        """Finalize the batch and assert that each file is a ready source with its bytes."""
        made = self.finalize()
        assert made.keys() == self.files.keys()
        with self.installation.client() as client:
            for name, source_id in made.items():
                assert wait_ended(client, source_id)["ready"]
                assert client.get(f"/v1/sources/{source_id}/content").content == self.files[name]


def _assert_all_stored(installation: Installation, packs: list[Pack]) -> None:
    for pack in packs:
        pack.assert_stored()
    with installation.client() as client:
        assert len(list_sources(client, BUCKET)) == sum(pack.count for pack in packs)
    assert installation.part_sizes() == {}
    installation.assert_intact()


@pytest.mark.rule("pack.kills")
def test_pack_cut_a_hundred_times_is_stored_completely(installation: Installation) -> None:
    packs = [Pack(installation, seed) for seed in range(4)]
    for pack in packs:
        stored = 0
        for _ in range(25):
            stored, before = pack.ask(), stored
            assert stored >= before
            pack.cut(stored, pack.random.randint(0, (len(pack.data) - stored) // 8))
        assert 0 < pack.ask() < len(pack.data)
        assert wait_until(lambda: pack.send(pack.ask(), len(pack.data)), "the rest of the pack") == len(pack.data)  # noqa: B023
    _assert_all_stored(installation, packs)


@pytest.mark.rule("pack.kills")
def test_two_clients_sending_the_same_pack_create_each_source_once(installation: Installation) -> None:
    pack = Pack(installation, seed=7, count=60)
    made: list[dict[str, str]] = []

    def send(seed: int) -> None:
        draw, stored = random.Random(seed), 0
        while stored < len(pack.data):
            pack.send(stored, draw.randint(stored + 1, min(stored + 20_000, len(pack.data))))
            stored = pack.ask()
        made.append(pack.finalize())

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made[0] == made[1]
    _assert_all_stored(installation, [pack])


@pytest.mark.rule("pack.kills")
def test_acknowledged_bytes_of_a_pack_survive_kills(installation: Installation) -> None:
    pack = Pack(installation, seed=11, count=80)
    acknowledged, step = 0, len(pack.data) // 6
    for _ in range(4):
        acknowledged = pack.send(acknowledged, acknowledged + step)
        # Unacknowledged bytes may be lost or stored.
        pack.cut(acknowledged, step // 2)
        installation.crash()
        before, acknowledged = acknowledged, pack.ask()
        assert acknowledged >= before
    assert 0 < len(pack.finalize()) < pack.count
    installation.crash()
    assert pack.send(acknowledged, len(pack.data)) == len(pack.data)
    _assert_all_stored(installation, [pack])
