"""Uploads and saves until they are found, searches and `svc status`: of idle daemons, and while small files come in.

An upload is timed from its answer, a save from the moment at which the file takes its place in a folder that
`svc watch run` watches, both to the first search that finds them. Another bucket is searched by keyword. Each is done
twenty times a second, or as often as it can be, and `svc status --json` once a second.
"""

import argparse
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count, cycle

import httpx

from tests.acceptance.calls import take_in, upload, wait_ended
from tests.acceptance.installations import wait_until
from tests.acceptance.watches import watching
from tests.bench.bench_folders import send_folder
from tests.bench.harness import Row, Side, all_sides, read_options, report, spread_ms, timed
from tests.bench.loads import fill_bucket, make_document, make_files, make_queries
from tests.corpus import Prose, phrase_of

BUCKET, SEARCHED = "ready", "searched"
QUERIES = 300
#: Between two searches for what is not found yet.
LOOK_EVERY_S = 0.002
_NUMBERS = count()


def main() -> None:
    options = read_options(__doc__, files=10_000, size_bytes=10_240, passages=20_000, seconds=20.0)
    with all_sides(options) as sides:
        report("ready", options, [row for side in sides for row in _measure(side, options)])


def _measure(side: Side, options: argparse.Namespace) -> Iterator[Row]:
    make_files(side.root / "files", options.files, 4096)
    make_files(side.root / "docs", 1, 200)
    with side.client() as client:
        take_in(client, BUCKET, "first.md", b"# First\n\nSome text.")
        fill_bucket(client, SEARCHED, options.passages)
        queries = make_queries(client, SEARCHED, QUERIES)
    watcher = [side.python, "-m", "svc_cli", "watch", "run", "docs", "-b", BUCKET, "--ndjson"]
    loads: dict[str, Callable[[], object]] = {
        "nothing": lambda: time.sleep(options.seconds),
        f"{options.files} files": lambda: send_folder(side),
    }
    with watching(side, program=watcher):
        for meanwhile, load in loads.items():
            for use, took_s in _use(side, queries, options.size_bytes, load).items():
                named = {"side": side.name, "meanwhile": meanwhile, "use": use, "count": len(took_s)}
                yield named | spread_ms(took_s)


def _use(side: Side, queries: list[str], size_bytes: int, load: Callable[[], object]) -> dict[str, list[float]]:
    """The seconds of each use, done once at least, until the load ends."""
    is_over, asked = threading.Event(), cycle(queries)
    with ExitStack() as stack:
        uploading, saving, searching = (stack.enter_context(side.client()) for _ in range(3))
        pool = stack.enter_context(ThreadPoolExecutor(4))
        stack.callback(is_over.set)
        uses: dict[str, tuple[Callable[[], float], float]] = {
            "upload": (lambda: _upload_s(uploading, size_bytes), 0.05),
            "save": (lambda: _save_s(saving, side, size_bytes), 0.05),
            "search": (lambda: _search_s(searching, next(asked)), 0.05),
            "status": (lambda: _status_s(side), 1.0),
        }
        running = {name: pool.submit(_repeat, use, pause_s, is_over) for name, (use, pause_s) in uses.items()}
        load()
        is_over.set()
        return {name: each.result() for name, each in running.items()}


def _repeat(use: Callable[[], float], pause_s: float, is_over: threading.Event) -> list[float]:
    took_s = [use()]
    while not is_over.wait(pause_s):
        took_s.append(use())
    return took_s


def _upload_s(client: httpx.Client, size_bytes: int) -> float:
    phrase = phrase_of(number := next(_NUMBERS))
    accepted = upload(client, BUCKET, f"{number}.md", make_document(Prose(number), size_bytes, f"The {phrase}"))
    begin_s, source_id = time.perf_counter(), accepted.raise_for_status().json()["id"]
    found_s = _found_s(client, phrase, begin_s, lambda hit: hit["source_id"] == source_id)
    wait_ended(client, source_id)
    return found_s


def _save_s(client: httpx.Client, side: Side, size_bytes: int) -> float:
    """As most editors save: another file takes the place of the old one."""
    word = f"quokka{next(_NUMBERS):06}"
    staged = side.root / "docs" / ".saved.md.tmp"
    staged.write_bytes(make_document(Prose(word), size_bytes, f"A note about {word}"))
    begin_s = time.perf_counter()
    staged.replace(side.root / "docs" / "saved.md")
    return _found_s(client, word, begin_s, lambda _: True)


def _found_s(client: httpx.Client, query: str, begin_s: float, is_it: Callable[[Row], bool]) -> float:
    def is_found() -> bool:
        answer = client.post("/v1/search", json={"query": query, "buckets": [BUCKET], "mode": "keyword"})
        return any(is_it(hit) for hit in answer.raise_for_status().json()["data"])

    wait_until(is_found, f"a search that finds {query}", 3600, every_s=LOOK_EVERY_S)
    return time.perf_counter() - begin_s


def _search_s(client: httpx.Client, query: str) -> float:
    body = {"query": query, "buckets": [SEARCHED], "mode": "keyword"}
    return timed(lambda: client.post("/v1/search", json=body).raise_for_status())[1]


def _status_s(side: Side) -> float:
    process = side.spawn("svc_cli", "status", "--json", stdout=subprocess.DEVNULL)
    exit_code, took_s = timed(process.wait)
    if exit_code:
        raise RuntimeError(f"svc status ended with {exit_code}")
    return took_s


if __name__ == "__main__":
    main()
