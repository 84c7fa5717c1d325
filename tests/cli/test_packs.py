"""Packs, which send many files in one request, with cut connections and damaged, changed or deleted files."""

import hashlib
import random
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from svc_cli.client import Client, Description
from svc_cli.client.retries import RetryPolicy
from svc_cli.errors import NetworkFailed
from svc_cli.progress import Silent
from svc_cli.transfer.contents import KEPT_BYTES, FileContent, read
from svc_cli.transfer.queues import TransferQueue
from svc_cli.transfer.reports import Report, ReportItem
from svc_cli.transfer.runs import TransferRun
from svc_cli.transfer.transfers import Pack, Transfer
from tests.acceptance.calls import list_sources, port_of
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.proxies import CHUNK_BYTES, CuttingProxy, Proxy
from tests.acceptance.sync_folders import count_requests
from tests.cli.odd_servers import OddServer

#: Files larger than KEPT_BYTES are read again when they are sent; the others are kept in memory.
SIZES = [KEPT_BYTES + 36_000, 10, 300_000, KEPT_BYTES, 120_000]
QUICK = RetryPolicy(first_delay_s=0.001)
MakeTransfers = Callable[..., list[Transfer]]


@dataclass(frozen=True)
class Rewritten(FileContent):
    """Content whose blocks don't match its hash, as if the file were rewritten in make_transfers while it is sent."""

    def blocks(self, offset: int) -> Iterator[bytes]:
        yield bytes(1000)
        yield self.path.read_bytes()[offset + 1000 :]


class FlippingProxy(Proxy):
    """A proxy that flips one bit of the byte at this offset of all that it forwards."""

    def __init__(self, target_port: int, at: int) -> None:
        super().__init__(target_port)
        self._left = at

    def forward(self, client: socket.socket, target: socket.socket) -> None:
        while data := bytearray(client.recv(CHUNK_BYTES)):
            if 0 <= self._left < len(data):
                data[self._left] ^= 1
            self._left -= len(data)
            target.sendall(data)


@pytest.fixture
def make_transfers(tmp_path: Path) -> MakeTransfers:
    """Return a function that writes files of these sizes and returns their transfers."""

    def make(sizes: Sequence[int] = SIZES) -> list[Transfer]:
        letters, transfers = random.Random(5), []
        for number, size_bytes in enumerate(sizes):
            path = tmp_path / f"{number}.md"
            path.write_text("".join(letters.choices("abcdefghij     ", k=size_bytes)))
            content = read(path, 10**8)
            description = Description(filename=path.name, title=path.name, sha256=content.sha256)
            transfers.append(Transfer(ReportItem(path=path.name, action="created"), content, description))
        return transfers

    return make


def _send(url: str, key: str, bucket: str, transfers: Sequence[Transfer]) -> list[str]:
    """Send the transfers in batches and return the ids of the batches that were opened."""
    with Client(url, key, policy=QUICK) as client:
        bucket_id = client.ensure_bucket(bucket)["id"]
        run = TransferRun(client, Silent(), Report(bucket=bucket), lambda _: None)
        with TransferQueue(run, bucket_id, 4, "batch") as queue:
            for transfer in transfers:
                queue.add(transfer)
            queue.finish()
    return run.report.batch_ids


def _send_here(installation: Installation, bucket: str, transfers: Sequence[Transfer], port: int = 0) -> list[str]:
    return _send(f"http://127.0.0.1:{port or port_of(installation)}", installation.key, bucket, transfers)


def _puts(installation: Installation) -> int:
    """Return the number of storage PUT requests in the daemon's log."""
    return count_requests(installation)["PUT /v1/storage/{session_id}/{token}"]


def _expect_stored(installation: Installation, bucket: str, transfers: Sequence[Transfer]) -> None:
    """Assert that the bucket has exactly one source for each transfer, with the bytes that were hashed."""
    with installation.client() as client:
        stored = {source["title"]: source for source in list_sources(client, bucket)}
        assert len(list_sources(client, bucket)) == len(stored)
        assert {name: source["id"] for name, source in stored.items()} == {
            each.item.path: each.item.source_id for each in transfers
        }
        for transfer in transfers:
            content = client.get(f"/v1/sources/{transfer.item.source_id}/content").content
            assert hashlib.sha256(content).hexdigest() == transfer.content.sha256, transfer.item.path
            assert transfer.item.error is None


