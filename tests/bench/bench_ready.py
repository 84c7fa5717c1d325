"""Saves, searches and `svc status` of an idle daemon, and while a folder of small files comes in by `svc upload`.

A save is timed from the answer to its upload to the first search that finds it. Another bucket is searched by keyword.
Both are done twenty times a second, or as often as they can be, and `svc status --json` once a second.
"""

import argparse
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle

import httpx

from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import wait_until
from tests.bench.bench_folders import make_files
from tests.bench.bench_http_search import make_queries
from tests.bench.fillings import fill_bucket, make_document, passages
from tests.bench.machines import spread_ms, timed
from tests.bench.sides import Row, Side, each_side, read_side_options, report_rows
from tests.corpus import Prose, phrase_of

BUCKET = "bench"
SEARCHED = "searched"
QUERIES = 300
#: The ranks that are reported.
RANKS = ("p50_ms", "p95_ms", "p99_ms")


def main() -> None:
    options = read_side_options(__doc__, files=10_000, size_bytes=10_240, chunks=20_000, seconds=20.0)
    rows = [row for side in each_side(options) for row in _measure(side, options)]
    report_rows("ready", options, rows)


def _measure(side: Side, options: argparse.Namespace) -> Iterator[Row]:
    make_files(side.root / "files", options.files, 4096)
    words = ("upload", "files", "-b", "incoming", "--json", "--timeout", "60m")
    with side.client() as client:
        begin(client)
        fill_bucket(client, SEARCHED, options.chunks)
        queries = list(make_queries(passages(client, SEARCHED), QUERIES))
    numbers = count()
    yield {"side": side.name, "meanwhile": "nothing"} | _use(
        side, queries, numbers, options.size_bytes, lambda: time.sleep(options.seconds)
    )
    yield {"side": side.name, "meanwhile": f"{options.files} files"} | _use(
        side, queries, numbers, options.size_bytes, lambda: side.run_svc(*words)
    )


def _use(side: Side, queries: list[str], numbers: Iterator[int], size_bytes: int, load: Callable[[], object]) -> Row:
    """Save, search and ask for the status, each once at least, until the load ends."""
    is_over, asked = threading.Event(), cycle(queries)
    with side.client() as saving, side.client() as searching, ThreadPoolExecutor(3) as pool:
        uses: dict[str, tuple[Callable[[], float], float]] = {
            "save": (lambda: wait_s(saving, next(numbers), size_bytes, every_s=0.002), 0.05),
            "search": (lambda: _search_s(searching, next(asked)), 0.05),
            "status": (lambda: _status_s(side), 1.0),
        }
        running = {name: pool.submit(_repeat, use, pause_s, is_over) for name, (use, pause_s) in uses.items()}
        try:
            _, load_s = timed(load)
        finally:
            is_over.set()
        row: Row = {"seconds": round(load_s, 1)}
        for name, each in running.items():
            spread = spread_ms(each.result())
            row |= {f"{name}_count": len(each.result())} | {f"{name}_{rank}": spread[rank] for rank in RANKS}
    return row


def _repeat(use: Callable[[], float], pause_s: float, is_over: threading.Event) -> list[float]:
    took_s = [use()]
    while not is_over.wait(pause_s):
        took_s.append(use())
    return took_s


def _search_s(client: httpx.Client, query: str) -> float:
    body = {"query": query, "buckets": [SEARCHED], "mode": "keyword"}
    return timed(lambda: client.post("/v1/search", json=body).raise_for_status())[1]


def _status_s(side: Side) -> float:
    process = side.spawn("svc_cli", "status", "--json", stdout=subprocess.DEVNULL)
    exit_code, took_s = timed(process.wait)
    if exit_code:
        raise RuntimeError(f"svc status ended with {exit_code}")
    return took_s


def begin(client: httpx.Client) -> None:
    """Upload the document that starts what reading keeps ready from then on, and gives the bucket some text."""
    make_bucket(client, BUCKET)
    wait_ended(client, upload(client, BUCKET, "first.md", b"# First\n\nSome text.").json()["id"])


def wait_s(client: httpx.Client, number: int, size_bytes: int, every_s: float = 0.002) -> float:
    """Seconds between the answer to one upload and the first search that has it, with so long between two searches."""
    phrase = phrase_of(number)
    accepted = upload(client, BUCKET, f"{number}.md", document(number, size_bytes))
    begin_s = time.perf_counter()
    source_id = accepted.raise_for_status().json()["id"]

    def is_found() -> bool:
        answer = client.post("/v1/search", json={"query": phrase, "buckets": [BUCKET], "mode": "keyword"})
        return any(hit["source_id"] == source_id for hit in answer.raise_for_status().json()["data"])

    wait_until(is_found, f"a search that finds document {number}", 3600, every_s=every_s)
    found_s = time.perf_counter() - begin_s
    wait_ended(client, source_id)
    return found_s


def document(number: int, size_bytes: int) -> bytes:
    """The document with the phrase of this number."""
    return make_document(Prose(number), size_bytes, f"The {phrase_of(number)}")


if __name__ == "__main__":
    main()
