"""Bytes to storage addresses: cut, refused, resumed, stopped; and never an address in an error."""

import hashlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from svc_cli.client import ApiError, BytesContent, Client, Description, Member, NetworkFailed
from svc_cli.client.batches import batch_key
from svc_cli.client.pacing import Stopped
from svc_cli.client.retries import RetryPolicy
from svc_cli.client.storage import Storage
from svc_cli.errors import BadAnswer
from tests.acceptance.installations import Installation
from tests.acceptance.proxies import CuttingProxy
from tests.cli.odd_servers import OddServer

DATA = bytes(range(256)) * 20_000
SHA256 = hashlib.sha256(DATA).hexdigest()
FILE = Description(filename="a.txt", title="a.txt", sha256=SHA256)


@pytest.fixture
def client(shared_installation: Installation) -> Iterator[Client]:
    with Client(shared_installation.base_url, shared_installation.key) as made:
        made.ensure_bucket("b")
        yield made


def test_an_upload_that_is_cut_again_and_again_arrives_whole(client: Client, shared_installation: Installation) -> None:
    opened = client.open_upload("b", FILE, len(DATA)).body
    port = urlsplit(shared_installation.base_url).port or 0
    seen: list[int] = []
    with CuttingProxy(port, [700_000] * 6) as proxy:
        url = urlsplit(opened["upload_url"])._replace(netloc=f"127.0.0.1:{proxy.port}").geturl()
        storage = Storage(RetryPolicy(first_delay_s=0.001))
        assert storage.send(url, BytesContent(DATA), on_sent=seen.append) == len(DATA)
        storage.close()
    assert sum(seen) >= len(DATA)
    source = client.finalize_upload("b", opened["session_id"]).body
    assert (source["sha256"], source["size_bytes"]) == (SHA256, len(DATA))


def test_the_rest_alone_is_sent_when_a_session_goes_on(client: Client) -> None:
    opened = client.open_upload("b", FILE, len(DATA), "goes-on")

    class Cut(BytesContent):
        """Content whose reader gives up in the middle."""

        def blocks(self, offset: int) -> Iterator[bytes]:
            yield DATA[offset : offset + 2_000_000]
            raise Stopped

    with pytest.raises(Stopped):
        client.send_bytes(opened.body["upload_url"], Cut(DATA))
    again = client.open_upload("b", FILE, len(DATA), "goes-on")
    assert (again.is_replay, again.body["session_id"]) == (True, opened.body["session_id"])
    left = client.send_bytes(again.body["upload_url"], BytesContent(DATA), resume=True)
    # Whoever goes on takes over at once: what still lay in the buffers of the old connection is sent again.
    assert len(DATA) - 2_000_000 <= left < len(DATA)
    assert client.send_bytes(again.body["upload_url"], BytesContent(DATA), resume=True) == 0
    assert client.upload_status("b", opened.body["session_id"])["received_bytes"] == len(DATA)


def test_a_whole_file_goes_up_in_one_call_of_the_library(client: Client) -> None:
    description = Description(filename="lib.txt", title="lib.txt", sha256=SHA256)
    first = client.upload_content("b", description, BytesContent(DATA), "library")
    assert client.upload_content("b", description, BytesContent(DATA), "library")["id"] == first["id"]


def test_other_bytes_than_announced_are_refused(client: Client) -> None:
    opened = client.open_upload("b", FILE, 5).body
    with pytest.raises(ApiError) as told:
        client.send_bytes(opened["upload_url"], BytesContent(b"other"))
    assert told.value.code == "checksum_mismatch"
    assert client.cancel_upload("b", opened["session_id"])["status"] == "canceled"
    with pytest.raises(ApiError) as told:
        client.send_bytes(opened["upload_url"], BytesContent(b"other"))
    assert told.value.code == "session_canceled"


def test_a_batch_of_the_library_is_the_same_again(client: Client) -> None:
    members = [Member(Description(filename=f"{n}.md", title=f"{n}.md", sha256="0" * 64), 3) for n in range(3)]
    key = batch_key("bkt", members, 0)
    first, second = client.open_batch("b", members, key), client.open_batch("b", members, key)
    assert (second.is_replay, first.body["batch_id"]) == (True, second.body["batch_id"])
    assert first.body["items"] == second.body["items"]
    assert batch_key("bkt", members, 1) != key != batch_key("bkt", members[:2], 0)
    assert len({member.client_file_id for member in members}) == 3


def test_no_error_names_the_address(odd: OddServer) -> None:
    policy = RetryPolicy(attempts=2, first_delay_s=0.001)
    odd.answers["PUT /s/secret"] = None
    odd.answers["PUT /odd/secret"] = (502, b"<html>", {})
    odd.answers["PUT /stuck/secret"] = (308, b"", {})
    storage = Storage(policy)
    for url, kind in (
        (f"{odd.url}/s/secret", NetworkFailed),
        ("http://127.0.0.1:1/s/secret", NetworkFailed),
        (f"{odd.url}/odd/secret", BadAnswer),
        (f"{odd.url}/stuck/secret", BadAnswer),
    ):
        with pytest.raises(kind) as told:
            storage.send(url, BytesContent(b"x"))
        assert "secret" not in str(told.value) + str(told.value.hint)
    storage.stop()
    with pytest.raises(Stopped):
        storage.send(f"{odd.url}/s/secret", BytesContent(b"x"))
    storage.close()
