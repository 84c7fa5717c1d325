"""A pack whose connections are cut and whose daemon is killed stores each file once with its own bytes."""

import random
import socket
from hashlib import sha256
from urllib.parse import urlsplit

import pytest

from tests.acceptance.calls import list_sources, make_bucket, port_of, wait_ended
from tests.acceptance.installations import PATIENCE_S, Installation
from tests.acceptance.sessions import Session

BUCKET, FILES, KILLS = "packed", 80, 4


def _make_files() -> dict[str, bytes]:
    draw, words = random.Random(11), ["quay", "mole", "crane", "tide", "umber"]
    texts = (" ".join(draw.choices(words, k=draw.randint(1, 2000))) for _ in range(FILES))
    return {f"{number}.md": f"# Note {number}\n\n{text}\n".encode() for number, text in enumerate(texts)}


def _cut(installation: Installation, pack: Session, first: int, length: int) -> None:
    """Send a request for all remaining bytes with only `length` of them, and reset the connection."""
    total = len(pack.data)
    head = f"PUT {urlsplit(pack.url).path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {total - first}\r\n"
    head += f"Content-Range: bytes {first}-{total - 1}/{total}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port_of(installation)), timeout=PATIENCE_S) as connection:
        connection.sendall(head.encode() + pack.data[first : first + length])


def _finalize(installation: Installation, batch_id: str) -> dict[str, str]:
    """Finalize the batch and return the ids of all sources created so far, by file."""
    with installation.client() as client:
        ended = client.post(f"/v1/buckets/{BUCKET}/batches/{batch_id}/finalize").raise_for_status().json()
    assert ended["failed"] == []
    assert {item["reason"] for item in ended["pending"]} <= {"blob_not_uploaded"}
    return {item["client_file_id"]: item["knowledge_id"] for item in ended["finalized"] + ended["replayed"]}


@pytest.mark.rule("pack.kills")
def test_acknowledged_bytes_of_a_pack_survive_cuts_and_kills(installation: Installation) -> None:
    files = _make_files()
    items = [{"client_file_id": name, "sha256": sha256(data).hexdigest()} for name, data in files.items()]
    sized = [{"client_file_id": name, "filename": name, "size_bytes": len(data)} for name, data in files.items()]
    body = {"pack": True, "manifest": {"version": 1, "items": items}, "files": sized}
    with installation.client() as client:
        make_bucket(client, BUCKET)
        opened = client.post(f"/v1/buckets/{BUCKET}/batches", json=body).raise_for_status().json()
    pack = Session(opened["batch_id"], opened["pack"]["upload_url"], b"".join(files.values()))
    acknowledged, step = 0, len(pack.data) // 6
    for _ in range(KILLS):
        acknowledged = pack.send(port_of(installation), acknowledged, acknowledged + step)
        # Unacknowledged bytes may be lost or stored.
        _cut(installation, pack, acknowledged, step // 2)
        installation.crash()
        before, acknowledged = acknowledged, pack.ask_offset(port_of(installation))
        assert acknowledged >= before
    assert 0 < len(_finalize(installation, pack.id)) < FILES
    installation.crash()
    assert pack.send(port_of(installation), acknowledged) == len(pack.data)
    made = _finalize(installation, pack.id)
    assert made.keys() == files.keys()
    with installation.client() as client:
        for name, source_id in made.items():
            assert wait_ended(client, source_id)["ready"]
            assert client.get(f"/v1/sources/{source_id}/content").content == files[name]
        assert len(list_sources(client, BUCKET)) == FILES
    assert installation.part_sizes() == {}
    installation.assert_intact()
