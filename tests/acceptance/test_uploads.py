"""Resumable uploads against a real daemon: cut connections, dead writers, kills, and Google's own client."""

import hashlib
import io
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import requests
from google.resumable_media import InvalidResponse, RetryStrategy
from google.resumable_media.requests import ResumableUpload

from tests.acceptance.calls import list_sources, make_bucket, port_of
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.proxies import CuttingProxy

BUCKET = "inbox"
SIZE = 20_000_000


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(7).randbytes(SIZE)


@dataclass(frozen=True)
class Session:
    """An upload session and what is to be sent."""

    id: str
    url: str
    data: bytes

    def at(self, port: int) -> str:
        """The upload URL through a proxy on this port."""
        return urlsplit(self.url)._replace(netloc=f"127.0.0.1:{port}").geturl()


def open_session(client: httpx.Client, data: bytes, **fields: Any) -> Session:
    body = {"filename": "notes.txt", "size_bytes": len(data)} | fields
    answer = client.post(f"/v1/buckets/{BUCKET}/uploads", json=body)
    assert answer.status_code == 201, answer.text
    return Session(answer.json()["session_id"], answer.json()["upload_url"], data)


def offset_of(answer: httpx.Response, size: int) -> int:
    """How many bytes are stored, by the answer to a PUT."""
    if answer.status_code == 200:
        return size
    assert answer.status_code == 308, answer.text
    told: str | None = answer.headers.get("Range")
    return int(told.removeprefix("bytes=0-")) + 1 if told else 0


def ask_offset(session: Session, url: str) -> int:
    answer = httpx.put(url, headers={"Content-Range": f"bytes */{len(session.data)}"}, trust_env=False, timeout=30)
    return offset_of(answer, len(session.data))


def send_from(session: Session, url: str, offset: int) -> int:
    """Send the rest; the offset then. Raises httpx.TransportError when it is cut."""
    size = len(session.data)
    headers = {"Content-Range": f"bytes {offset}-{size - 1}/{size}"}
    answer = httpx.put(url, content=session.data[offset:], headers=headers, trust_env=False, timeout=30)
    return offset_of(answer, size)


def finalize(client: httpx.Client, session: Session) -> dict[str, Any]:
    answer = client.post(f"/v1/buckets/{BUCKET}/uploads/{session.id}/finalize")
    assert answer.status_code in (200, 201), answer.text
    return dict(answer.json())


def hold_to_bytes(client: httpx.Client, source: dict[str, Any], data: bytes) -> None:
    content = client.get(f"/v1/sources/{source['id']}/content").content
    assert source["sha256"] == hashlib.sha256(data).hexdigest() == hashlib.sha256(content).hexdigest()


@contextmanager
def prepared(installation: Installation) -> Iterator[httpx.Client]:
    with installation.client() as client:
        make_bucket(client, BUCKET)
        yield client