def _pack(transfers: Sequence[Transfer]) -> Pack:
    """Return a pack for an answer that lists the files in reverse order."""
    items, offset = [], sum(each.size_bytes for each in transfers)
    size_bytes = offset
    for each in transfers:
        offset -= each.size_bytes
        items.append({"client_file_id": each.member.client_file_id, "offset": offset})
    opened = {"items": items, "pack": {"upload_url": "", "size_bytes": size_bytes}}
    return Pack(opened, {each.member.client_file_id: each for each in transfers})


def test_blocks_of_a_pack_are_the_same_bytes_from_every_offset(make_transfers: MakeTransfers) -> None:
    transfers = make_transfers()
    whole = b"".join(each.content.path.read_bytes() for each in reversed(transfers))
    ends = [sum(SIZES[-count:]) for count in range(1, 6)]
    for offset in (0, 1, *ends, *(end - 1 for end in ends), *(end + 1 for end in ends[:-1])):
        assert b"".join(_pack(transfers).blocks(offset)) == whole[offset:], offset


def test_sent_bytes_are_counted_for_the_file_they_belong_to(make_transfers: MakeTransfers) -> None:
    transfers = make_transfers()
    pack = _pack(transfers)
    pack.count(SIZES[0] + SIZES[1] + 7)
    pack.count(3)
    assert [each.item.sent_bytes for each in transfers] == [SIZES[0] + 3, SIZES[1], 7, 0, 0]


def test_a_pack_is_one_request_for_all_its_bytes(
    shared_installation: Installation, make_transfers: MakeTransfers
) -> None:
    before, transfers = _puts(shared_installation), make_transfers([50] * 60 + SIZES)
    assert len(_send_here(shared_installation, "together", transfers)) == 1
    _expect_stored(shared_installation, "together", transfers)
    assert [each.item.sent_bytes for each in transfers] == [each.size_bytes for each in transfers]
    wait_until(lambda: _puts(shared_installation) == before + 1, "one request in the log")
    _send_here(shared_installation, "together", again := make_transfers([50] * 60 + SIZES))
    _expect_stored(shared_installation, "together", again)
    assert sum(each.item.sent_bytes for each in again) == 0


