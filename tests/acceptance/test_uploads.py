"""Resumable uploads to a real daemon survive cut connections, dead writers and kills, and work with Google's client."""

import hashlib
import io
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
from tests.acceptance.sessions import Session

BUCKET = "inbox"
SIZE = 20_000_000


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(7).randbytes(SIZE)


def open_session(installation: Installation, data: bytes, **fields: Any) -> Session:
    body = {"filename": "notes.txt", "size_bytes": len(data)} | fields
    with installation.client() as client:
        make_bucket(client, BUCKET)
        answer = client.post(f"/v1/buckets/{BUCKET}/uploads", json=body)
    assert answer.status_code == 201, answer.text
    return Session(answer.json()["session_id"], answer.json()["upload_url"], data)


def finalize(installation: Installation, session: Session) -> str:
    """Finalize the session, assert that the source has its bytes, and return the source id."""
    sha256 = hashlib.sha256(session.data).hexdigest()
    with installation.client() as client:
        answer = client.post(f"/v1/buckets/{BUCKET}/uploads/{session.id}/finalize")
        assert answer.status_code in (200, 201), answer.text
        content = client.get(f"/v1/sources/{answer.json()['id']}/content").content
    assert answer.json()["sha256"] == hashlib.sha256(content).hexdigest() == sha256
    return str(answer.json()["id"])


