"""The Python client, as another program uses it."""

import hashlib
from collections.abc import Iterator

import pytest

from svc_cli.client import ApiError, Client, NetworkFailed, NewFile, idempotency_key
from svc_cli.client.retries import RetryPolicy
from svc_cli.errors import BadAnswer, UsageError
from tests.acceptance.installations import Installation
from tests.cli.odd_servers import OddServer

TEXT = b"# Leave\n\nThe cobalt rule grants ninety days."


@pytest.fixture
def client(shared_installation: Installation) -> Iterator[Client]:
    with Client(shared_installation.base_url, shared_installation.key) as made:
        yield made


def test_the_example_of_the_package_works(client: Client) -> None:
    assert client.ensure_bucket("library")["created"] is True
    source = client.upload("library", NewFile(filename="leave.md", data=TEXT, title="leave.md"))
    assert client.wait_until_ready([source["id"]], timeout_s=60)[source["id"]]["ready"] is True
    page = client.search("cobalt rule", buckets=["library"])
    assert page["data"][0]["source_id"] == source["id"]
    assert client.source_text(source["id"])["text"].startswith("# Leave")


def test_a_repeated_key_replays_and_other_bytes_conflict(client: Client) -> None:
    bucket_id = client.ensure_bucket("replays")["id"]
    upload = NewFile(filename="a.md", data=TEXT, title="a.md", sha256=hashlib.sha256(TEXT).hexdigest())
    key = idempotency_key(bucket_id, upload, 0)
    first, second = client.send_upload("replays", upload, key), client.send_upload("replays", upload, key)
    assert (first.is_replay, second.is_replay, first.body["id"]) == (False, True, second.body["id"])
    with pytest.raises(ApiError) as told:
        client.upload("replays", NewFile(filename="a.md", data=b"other", title="a.md"), key)
    assert (told.value.status, told.value.code) == (409, "idempotency_key_conflict")


@pytest.mark.parametrize("key", ["", "a b", "a\n", " a", "é", "k" * 256])
def test_a_key_that_no_header_can_carry_is_refused_as_any_other_bad_one(client: Client, key: str) -> None:
    client.ensure_bucket("badly-keyed")
    with pytest.raises(ApiError) as told:
        client.upload("badly-keyed", NewFile(filename="a.md", data=TEXT, title="a.md"), key)
    assert (told.value.status, told.value.code) == (400, "invalid_idempotency_key")
    assert list(client.sources("badly-keyed", status="all")) == []


def test_every_source_comes_whatever_the_size_of_a_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.ensure_bucket("paged")
    ids = [
        client.upload("paged", NewFile(filename=f"{number}.md", data=b"%d" % number, title=f"{number}.md"))["id"]
        for number in range(7)
    ]
    monkeypatch.setattr("svc_cli.client.api.PAGE_ROWS", 3)
    assert [source["id"] for source in client.sources("paged", status="all")] == ids


def test_a_name_in_a_path_can_not_leave_it_and_any_other_is_one_that_does_not_exist(client: Client) -> None:
    for name in ("../sources/src_1", "a/b", "", ".", ".."):
        with pytest.raises(UsageError):
            client.bucket(name)
    with pytest.raises(ApiError) as refused:
        client.bucket("Ü b?c#d%2e")
    assert refused.value.code == "bucket_not_found"


def test_a_dead_line_is_an_error_of_ours(odd: OddServer) -> None:
    policy = RetryPolicy(attempts=2, first_delay_s=0.001)
    odd.answers["GET /v1/buckets"] = None
    with Client(odd.url, "sk-test", policy=policy) as client, pytest.raises(NetworkFailed) as told:
        client.buckets()
    assert (told.value.is_dead, len(odd.requests)) == (False, 2)
    with Client("http://127.0.0.1:1", "sk-test", policy=policy) as client, pytest.raises(NetworkFailed) as told:
        client.buckets()
    assert told.value.is_dead is True


def test_an_answer_that_lacks_a_field_is_a_bad_answer(odd: OddServer) -> None:
    odd.answers["GET /v1/buckets"] = (200, {}, {})
    with Client(odd.url, "sk-test") as client, pytest.raises(BadAnswer, match="lacks `buckets`"):
        _ = client.buckets()["buckets"]


def test_a_create_is_held_back_as_often_as_the_service_says(odd: OddServer) -> None:
    details = {"retry_after_seconds": 0.01}
    error = {"code": "upload_rate_limited", "message": "Slow down.", "retryable": True, "details": details}
    busy = (429, {"error": error}, {"Retry-After": "1"})
    accepted: tuple[int, dict[str, str], dict[str, str]] = (201, {"id": "src_1"}, {})
    odd.answers["POST /v1/buckets/b/files"] = [*[busy] * 12, accepted]
    with Client(odd.url, "sk-test", policy=RetryPolicy(attempts=1)) as client:
        assert client.upload("b", NewFile(filename="a", data=b"x", title="a"))["id"] == "src_1"
    assert len(odd.requests) == 13


def test_what_is_over_a_whole_quota_is_not_waited_for(odd: OddServer) -> None:
    details = {"retry_after_seconds": 60, "requested_bytes": 2_000, "limit_bytes": 1_000}
    error = {"code": "quota_exceeded", "message": "Too many bytes.", "retryable": True, "details": details}
    odd.answers["POST /v1/buckets/b/files"] = (429, {"error": error}, {"Retry-After": "60"})
    with Client(odd.url, "sk-test") as client, pytest.raises(ApiError) as told:
        client.upload("b", NewFile(filename="a", data=b"x" * 2_000, title="a"))
    assert (told.value.code, len(odd.requests)) == ("quota_exceeded", 1)