def test_pack_completes_despite_repeated_disconnects(
    shared_installation: Installation, make_transfers: MakeTransfers
) -> None:
    moments, transfers = random.Random(3), make_transfers()
    budgets = [500, 4000, *(moments.randrange(1000, sum(SIZES) // 6) for _ in range(6))]
    with CuttingProxy(port_of(shared_installation), budgets) as proxy:
        _send_here(shared_installation, "cut", transfers, proxy.port)
    assert proxy.cuts >= 6
    assert len(proxy.budgets) == 0
    _expect_stored(shared_installation, "cut", transfers)
    assert sum(each.item.sent_bytes for each in transfers) == sum(SIZES)


def test_new_run_resumes_the_pack_of_an_interrupted_run(
    shared_installation: Installation, make_transfers: MakeTransfers
) -> None:
    sizes, others = [400_000] * 10, shared_installation.part_sizes()
    # The first connection carries the API calls, the second the pack.
    cutting = CuttingProxy(port_of(shared_installation), [10**9, 2_000_000, *[1] * 40])
    with cutting as proxy, pytest.raises(NetworkFailed):
        _send_here(shared_installation, "continued", make_transfers(sizes), proxy.port)
    stored = wait_until(
        lambda: sum(shared_installation.part_sizes().values()) - sum(others.values()), "the first bytes"
    )
    transfers = make_transfers(sizes)
    _send_here(shared_installation, "continued", transfers)
    _expect_stored(shared_installation, "continued", transfers)
    assert 2_000_000 <= sum(each.item.sent_bytes for each in transfers) <= sum(sizes) - stored


@pytest.mark.rule("pack.command")
def test_file_changed_or_deleted_after_hashing_fails_alone(
    shared_installation: Installation, make_transfers: MakeTransfers
) -> None:
    transfers = make_transfers([200_000] * 6)
    transfers[1].content.path.write_text("Other words.")
    transfers[3].content.path.unlink()
    facts = {field: getattr(transfers[4].content, field) for field in FileContent.__dataclass_fields__}
    transfers[4] = replace(transfers[4], content=Rewritten(**facts))
    (batch_id,) = _send_here(shared_installation, "changed", transfers)
    _expect_stored(
        shared_installation, "changed", [each for number, each in enumerate(transfers) if number in {0, 2, 5}]
    )
    errors = {each.item.path: each.item.error["code"] for each in transfers if each.item.error}
    unstable = "svc_file_unstable"
    assert errors == {"1.md": unstable, "3.md": "svc_file_unreadable", "4.md": unstable}
    assert [transfers[number].item.sent_bytes for number in (0, 1, 2, 3)] == [200_000, 0, 200_000, 0]
    with shared_installation.client() as client:
        counters = client.get(f"/v1/knowledge/batches/{batch_id}").json()["counters"]
    assert counters["pending"] == 0, "no file of the batch is pending"
    assert counters["total"] == 6, "no file of the batch is pending"


@pytest.mark.rule("pack.command")
def test_file_damaged_in_transit_is_sent_again_alone(
    shared_installation: Installation, make_transfers: MakeTransfers
) -> None:
    before, transfers = _puts(shared_installation), make_transfers([200_000] * 6)
    with FlippingProxy(port_of(shared_installation), 700_000) as proxy:
        _send_here(shared_installation, "damaged", transfers, proxy.port)
    _expect_stored(shared_installation, "damaged", transfers)
    # One for the pack, one that asks the service what it has of the damaged file, and one that sends the file.
    wait_until(lambda: _puts(shared_installation) == before + 3, "three requests in the log")


@pytest.mark.rule("pack.absent")
def test_files_are_sent_one_by_one_if_the_service_offers_no_pack_or_refuses_it(
    odd: OddServer, make_transfers: MakeTransfers
) -> None:
    expired: tuple[int, Any, dict[str, str]] = (410, {"error": {"code": "session_expired", "message": "Late."}}, {})
    for offered in (None, {"upload_url": f"{odd.url}/pack", "size_bytes": sum(SIZES)}):
        transfers = make_transfers()
        names = [each.member.client_file_id for each in transfers]
        places = [{"client_file_id": name, "upload_url": f"{odd.url}/up/{name}", "offset": 0} for name in names]
        made = [{"client_file_id": name, "knowledge_id": f"src_{name}"} for name in names]
        odd.answers = {
            "PUT /v1/buckets/b": (200, {"id": "bkt_1"}, {}),
            "POST /v1/buckets/bkt_1/batches": (
                201,
                {"batch_id": "b", "items": places, "rejected": [], "pack": offered},
                {},
            ),
            "POST /v1/buckets/bkt_1/batches/b/finalize": (
                200,
                {"finalized": made, "replayed": [], "failed": [], "pending": []},
                {},
            ),
            "PUT /pack": expired,
        }
        odd.calls.clear()
        for name, transfer in zip(names, transfers, strict=True):
            whole: tuple[int, Any, dict[str, str]] = (200, {"received_bytes": transfer.size_bytes}, {})
            # After a refused pack, the client first asks the service what it has of the file.
            odd.answers[f"PUT /up/{name}"] = [(308, b"", {}), whole] if offered else whole
        _send(odd.url, "sk-test", "b", transfers)
        assert [each.item.source_id for each in transfers] == [f"src_{name}" for name in names]
        sent = {path: body for path, _, body in odd.calls if path.startswith("/up/")}
        assert sent == {
            f"/up/{name}": each.content.path.read_bytes() for name, each in zip(names, transfers, strict=True)
        }
