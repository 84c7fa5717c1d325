"""The daemon's processor time to take in a batch of small files: each file sent by itself, and all as one pack.

A batch is created, its bytes are sent, and it is finalized. Both ways take turns in one run. The indexing of a batch,
which begins with its finalize, is waited for before the next one, and hardly counts.
"""

import random
from hashlib import sha256
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil

from tests.acceptance.installations import wait_until
from tests.bench.installations import measured, read_options
from tests.bench.machines import report

PATH = "/v1/buckets/bench/batches"


def main() -> None:
    options = read_options(__doc__, batches=10, files=100, size_bytes=4096)
    costs_ms: dict[bool, list[float]] = {False: [], True: []}
    with measured(options.folder) as daemon, daemon.client() as client:
        client.put("/v1/buckets/bench").raise_for_status()
        process = psutil.Process(daemon.pid)
        for seed in range(2 * options.batches):
            draw, is_packed = random.Random(seed), bool(seed % 2)
            files = {
                f"{seed}-{n}": draw.randbytes(options.size_bytes // 2).hex().encode() for n in range(options.files)
            }
            begin_s = sum(process.cpu_times()[:2])
            batch_id = send_batch(client, files, is_packed=is_packed)
            costs_ms[is_packed].append((sum(process.cpu_times()[:2]) - begin_s) * 1000 / options.files)
            wait_until(lambda: _show(client, batch_id)["terminal"], "the end of the batch", 120)  # noqa: B023
        singly_ms, packed_ms = (round(median(costs), 3) for costs in costs_ms.values())
        results = {"singly_ms_per_file": singly_ms, "packed_ms_per_file": packed_ms}
        report("packs", vars(options), results, daemon.root)


def send_batch(client: httpx.Client, files: dict[str, bytes], *, is_packed: bool) -> str:
    """Create, fill and finalize a batch; its id."""
    items = [{"client_file_id": name, "sha256": sha256(data).hexdigest()} for name, data in files.items()]
    sized = [{"client_file_id": n, "filename": f"{n}.md", "size_bytes": len(data)} for n, data in files.items()]
    body = {"pack": is_packed, "manifest": {"version": 1, "items": items}, "files": sized}
    opened = _checked(client.post(PATH, json=body))
    targets = {opened["pack"]["upload_url"]: b"".join(files.values())} if is_packed else {}
    for item in [] if is_packed else opened["items"]:
        targets[item["upload_url"]] = files[item["client_file_id"]]
    for url, data in targets.items():
        _checked(client.put(urlsplit(url).path, content=data))
    assert len(_checked(client.post(f"{PATH}/{opened['batch_id']}/finalize"))["finalized"]) == len(files)
    return str(opened["batch_id"])


def _show(client: httpx.Client, batch_id: str) -> dict[str, Any]:
    return _checked(client.get(f"/v1/knowledge/batches/{batch_id}"))


def _checked(answer: httpx.Response) -> dict[str, Any]:
    return dict(answer.raise_for_status().json())


if __name__ == "__main__":
    main()