def test_an_upload_cut_at_random_places_is_whole(shared_installation: Installation, data: bytes, large: bool) -> None:
    cuts = 100 if large else 15
    moments = random.Random(11)
    # Together less than the file, so that each of them ends in a cut.
    budgets = [moments.randrange(1, SIZE // cuts) for _ in range(cuts)]
    with prepared(shared_installation) as client, CuttingProxy(port_of(shared_installation), budgets) as proxy:
        session = open_session(client, data, sha256=hashlib.sha256(data).hexdigest())
        lost, offset = [], 0
        while offset < SIZE:
            number, before = len(proxy.forwarded), offset
            try:
                offset = send_from(session, session.at(proxy.port), before)
            except httpx.TransportError:
                offset = ask_offset(session, session.url)
            lost.append(proxy.body_bytes(number) - (offset - before))
        assert proxy.cuts == cuts
        # Nothing is acknowledged that did not come, and what the uncut connection sent is taken whole.
        assert min(lost) >= 0
        assert lost[-1] == 0
        assert sum(map(proxy.body_bytes, range(len(lost)))) == SIZE + sum(lost)
        # Only what lay in the buffers of a connection when it was cut is sent again.
        assert sum(lost) < proxy.cuts * 512 * 1024
        hold_to_bytes(client, finalize(client, session), data)


def test_a_dead_writer_is_taken_over_while_its_connection_is_open(shared_installation: Installation) -> None:
    data = b"x" * 4_000_000
    with prepared(shared_installation) as client:
        session = open_session(client, data)
        with socket.create_connection(("127.0.0.1", port_of(shared_installation))) as dead:
            head = f"PUT {urlsplit(session.url).path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4000000\r\n\r\n"
            dead.sendall(head.encode() + data[:3_000_000])
            part = shared_installation.files.parts / session.id
            wait_until(part.exists, "the dead writer has begun")
            offset = ask_offset(session, session.url)
            assert 0 < offset <= 3_000_000
            assert send_from(session, session.url, offset) == len(data)
        hold_to_bytes(client, finalize(client, session), data)


def test_kills_between_chunks_lose_no_acknowledged_byte(installation: Installation, large: bool) -> None:
    data = random.Random(3).randbytes(10_000_000 if large else 3_000_000)
    moments = random.Random(5)
    with prepared(installation) as client:
        session = open_session(client, data)
    offset = 0
    for _ in range(20 if large else 6):
        end = min(offset + moments.randrange(1, 400_000), len(data) - 1)
        offset = max(offset, _send_chunk(session, session.at(port_of(installation)), offset, end))
        installation.kill()
        installation.start()
        stored = ask_offset(session, session.at(port_of(installation)))
        assert stored == offset
    assert send_from(session, session.at(port_of(installation)), offset) == len(data)
    installation.kill()
    installation.start()
    with installation.client() as client:
        first = finalize(client, session)
        hold_to_bytes(client, first, data)
        assert finalize(client, session)["id"] == first["id"]
    installation.kill()
    installation.start()
    with installation.client() as client:
        assert finalize(client, session)["id"] == first["id"]
    installation.hold_to_every_promise()
    assert list(installation.files.parts.iterdir()) == []


def _send_chunk(session: Session, url: str, offset: int, end: int) -> int:
    size = len(session.data)
    headers = {"Content-Range": f"bytes {offset}-{end - 1}/{size}"}
    answer = httpx.put(url, content=session.data[offset:end], headers=headers, trust_env=False, timeout=30)
    return offset_of(answer, size)


def test_kills_in_the_middle_of_a_finalize_double_nothing(installation: Installation, large: bool) -> None:
    moments = random.Random(13)
    files = {f"f{number}": b"Crane number %d stands on the quay.\n" % number for number in range(60)}
    with prepared(installation) as client:
        listed = [{"client_file_id": name, "filename": f"{name}.md", "size_bytes": len(files[name])} for name in files]
        items = [{"client_file_id": name} for name in files]
        body = {"manifest": {"version": 1, "items": items}, "files": listed}
        batch = client.post(f"/v1/buckets/{BUCKET}/batches", json=body)
        assert batch.status_code == 201, batch.text
        for item in batch.json()["items"]:
            assert client.put(item["upload_url"], content=files[item["client_file_id"]]).status_code == 200
    path = f"/v1/buckets/{BUCKET}/batches/{batch.json()['batch_id']}/finalize"
    for _ in range(20 if large else 5):
        with installation.client() as client, ThreadPoolExecutor(1) as executor:
            asked = executor.submit(_try_to_post, client, path)
            time.sleep(moments.uniform(0, 0.12))
            installation.kill()
            asked.result()
        installation.start()
    with installation.client() as client:
        told = client.post(path).json()
        made = [item["knowledge_id"] for item in told["finalized"] + told["replayed"]]
        assert len(set(made)) == len(made) == len(files)
        assert sorted(source["id"] for source in list_sources(client, BUCKET)) == sorted(made)
    installation.hold_to_every_promise()
    assert list(installation.files.parts.iterdir()) == []


def _try_to_post(client: httpx.Client, path: str) -> None:
    with suppress(httpx.TransportError):
        client.post(path)


def test_no_token_reaches_the_log(shared_installation: Installation) -> None:
    with prepared(shared_installation) as client:
        session = open_session(client, b"x" * 100)
        token = urlsplit(session.url).path.rpartition("/")[2]
        send_from(session, session.url, 0)
        client.get(session.url)
        client.put(f"{session.url}/more", content=b"x")
        finalize(client, session)
    written = shared_installation.files.log.read_text(encoding="utf-8") + shared_installation.printed()
    assert "/v1/storage/{session_id}/{token}" in written
    assert token not in written


#: Their functions have no types.
_GOOGLES_UPLOAD: Any = ResumableUpload
_GOOGLES_RETRIES: Any = RetryStrategy


class GooglesClient:
    """Google's resumable client against our sessions."""

    def __init__(self, installation: Installation, data: bytes) -> None:
        self._transport = requests.Session()
        self._transport.trust_env = False
        self._key = installation.key
        self._data = data

    def initiate(self, base_url: str) -> Any:
        """A session by its own `initiate`, which finds the upload URL in the Location header."""
        url = f"{base_url}/v1/buckets/{BUCKET}/uploads"
        upload = _GOOGLES_UPLOAD(url, 1024 * 1024, headers={"Authorization": f"Bearer {self._key}"})
        # What fails is the test's to repeat: the client's own waits are long.
        upload._retry_strategy = _GOOGLES_RETRIES(max_retries=0)
        metadata = {"filename": "google.txt", "size_bytes": len(self._data)}
        upload.initiate(self._transport, io.BytesIO(self._data), metadata, "text/plain")
        return upload

    def send(self, upload: Any) -> None:
        """Send chunk by chunk, and recover by its own means whenever one fails."""
        while not upload.finished:
            try:
                upload.transmit_next_chunk(self._transport)
            except (requests.ConnectionError, InvalidResponse):
                if self._recover(upload):
                    return

    def _recover(self, upload: Any) -> bool:
        """Whether it was whole already: then only the answer to the last chunk was lost."""
        while True:
            try:
                upload._make_invalid()
                upload.recover(self._transport)
            except requests.ConnectionError:
                continue
            except InvalidResponse as told:
                assert told.response.status_code == 200, told.response.text
                return True
            return False

    def close(self) -> None:
        self._transport.close()


@pytest.mark.parametrize("is_cut", [False, True])
def test_googles_own_client_uploads(shared_installation: Installation, data: bytes, is_cut: bool, large: bool) -> None:
    cuts = (100 if large else 30) if is_cut else 0
    google = GooglesClient(shared_installation, data)
    moments = random.Random(cuts)
    with prepared(shared_installation) as client, CuttingProxy(port_of(shared_installation), []) as proxy:
        upload = google.initiate(f"http://127.0.0.1:{proxy.port}")
        assert upload.resumable_url.startswith(f"http://127.0.0.1:{proxy.port}/v1/storage/")
        google.close()  # so that the next connection is cut
        proxy.budgets += [moments.randrange(1, SIZE // cuts) for _ in range(cuts)]
        google.send(upload)
        google.close()
        assert proxy.cuts == cuts
        session = Session(urlsplit(upload.resumable_url).path.split("/")[-2], upload.resumable_url, data)
        hold_to_bytes(client, finalize(client, session), data)
