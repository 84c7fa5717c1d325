"""Bad uploads get a clear envelope with the right code; nothing is stored and no key is claimed."""

import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.calls import (
    BOUNDARY,
    list_sources,
    make_bucket,
    multipart,
    upload,
    upload_body,
    wait_ended,
)
from tests.acceptance.installations import Installation, wait_until
from tests.samples import make_corrupt_pdf, make_docx_bomb, make_pdf_without_text

FILE = ("file", "notes.md", b"# Notes\n\nSome text.\n")
BUCKET = "inbox"
OVER_25_MB = 26_214_401


def _with(name: str, value: str) -> bytes:
    return multipart([FILE, (name, None, value.encode())])


def _named(filename: str) -> bytes:
    return multipart([("file", filename, b"text")])


#: Body, status, code and headers: one of each check that a form meets on its way; tests/api has all others.
BAD: dict[str, tuple[bytes, int, str, dict[str, str]]] = {
    "cut off in the file": (multipart([FILE], closed=False)[:-9], 400, "invalid_request", {}),
    "zero bytes": (multipart([("file", "empty.txt", b"")]), 400, "empty_file", {}),
    "25 MB and one byte": (multipart([("file", "big.txt", bytes(OVER_25_MB))]), 413, "file_too_large", {}),
    "metadata with NaN": (_with("metadata", '{"k": NaN}'), 400, "invalid_request", {}),
    "a wrong checksum": (_with("sha256", "0" * 64), 400, "checksum_mismatch", {}),
    "the name ..": (_named(".."), 400, "invalid_request", {}),
    "the name ../": (_named("../"), 400, "invalid_request", {}),
    "a bidi override": (_named("a\u202etxt.exe"), 400, "invalid_request", {}),
    "a JSON body": (b"{}", 415, "unsupported_media_type", {"Content-Type": "application/json"}),
    "a key with a space": (multipart([FILE]), 400, "invalid_idempotency_key", {"Idempotency-Key": "a b"}),
}


@pytest.fixture
def client(shared_installation: Installation) -> Iterator[httpx.Client]:
    with shared_installation.client() as client:
        make_bucket(client, BUCKET)
        yield client


def _stored(installation: Installation, client: httpx.Client) -> tuple[int, set[str], set[str]]:
    """Sources, blobs and staging files that are there."""
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
    for name, (body, status, code, headers) in BAD.items():
        before = _stored(shared_installation, client)
        key = {"Idempotency-Key": f"bad:{name}".replace(" ", "-")}
        assert _refusal(upload_body(client, BUCKET, body, key | headers)) == (status, code), name
        assert _stored(shared_installation, client) == before, name
        again = upload_body(client, BUCKET, multipart([FILE]), key)
        assert (again.status_code, "Idempotent-Replayed" in again.headers) == (201, False), name


def test_a_name_keeps_only_its_last_component(client: httpx.Client) -> None:
    for filename, kept in [("docs/notes/c.txt", "c.txt"), ("C:\\notes\\a.txt", "a.txt"), ("/abs/b.md", "b.md")]:
        answer = upload_body(client, BUCKET, multipart([("file", filename.replace("\\", "\\\\"), b"text")]))
        assert (answer.status_code, answer.json()["filename"]) == (201, kept)


def test_a_bucket_that_is_not_there_takes_nothing(shared_installation: Installation, client: httpx.Client) -> None:
    for bucket in ("no-such-bucket", "bkt_missing", "NOT A SLUG"):
        before = _stored(shared_installation, client)
        assert _refusal(upload(client, bucket, "notes.md", b"text", key=bucket[:3])) == (404, "bucket_not_found")
        assert _stored(shared_installation, client) == before


def test_an_archived_bucket_takes_nothing(client: httpx.Client) -> None:
    make_bucket(client, "attic")
    client.patch("/v1/buckets/attic", json={"status": "archived"}).raise_for_status()
    assert _refusal(upload(client, "attic", "notes.md", b"text")) == (404, "bucket_not_found")


