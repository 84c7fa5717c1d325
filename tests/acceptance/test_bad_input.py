"""Bad uploads get a clear envelope with the right code; nothing is stored and no key is claimed."""

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class Bad:
    """A bad upload and the refusal it gets."""

    name: str
    body: bytes
    status: int
    code: str
    headers: dict[str, str] = field(default_factory=dict)


def _with(name: str, value: str) -> bytes:
    return multipart([FILE, (name, None, value.encode())])


def _named(filename: str) -> bytes:
    return multipart([("file", filename, b"text")])


BAD = [
    Bad("no file part", multipart([("title", None, b"Notes")]), 400, "invalid_request"),
    Bad("an empty form", multipart([]), 400, "invalid_request"),
    Bad("two file parts", multipart([FILE, FILE]), 400, "invalid_request"),
    Bad("a file in another field", multipart([("document", "notes.md", b"text")]), 400, "invalid_request"),
    Bad("no closing boundary", multipart([FILE], closed=False), 400, "invalid_request"),
    Bad("cut off in the file", multipart([FILE], closed=False)[:-9], 400, "invalid_request"),
    Bad("cut off in the head", multipart([FILE])[:40], 400, "invalid_request"),
    Bad("zero bytes", multipart([("file", "empty.txt", b"")]), 400, "empty_file"),
    Bad("25 MB and one byte", multipart([("file", "big.txt", bytes(OVER_25_MB))]), 413, "file_too_large"),
    Bad("21 tags", _with("tags", ",".join(f"t{number}" for number in range(21))), 400, "too_many_tags"),
    Bad("a tag of 65 characters", _with("tags", "t" * 65), 400, "invalid_request"),
    Bad("metadata that is a list", _with("metadata", "[1]"), 400, "invalid_request"),
    Bad("metadata over 8 KB", _with("metadata", json.dumps({"k": "v" * 8192})), 400, "metadata_too_large"),
    Bad("metadata that is no JSON", _with("metadata", "{"), 400, "invalid_request"),
    Bad("metadata with NaN", _with("metadata", '{"k": NaN}'), 400, "invalid_request"),
    Bad("a wrong checksum", _with("sha256", "0" * 64), 400, "checksum_mismatch"),
    Bad("a team of its own choice", _with("team_id", "team_other"), 400, "invalid_request"),
    Bad("a webhook", _with("webhook", "{}"), 400, "invalid_request"),
    Bad("the name ..", _named(".."), 400, "invalid_request"),
    Bad("the name ../..", _named("../.."), 400, "invalid_request"),
    Bad("the name ../", _named("../"), 400, "invalid_request"),
    Bad("a way out of its folder", _named("../../etc/passwd"), 400, "invalid_request"),
    Bad("a control character", _named("a\x07b.txt"), 400, "invalid_request"),
    Bad("a bidi override", _named("a\u202etxt.exe"), 400, "invalid_request"),
    Bad("a JSON body", b"{}", 415, "unsupported_media_type", {"Content-Type": "application/json"}),
    Bad("no boundary", multipart([FILE]), 400, "invalid_request", {"Content-Type": "multipart/form-data"}),
    Bad("an empty key", multipart([FILE]), 400, "invalid_idempotency_key", {"Idempotency-Key": ""}),
    Bad("a key of 256", multipart([FILE]), 400, "invalid_idempotency_key", {"Idempotency-Key": "k" * 256}),
    Bad("a key with a space", multipart([FILE]), 400, "invalid_idempotency_key", {"Idempotency-Key": "a b"}),
]


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


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_upload_is_refused_and_claims_nothing(
    shared_installation: Installation, client: httpx.Client, bad: Bad
) -> None:
    before = _stored(shared_installation, client)
    headers = {"Idempotency-Key": f"bad:{bad.name}".replace(" ", "-")} | bad.headers

    assert _refusal(upload_body(client, BUCKET, bad.body, headers)) == (bad.status, bad.code)
    assert _stored(shared_installation, client) == before

    again = upload_body(client, BUCKET, multipart([FILE]), {"Idempotency-Key": f"bad:{bad.name}".replace(" ", "-")})
    assert (again.status_code, "Idempotent-Replayed" in again.headers) == (201, False)


