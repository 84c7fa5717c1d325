"""Bad uploads get a clear envelope with the right code; nothing is stored and no key is claimed."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.acceptance.calls import (
    BOUNDARY,
    list_sources,
    make_bucket,
    multipart,
    port_of,
    upload,
    upload_body,
    wait_ended,
)
from tests.acceptance.installations import Installation, wait_until
from tests.samples import make_corrupt_pdf, make_docx_bomb, make_pdf_without_text

FILE = ("file", "notes.md", b"# Notes\n\nSome text.\n")
BUCKET = "inbox"
OVER_25_MB = 26_214_401

#: Body, status, code and headers: one of each check that a form meets on its way; tests/api has all others.
BAD: list[tuple[bytes, int, str, dict[str, str]]] = [
    (multipart([FILE], closed=False)[:-9], 400, "invalid_request", {}),
    (multipart([("file", "empty.txt", b"")]), 400, "empty_file", {}),
    (multipart([("file", "big.txt", bytes(OVER_25_MB))]), 413, "file_too_large", {}),
    (multipart([FILE, ("metadata", None, b'{"k": NaN}')]), 400, "invalid_request", {}),
    (multipart([FILE, ("sha256", None, b"0" * 64)]), 400, "checksum_mismatch", {}),
    (multipart([("file", "..", b"text")]), 400, "invalid_request", {}),
    (multipart([("file", "../", b"text")]), 400, "invalid_request", {}),
    (multipart([("file", "a\u202etxt.exe", b"text")]), 400, "invalid_request", {}),
    (b"{}", 415, "unsupported_media_type", {"Content-Type": "application/json"}),
    (multipart([FILE]), 400, "invalid_idempotency_key", {"Idempotency-Key": "a b"}),
]
BAD_JSON: list[tuple[bytes, str, tuple[int, str]]] = [
    (b'{"query": "a", "query": "b"}', "application/json", (400, "invalid_json")),
    (b"[]", "application/json", (400, "invalid_request")),
    (b'{"query": "a", "team_id": "team_x"}', "application/json", (400, "invalid_request")),
    (b'{"query": "a"}', "text/plain", (415, "unsupported_media_type")),
    (b'{"query": "' + b"a" * 1_100_000 + b'"}', "application/json", (413, "request_too_large")),
    (b"[" * 50 + b"]" * 50, "application/json", (400, "invalid_json")),
]


@pytest.fixture
def client(shared_installation: Installation) -> Iterator[httpx.Client]:
    with shared_installation.client() as client:
        make_bucket(client, BUCKET)
        yield client


def _stored(installation: Installation, client: httpx.Client) -> tuple[int, set[str], set[str]]:
    """How many sources there are, and which blobs and staging files."""
    blobs, staging = (
        {path.name for path in folder.iterdir()} for folder in (installation.files.blobs, installation.files.staging)
    )
    return len(list_sources(client, BUCKET)), blobs, staging


def _refusal(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert body["request_id"] == answer.headers["X-Request-Id"]
    assert body["error"]["message"]
    return answer.status_code, body["error"]["code"]


def test_a_bad_upload_is_refused_and_claims_nothing(shared_installation: Installation, client: httpx.Client) -> None:
    for number, (body, status, code, headers) in enumerate(BAD):
        before = _stored(shared_installation, client)
        key = {"Idempotency-Key": f"bad:{number}"}
        assert _refusal(upload_body(client, BUCKET, body, key | headers)) == (status, code), body[:200]
        assert _stored(shared_installation, client) == before, body[:200]
        again = upload_body(client, BUCKET, multipart([FILE]), key)
        assert (again.status_code, "Idempotent-Replayed" in again.headers) == (201, False), body[:200]


def test_a_name_keeps_only_its_last_component(client: httpx.Client) -> None:
    for filename, kept in [("docs/notes/c.txt", "c.txt"), ("C:\\notes\\a.txt", "a.txt"), ("/abs/b.md", "b.md")]:
        answer = upload_body(client, BUCKET, multipart([("file", filename.replace("\\", "\\\\"), b"text")]))
        assert (answer.status_code, answer.json()["filename"]) == (201, kept)


def test_an_archived_bucket_takes_nothing(shared_installation: Installation, client: httpx.Client) -> None:
    """Nor does one that is not there."""
    make_bucket(client, "attic")
    client.patch("/v1/buckets/attic", json={"status": "archived"}).raise_for_status()
    before = _stored(shared_installation, client)
    for bucket in ("attic", "no-such-bucket", "bkt_missing", "NOT A SLUG"):
        assert _refusal(upload(client, bucket, "notes.md", b"text", key=bucket[:3])) == (404, "bucket_not_found")
    assert _stored(shared_installation, client) == before


def test_a_key_used_with_other_bytes_is_a_conflict(client: httpx.Client) -> None:
    first = upload(client, BUCKET, "notes.md", b"first", key="once")
    assert first.status_code == 201
    assert _refusal(upload(client, BUCKET, "notes.md", b"second", key="once")) == (409, "idempotency_key_conflict")
    replay = upload(client, BUCKET, "notes.md", b"first", key="once")
    assert (replay.status_code, replay.headers["Idempotent-Replayed"]) == (200, "true")
    assert replay.json()["id"] == first.json()["id"]


def _connect(installation: Installation, *headers: str) -> socket.socket:
    """A connection on which an upload has begun with these headers."""
    head = [f"POST /v1/buckets/{BUCKET}/files HTTP/1.1", "Host: localhost", f"Authorization: Bearer {installation.key}"]
    head += [f"Content-Type: multipart/form-data; boundary={BOUNDARY}", *headers]
    connection = socket.create_connection(("127.0.0.1", port_of(installation)), timeout=10)
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    return connection


def test_a_connection_that_breaks_stores_nothing(shared_installation: Installation, client: httpx.Client) -> None:
    before = _stored(shared_installation, client)
    body = multipart([("file", "big.txt", b"x" * 3_000_000)])
    with _connect(shared_installation, "Idempotency-Key: broken", f"Content-Length: {len(body)}") as connection:
        connection.sendall(body[:2_500_000])
    wait_until(lambda: _stored(shared_installation, client) == before, "the end of the half upload")
    whole = upload_body(client, BUCKET, body, {"Idempotency-Key": "broken"})
    assert (whole.status_code, "Idempotent-Replayed" in whole.headers) == (201, False)


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(
    shared_installation: Installation, client: httpx.Client
) -> None:
    with _connect(shared_installation, "Expect: 100-continue", "Content-Length: 90000000") as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_bad_json_body_is_refused(client: httpx.Client) -> None:
    for body, kind, expected in BAD_JSON:
        assert _refusal(client.post("/v1/search", content=body, headers={"Content-Type": kind})) == expected, body[:40]


def test_what_only_extraction_finds_fails_the_source_and_no_other(client: httpx.Client) -> None:
    unreadable = {
        "cut.pdf": (make_corrupt_pdf(), "document_unreadable"),
        "scan.pdf": (make_pdf_without_text(), "no_extractable_text"),
        "bomb.docx": (make_docx_bomb(), "extraction_limit_exceeded"),
        "picture.pdf": (b"\x89PNG\r\n\x1a\n" + bytes(500), "unsupported_format"),
        "blank.txt": (b" \n\t\n", "no_extractable_text"),
    }
    bad = {name: upload(client, BUCKET, name, data) for name, (data, _) in unreadable.items()}
    good = upload(client, BUCKET, "good.md", b"# Good\n\nThe umber quay.\n")
    assert {answer.status_code for answer in (*bad.values(), good)} == {201}
    for name, answer in bad.items():
        failed = wait_ended(client, answer.json()["id"])
        assert (failed["status"], failed["ready"], failed["error"]["code"]) == ("failed", False, unreadable[name][1])
        assert failed["error"]["message"]
    assert wait_ended(client, good.json()["id"])["ready"] is True