@pytest.mark.rule("upload.cut")
def test_upload_cut_at_random_bytes_is_stored_completely(
    shared_installation: Installation, data: bytes, large: bool
) -> None:
    cuts = 100 if large else 15
    moments = random.Random(11)
    # Less than the file in total, so that each of these connections is cut.
    budgets = [moments.randrange(1, SIZE // cuts) for _ in range(cuts)]
    port = port_of(shared_installation)
    session = open_session(shared_installation, data, sha256=hashlib.sha256(data).hexdigest())
    lost, offset = [], 0
    with CuttingProxy(port, budgets) as proxy:
        while offset < SIZE:
            number, before = len(proxy.forwarded), offset
            try:
                offset = session.send(proxy.port, before)
            except httpx.TransportError:
                offset = session.ask_offset(port)
            lost.append(proxy.body_bytes(number) - (offset - before))
    assert proxy.cuts == cuts
    # No more is acknowledged than was sent, and all bytes of the last, uncut connection are.
    assert min(lost) >= 0
    assert (lost[-1], sum(map(proxy.body_bytes, range(len(lost))))) == (0, SIZE + sum(lost))
    # Only bytes that were buffered when a connection was cut are sent again.
    assert sum(lost) < proxy.cuts * 512 * 1024
    finalize(shared_installation, session)


def test_second_writer_takes_over_from_a_stalled_one_whose_connection_is_open(
    shared_installation: Installation,
) -> None:
    port = port_of(shared_installation)
    # More than a node buffers before it stores an object.
    session = open_session(shared_installation, b"x" * 12_000_000)
    with socket.create_connection(("127.0.0.1", port)) as dead:
        head = f"PUT {urlsplit(session.url).path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 12000000\r\n\r\n"
        dead.sendall(head.encode() + session.data[:9_000_000])
        wait_until(lambda: shared_installation.part_sizes().get(session.id), "the first bytes of the stalled writer")
        offset = session.ask_offset(port)
        assert 0 < offset <= 9_000_000
        assert session.send(port, offset) == len(session.data)
    finalize(shared_installation, session)


def test_kills_between_parts_lose_no_acknowledged_byte(installation: Installation, large: bool) -> None:
    moments = random.Random(5)
    session = open_session(installation, random.Random(3).randbytes(10_000_000 if large else 3_000_000))
    offset = 0
    for _ in range(20 if large else 5):
        end = min(offset + moments.randrange(1, 400_000), len(session.data) - 1)
        offset = max(offset, session.send(port_of(installation), offset, end))
        installation.crash()
        assert session.ask_offset(port_of(installation)) == offset
    assert session.send(port_of(installation), offset) == len(session.data)
    ids = set()
    for _ in range(2):
        installation.crash()
        ids |= {finalize(installation, session), finalize(installation, session)}
    assert len(ids) == 1
    installation.assert_intact()
    assert installation.part_sizes() == {}


@pytest.mark.rule("finalize.repeated")
def test_kills_during_finalize_of_a_batch_create_no_duplicates(installation: Installation, large: bool) -> None:
    moments = random.Random(13)
    files = {f"f{number}": b"Crane number %d looks over the quay.\n" % number for number in range(60)}
    listed = [{"client_file_id": name, "filename": f"{name}.md", "size_bytes": len(files[name])} for name in files]
    items = [{"client_file_id": name} for name in files]
    with installation.client() as client:
        make_bucket(client, BUCKET)
        body = {"manifest": {"version": 1, "items": items}, "files": listed}
        batch = client.post(f"/v1/buckets/{BUCKET}/batches", json=body).raise_for_status().json()
        for item in batch["items"]:
            assert client.put(item["upload_url"], content=files[item["client_file_id"]]).status_code == 200
    path = f"/v1/buckets/{BUCKET}/batches/{batch['batch_id']}/finalize"

    def try_to_post(client: httpx.Client) -> None:
        with suppress(httpx.TransportError):
            client.post(path)

    for _ in range(20 if large else 5):
        with installation.client() as client, ThreadPoolExecutor(1) as executor:
            asked = executor.submit(try_to_post, client)
            time.sleep(moments.uniform(0, 0.12))
            installation.kill()
            asked.result()
        installation.start()
    with installation.client() as client:
        ended = client.post(path).json()
        made = [item["knowledge_id"] for item in ended["finalized"] + ended["replayed"]]
        assert len(set(made)) == len(made) == len(files)
        assert sorted(source["id"] for source in list_sources(client, BUCKET)) == sorted(made)
    installation.assert_intact()
    assert installation.part_sizes() == {}


def test_incomplete_form_stores_nothing_and_its_idempotency_key_stays_usable(shared_installation: Installation) -> None:
    with shared_installation.client() as client:
        make_bucket(client, "broken")
        file, headers = ("big.txt", b"x" * 3_000_000), {"Idempotency-Key": "broken"}
        form = client.build_request("POST", "/v1/buckets/broken/files", files={"file": file}, headers=headers)
        head = [f"POST {form.url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in form.headers.items()), "", ""]
        with socket.create_connection(("127.0.0.1", port_of(shared_installation))) as connection:
            connection.sendall("\r\n".join(head).encode() + form.read()[:2_500_000])
            wait_until(shared_installation.is_staging, "the first bytes of the file")
        wait_until(lambda: not shared_installation.is_staging(), "the end of the incomplete upload")
        assert list_sources(client, "broken") == []
        whole = client.send(form)
        assert (whole.status_code, "Idempotent-Replayed" in whole.headers) == (201, False)


@pytest.mark.rule("session.unlogged", "auth.upload-url")
def test_upload_token_is_in_no_log_or_stored_file(shared_installation: Installation) -> None:
    session = open_session(shared_installation, b"x" * 100)
    token = urlsplit(session.url).path.rpartition("/")[2]
    session.send(port_of(shared_installation), 0)
    with shared_installation.client() as client:
        client.get(session.url)
        client.put(session.url, content=b"x", headers={"Content-Range": "bytes 9-8/7"})
        client.put(f"{session.url}/more", content=b"x")
    finalize(shared_installation, session)
    routes = {line.get("fields", {}).get("route") for line in shared_installation.log_lines()}
    assert "/v1/storage/{session_id}/{token}" in routes
    assert token not in shared_installation.printed()
    stored = [path for path in shared_installation.root.rglob("*") if path.is_file()]
    assert [path for path in stored if token.encode() in path.read_bytes()] == []


#: Google's functions have no type annotations.
_GOOGLES_UPLOAD: Any = ResumableUpload
_GOOGLES_RETRIES: Any = RetryStrategy


class GooglesClient:
    """Google's client for resumable uploads with one upload session."""

    def __init__(self, installation: Installation, base_url: str, data: bytes) -> None:
        """Open the session with the client's `initiate`, which takes the upload URL from the Location header."""
        self.transport = requests.Session()
        self.transport.trust_env = False
        url, headers = f"{base_url}/v1/buckets/{BUCKET}/uploads", {"Authorization": f"Bearer {installation.key}"}
        self.upload = _GOOGLES_UPLOAD(url, 1024 * 1024, headers=headers)
        # The test repeats failed requests itself, because the client waits long before it retries.
        self.upload._retry_strategy = _GOOGLES_RETRIES(max_retries=0)
        metadata = {"filename": "google.txt", "size_bytes": len(data)}
        self.upload.initiate(self.transport, io.BytesIO(data), metadata, "text/plain")

    def send(self) -> None:
        """Send the data in chunks, and use the client's own recovery whenever one fails."""
        while not self.upload.finished:
            try:
                self.upload.transmit_next_chunk(self.transport)
            except (requests.ConnectionError, InvalidResponse):
                if self._recover():
                    return

    def _recover(self) -> bool:
        """Recover the offset; return whether the upload is complete and only the last response was lost."""
        while True:
            try:
                self.upload._make_invalid()
                self.upload.recover(self.transport)
            except requests.ConnectionError:
                continue
            except InvalidResponse as invalid:
                assert invalid.response.status_code == 200, invalid.response.text
                return True
            return False


@pytest.mark.rule("service.session", "upload.put")
def test_google_client_completes_an_upload_over_cut_connections(
    shared_installation: Installation, data: bytes, large: bool
) -> None:
    cuts = 100 if large else 30
    moments = random.Random(cuts)
    with shared_installation.client() as client:
        make_bucket(client, BUCKET)
    with CuttingProxy(port_of(shared_installation), []) as proxy:
        google = GooglesClient(shared_installation, f"http://127.0.0.1:{proxy.port}", data)
        url = google.upload.resumable_url
        assert url.startswith(f"http://127.0.0.1:{proxy.port}/v1/storage/")
        google.transport.close()  # so that the next connection is cut
        proxy.budgets += [moments.randrange(1, SIZE // cuts) for _ in range(cuts)]
        google.send()
        google.transport.close()
        assert proxy.cuts == cuts
    finalize(shared_installation, Session(urlsplit(url).path.split("/")[-2], url, data))
