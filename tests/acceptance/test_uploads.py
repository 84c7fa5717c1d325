"""Resumable uploads to a real daemon work with Google's client over cut connections, and keep their tokens secret."""

import hashlib
import io
import random
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from google.resumable_media import InvalidResponse, RetryStrategy
from google.resumable_media.requests import ResumableUpload

from tests.acceptance.calls import make_bucket, port_of
from tests.acceptance.installations import Installation
from tests.acceptance.proxies import CuttingProxy
from tests.acceptance.sessions import Session

BUCKET = "inbox"
SIZE = 20_000_000


def finalize(installation: Installation, session: Session) -> None:
    """Finalize the session, and assert that the source has its bytes."""
    with installation.client() as client:
        made = client.post(f"/v1/buckets/{BUCKET}/uploads/{session.id}/finalize").raise_for_status().json()
        assert client.get(f"/v1/sources/{made['id']}/content").content == session.data
    assert made["sha256"] == hashlib.sha256(session.data).hexdigest()


@pytest.mark.rule("session.unlogged", "auth.upload-url")
def test_upload_token_is_in_no_log_or_stored_file(shared_installation: Installation) -> None:
    with shared_installation.client() as client:
        make_bucket(client, BUCKET)
        body = {"filename": "notes.txt", "size_bytes": 100}
        opened = client.post(f"/v1/buckets/{BUCKET}/uploads", json=body).raise_for_status().json()
    session = Session(opened["session_id"], opened["upload_url"], b"x" * 100)
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
def test_google_client_completes_an_upload_over_cut_connections(shared_installation: Installation, large: bool) -> None:
    cuts, data = 100 if large else 30, random.Random(7).randbytes(SIZE)
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