def test_a_key_used_with_other_bytes_is_a_conflict(client: httpx.Client) -> None:
    first = upload(client, BUCKET, "notes.md", b"first", key="once")
    assert first.status_code == 201
    assert _refusal(upload(client, BUCKET, "notes.md", b"second", key="once")) == (409, "idempotency_key_conflict")
    replay = upload(client, BUCKET, "notes.md", b"first", key="once")
    assert (replay.status_code, replay.headers["Idempotent-Replayed"]) == (200, "true")
    assert replay.json()["id"] == first.json()["id"]


def test_a_connection_that_breaks_stores_nothing(shared_installation: Installation, client: httpx.Client) -> None:
    before = _stored(shared_installation, client)
    address = urlsplit(shared_installation.base_url)
    body = multipart([("file", "big.txt", b"x" * 3_000_000)])
    head = (
        f"POST /v1/buckets/{BUCKET}/files HTTP/1.1\r\nHost: {address.netloc}\r\nIdempotency-Key: broken\r\n"
        f"Authorization: Bearer {shared_installation.key}\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    )
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(head.encode() + body[:2_500_000])
    wait_until(lambda: _stored(shared_installation, client) == before, "the end of the half upload")
    whole = upload_body(client, BUCKET, body, {"Idempotency-Key": "broken"})
    assert (whole.status_code, "Idempotent-Replayed" in whole.headers) == (201, False)


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(
    shared_installation: Installation, client: httpx.Client
) -> None:
    address = urlsplit(shared_installation.base_url)
    head = (
        f"POST /v1/buckets/{BUCKET}/files HTTP/1.1\r\nHost: {address.netloc}\r\nExpect: 100-continue\r\n"
        f"Authorization: Bearer {shared_installation.key}\r\nContent-Length: 90000000\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    )
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_bad_json_body_is_refused(client: httpx.Client) -> None:
    calls: list[tuple[bytes, str, tuple[int, str]]] = [
        (b'{"query": "a", "query": "b"}', "application/json", (400, "invalid_json")),
        (b"[]", "application/json", (400, "invalid_request")),
        (b'{"query": "a", "team_id": "team_x"}', "application/json", (400, "invalid_request")),
        (b'{"query": "a"}', "text/plain", (415, "unsupported_media_type")),
        (b'{"query": "' + b"a" * 1_100_000 + b'"}', "application/json", (413, "request_too_large")),
        (b"[" * 50 + b"]" * 50, "application/json", (400, "invalid_json")),
    ]
    for body, kind, expected in calls:
        assert _refusal(client.post("/v1/search", content=body, headers={"Content-Type": kind})) == expected, body[:40]


#: Makers, not bytes: some take a second.
UNREADABLE: dict[str, tuple[Callable[[], bytes], str]] = {
    "cut.pdf": (make_corrupt_pdf, "document_unreadable"),
    "scan.pdf": (make_pdf_without_text, "no_extractable_text"),
    "bomb.docx": (make_docx_bomb, "extraction_limit_exceeded"),
    "picture.pdf": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(500), "unsupported_format"),
    "blank.txt": (lambda: b" \n\t\n", "no_extractable_text"),
}


def test_what_only_extraction_finds_fails_the_source_and_nobody_else(client: httpx.Client) -> None:
    bad = {name: upload(client, BUCKET, name, make()) for name, (make, _) in UNREADABLE.items()}
    good = upload(client, BUCKET, "good.md", b"# Good\n\nThe umber quay.\n")
    assert {answer.status_code for answer in (*bad.values(), good)} == {201}
    for name, answer in bad.items():
        failed = wait_ended(client, answer.json()["id"])
        code = UNREADABLE[name][1]
        assert (failed["status"], failed["ready"], failed["error"]["code"]) == ("failed", False, code)
        assert failed["error"]["message"]
    assert wait_ended(client, good.json()["id"])["ready"] is True