@pytest.mark.parametrize(
    ("filename", "kept"), [("docs/notes/c.txt", "c.txt"), ("C:\\notes\\a.txt", "a.txt"), ("/abs/b.md", "b.md")]
)
def test_a_name_keeps_only_its_last_component(client: httpx.Client, filename: str, kept: str) -> None:
    answer = upload_body(client, BUCKET, multipart([("file", filename.replace("\\", "\\\\"), b"text")]))
    assert (answer.status_code, answer.json()["filename"]) == (201, kept)


@pytest.mark.parametrize("bucket", ["no-such-bucket", "bkt_missing", "NOT A SLUG"])
def test_a_bucket_that_is_not_there_takes_nothing(
    shared_installation: Installation, client: httpx.Client, bucket: str
) -> None:
    before = _stored(shared_installation, client)
    answer = upload(client, bucket, "notes.md", b"text", key=f"to-{len(bucket)}")
    assert _refusal(answer) == (404, "bucket_not_found")
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


JSON_CALLS: list[tuple[bytes, dict[str, str], tuple[int, str]]] = [
    (b"{", {}, (400, "invalid_json")),
    (b'{"query": "a", "query": "b"}', {}, (400, "invalid_json")),
    (b'{"query": Infinity}', {}, (400, "invalid_json")),
    (b"[]", {}, (400, "invalid_request")),
    (b"{}", {}, (400, "invalid_request")),
    (b'{"query": 7}', {}, (400, "invalid_request")),
    (b'{"query": "a", "team_id": "team_x"}', {}, (400, "invalid_request")),
    (b'{"query": "a"}', {"Content-Type": "text/plain"}, (415, "unsupported_media_type")),
    (b'{"query": "' + b"a" * 1_100_000 + b'"}', {}, (413, "request_too_large")),
    (b"[" * 50 + b"]" * 50, {}, (400, "invalid_json")),
]


@pytest.mark.parametrize(("body", "headers", "expected"), JSON_CALLS, ids=range(len(JSON_CALLS)))
def test_a_bad_json_body_is_refused(
    client: httpx.Client, body: bytes, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    answer = client.post("/v1/search", content=body, headers={"Content-Type": "application/json"} | headers)
    assert _refusal(answer) == expected


#: Makers, not bytes: some take a second.
UNREADABLE: list[tuple[str, Callable[[], bytes], str]] = [
    ("cut.pdf", make_corrupt_pdf, "document_unreadable"),
    ("scan.pdf", make_pdf_without_text, "no_extractable_text"),
    ("bomb.docx", make_docx_bomb, "extraction_limit_exceeded"),
    ("picture.pdf", lambda: b"\x89PNG\r\n\x1a\n" + bytes(500), "unsupported_format"),
    ("blank.txt", lambda: b" \n\t\n", "no_extractable_text"),
]


@pytest.mark.parametrize(("filename", "make", "code"), UNREADABLE, ids=[name for name, _, _ in UNREADABLE])
def test_what_only_extraction_finds_fails_the_source_and_nobody_else(
    client: httpx.Client, filename: str, make: Callable[[], bytes], code: str
) -> None:
    bad = upload(client, BUCKET, filename, make())
    good = upload(client, BUCKET, "good.md", b"# Good\n\nThe umber quay.\n")
    assert (bad.status_code, good.status_code) == (201, 201)
    failed = wait_ended(client, bad.json()["id"])
    assert (failed["status"], failed["ready"], failed["error"]["code"]) == ("failed", False, code)
    assert failed["error"]["message"]
    assert wait_ended(client, good.json()["id"])["ready"] is True
