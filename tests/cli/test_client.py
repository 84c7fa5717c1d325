"""The Python client as other programs use it: calls, resumed uploads, secret upload URLs and idempotency keys."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from svc_cli.client import ApiError, BytesContent, Client, Description, Member, NetworkFailed, NewFile
from svc_cli.client.batches import batch_key
from svc_cli.client.imports import ImportRequest, import_key
from svc_cli.client.new_files import idempotency_key, session_key
from svc_cli.client.retries import RetryPolicy, Stopped
from svc_cli.client.sessions import Storage
from svc_cli.errors import BadAnswer
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.proxies import CuttingProxy
from tests.cli.odd_servers import OddServer

TEXT = b"# Leave\n\nThe cobalt rule grants ninety days."
DATA = bytes(range(256)) * 20_000
SHA256 = hashlib.sha256(DATA).hexdigest()
FILE = Description(filename="a.txt", title="a.txt", sha256=SHA256)
TWICE = RetryPolicy(attempts=2, first_delay_s=0.001)
NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def client(shared_installation: Installation) -> Iterator[Client]:
    with Client(shared_installation.base_url, shared_installation.key) as made:
        made.ensure_bucket("b")
        yield made


def new(name: str, data: bytes = TEXT) -> NewFile:
    return NewFile(filename=name, data=data, title=name, sha256=hashlib.sha256(data).hexdigest())


def test_invalid_idempotency_key_is_an_api_error_even_if_no_header_can_carry_it(client: Client) -> None:
    client.ensure_bucket("badly-keyed")
    for key in ("", "a b", "a\n", " a", "é", "k" * 256):
        with pytest.raises(ApiError) as refused:
            client.upload("badly-keyed", new("a.md"), key)
        assert refused.value.status == 400, key
        assert refused.value.code == "invalid_idempotency_key", key
    assert list(client.sources("badly-keyed", status="all")) == []


def test_sources_yields_every_source_across_pages(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.ensure_bucket("paged")
    ids = [client.upload("paged", new(f"{number}.md", b"%d" % number))["id"] for number in range(7)]
    monkeypatch.setattr("svc_cli.client.calls.PAGE_ROWS", 3)
    assert [source["id"] for source in client.sources("paged", status="all")] == ids


def test_bucket_of_an_odd_name_is_not_found(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.bucket("Ü b?c#d%2e")
    assert refused.value.code == "bucket_not_found"


def test_broken_connection_raises_network_failed_after_the_retries(odd: OddServer) -> None:
    odd.answers["GET /v1/buckets"] = None
    for url, is_dead in ((odd.url, False), (NOBODY, True)):
        with Client(url, "sk-test", policy=TWICE) as client, pytest.raises(NetworkFailed) as failed:
            client.buckets()
        assert failed.value.is_dead == is_dead
        assert len(odd.requests) == 2


def test_missing_field_of_an_answer_raises_bad_answer(odd: OddServer) -> None:
    odd.answers["GET /v1/buckets"] = (200, {}, {})
    with Client(odd.url, "sk-test") as client, pytest.raises(BadAnswer, match="lacks `buckets`"):
        _ = client.buckets()["buckets"]


def test_hint_of_an_older_service_says_how_the_new_release_is_started(odd: OddServer) -> None:
    odd.answers["POST /v1/console/sessions"] = (404, {"error": {"code": "not_found", "message": "No such path."}}, {})
    with Client(odd.url, "sk-test") as client, pytest.raises(ApiError) as refused:
        client.create_console_session()
    assert "`svc daemon restart`" in str(refused.value.hint)


def _busy(code: str, **details: float) -> tuple[int, Any, dict[str, str]]:
    return 429, {"error": {"code": code, "message": "Slow down.", "retryable": True, "details": details}}, {}


def test_create_waits_as_often_as_it_is_rate_limited(odd: OddServer) -> None:
    accepted: tuple[int, Any, dict[str, str]] = (201, {"id": "src_1"}, {})
    odd.answers["POST /v1/buckets/b/files"] = [*[_busy("upload_rate_limited", retry_after_seconds=0.01)] * 12, accepted]
    with Client(odd.url, "sk-test", policy=RetryPolicy(attempts=1)) as client:
        assert client.upload("b", new("a", b"x"))["id"] == "src_1"
    assert len(odd.requests) == 13


def test_upload_larger_than_the_whole_quota_fails_without_retry(odd: OddServer) -> None:
    details = {"retry_after_seconds": 60, "requested_bytes": 2_000, "limit_bytes": 1_000}
    odd.answers["POST /v1/buckets/b/files"] = _busy("quota_exceeded", **details)
    with Client(odd.url, "sk-test") as client, pytest.raises(ApiError) as refused:
        client.upload("b", new("a", b"x" * 2_000))
    assert refused.value.code == "quota_exceeded"
    assert len(odd.requests) == 1


def test_upload_session_completes_despite_repeated_disconnects(
    client: Client, shared_installation: Installation
) -> None:
    opened = client.open_upload("b", FILE, len(DATA)).body
    seen: list[int] = []
    with CuttingProxy(urlsplit(shared_installation.base_url).port or 0, [700_000] * 6) as proxy:
        url = urlsplit(opened["upload_url"])._replace(netloc=f"127.0.0.1:{proxy.port}").geturl()
        storage = Storage(RetryPolicy(first_delay_s=0.001))
        assert storage.send(url, BytesContent(DATA), on_sent=seen.append) == len(DATA)
        storage.close()
    assert sum(seen) >= len(DATA)
    source = client.finalize_upload("b", opened["session_id"]).body
    assert source["sha256"] == SHA256
    assert source["size_bytes"] == len(DATA)


def test_resumed_session_does_not_send_stored_bytes_again(client: Client) -> None:
    opened = client.open_upload("b", FILE, len(DATA), "goes-on")

    class Cut(BytesContent):
        """Content whose reading stops after 2 MB."""

        def blocks(self, offset: int) -> Iterator[bytes]:
            yield DATA[offset : offset + 2_000_000]
            raise Stopped

    with pytest.raises(Stopped):
        client.send_bytes(opened.body["upload_url"], Cut(DATA))
    session_id = opened.body["session_id"]
    wait_until(lambda: client.upload_status("b", session_id)["received_bytes"], "some of it is stored", 60)
    again = client.open_upload("b", FILE, len(DATA), "goes-on")
    assert again.is_replay
    assert again.body["session_id"] == session_id
    left = client.send_bytes(again.body["upload_url"], BytesContent(DATA), resume=True)
    # The next sender takes over at once, so bytes that were still in the old connection's buffers are sent again.
    assert len(DATA) - 2_000_000 <= left < len(DATA)
    assert client.send_bytes(again.body["upload_url"], BytesContent(DATA), resume=True) == 0
    assert client.upload_status("b", session_id)["received_bytes"] == len(DATA)


def test_opening_a_batch_again_with_the_same_key_replays_it(client: Client) -> None:
    members = [Member(Description(filename=f"{n}.md", title=f"{n}.md", sha256="0" * 64), 3) for n in range(3)]
    key = batch_key("bkt", members, 0)
    first, second = client.open_batch("b", members, key), client.open_batch("b", members, key)
    assert second.is_replay
    assert first.body["batch_id"] == second.body["batch_id"]
    assert first.body["items"] == second.body["items"]
    assert batch_key("bkt", members, 1) != key != batch_key("bkt", members[:2], 0)
    assert len({member.client_file_id for member in members}) == 3


def test_storage_errors_do_not_reveal_the_upload_url(odd: OddServer) -> None:
    odd.answers["PUT /s/secret"] = None
    odd.answers["PUT /away/secret"] = (502, b"<html>", {})
    odd.answers["PUT /odd/secret"] = (500, b'{"error":' * 5000, {})
    odd.answers["PUT /stuck/secret"] = (308, b"", {})
    storage = Storage(TWICE)
    for url, kind in (
        *((f"{odd.url}/s/secret", NetworkFailed), (f"{NOBODY}/s/secret", NetworkFailed)),
        (f"{odd.url}/away/secret", NetworkFailed),
        *((f"{odd.url}/odd/secret", BadAnswer), (f"{odd.url}/stuck/secret", BadAnswer)),
    ):
        with pytest.raises(kind) as failed:
            storage.send(url, BytesContent(b"x"))
        assert "secret" not in str(failed.value) + str(failed.value.hint)
    storage.stop()
    with pytest.raises(Stopped):
        storage.send(f"{odd.url}/s/secret", BytesContent(b"x"))
    storage.close()


def test_idempotency_key_is_equal_only_for_equal_requests() -> None:
    fields: dict[str, Any] = {"tags": ("a", "b"), "metadata": {"k": "v"}, "sha256": "0" * 64}
    upload = NewFile(filename="a.md", data=b"x", title="docs/a.md", **fields)
    key = idempotency_key("bkt_1", upload, 0)
    assert re.fullmatch(r"svc-[0-9a-f]{64}", key)
    assert idempotency_key("bkt_1", replace(upload), 0) == key
    assert idempotency_key("bkt_1", replace(upload, data=b"y"), 0) == key, "the key depends only on the hash"
    changes: list[dict[str, Any]] = [{"title": "docs/b.md"}, {"filename": "b.md"}, {"tags": ("a",)}, {"metadata": {}}]
    changes += [{"sha256": "1" * 64}, {"replaces": "src_1"}]
    keys = [idempotency_key("bkt_1", replace(upload, **change), 0) for change in changes]
    assert len({key, *keys, idempotency_key("bkt_2", upload, 0), idempotency_key("bkt_1", upload, 1)}) == 9


#: A file and a URL with nothing but what they need.
PLAIN = Description(filename="a.md", title="A", sha256="0" * 64)
URL = ImportRequest(url="https://example.com/")


# A field that is added later may be part of a key only if it is set: with another key, what an older release began
# would be sent again instead of being continued.
@pytest.mark.parametrize(
    ("key", "digest"),
    [
        (
            idempotency_key("bkt_1", NewFile(**vars(PLAIN), data=b""), 0),
            "svc-f54283d82a7dd9bf4be198c7df4d0505dc8e976115ac23bd97a7f1e0aa0dc79d",
        ),
        (
            session_key("bkt_1", PLAIN, 1, 0),
            "svc-session-5fce53058de84f38afad954e2d1936bb3b0e6e5542d2d48efd3be7883c5936de",
        ),
        (
            import_key("bkt_1", URL, "file", 0),
            "svc-import-ddad265400dd5121aaf2f20459950e867c18a7f50565e1ebf0fa12ee176dc844",
        ),
    ],
    ids=["file", "session", "import"],
)
def test_key_of_a_request_is_the_same_after_an_upgrade(key: str, digest: str) -> None:
    assert key == digest
