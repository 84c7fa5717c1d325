"""Search through the daemon, at the client: buckets of 10,000 and 100,000 chunks, and a small one in a large store.

    python -m tests.bench.bench_http_search
    python -m tests.bench.bench_http_search --chunks --store 1000000

Each query has two to five words; one of them stands in about 5 % of the chunks, the others are rarer. Hybrid searches
have their query embedded by a server beside the daemon, whose vectors are random: this is about time alone.
"""

import argparse
import json
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.acceptance.calls import list_sources, make_bucket, upload
from tests.acceptance.installations import process_tree, wait_until
from tests.bench.installations import running_daemon
from tests.bench.loads import run_requests
from tests.bench.machines import report
from tests.bench.vector_servers import serving_vectors
from tests.corpus import Prose

DOCUMENT_BYTES = 100_000
#: A word is common when it stands in this share of the chunks.
COMMON = (0.04, 0.06)
#: Searches before those that count.
WARM = 20
_WORD = re.compile(r"[a-z]{3,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--store", type=int, default=0, help="also a bucket of 100 chunks among so many")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, _searched(Path(name)) as bench:
        results: dict[str, Any] = {"chunks": {}}
        for chunks in options.chunks:
            filled = bench.fill(f"bench-{chunks}", chunks)
            results["chunks"][str(chunks)] = filled | bench.measure(f"bench-{chunks}", options)
        if options.store:
            filled = bench.fill("hundred", 100)
            bench.rest()
            store = bench.fill("rest", options.store - 100)
            results["store"] = {"bucket": filled, "rest": store} | bench.measure("hundred", options)
        report("http_search", {"queries": options.queries, "words": "2 to 5"}, results)


@dataclass(frozen=True, slots=True)
class Bench:
    """A daemon that is filled and then searched."""

    client: httpx.Client
    base_url: str
    key: str
    #: The daemon's.
    pid: int
    #: The file that lets the embeddings server rest.
    resting: Path

    def fill(self, bucket: str, chunks: int) -> dict[str, Any]:
        """Make a bucket of so many chunks, with their vectors unless the server rests."""
        make_bucket(self.client, bucket)
        indexing_s, stored = _fill(self.client, bucket, chunks)
        begin_s = time.perf_counter()
        if not self.resting.exists():
            wait_until(lambda: _is_embedded(self.client, bucket), f"the vectors of {bucket}", 14_400, every_s=1)
        return {
            "stored": stored,
            "indexing_s": round(indexing_s, 1),
            "embedding_s": round(time.perf_counter() - begin_s, 1),
        }

    def rest(self) -> None:
        """Let nothing be embedded any more but queries."""
        self.resting.touch()

    def measure(self, bucket: str, options: argparse.Namespace) -> dict[str, Any]:
        asked = list(_queries(_sample(self.client, bucket), options.queries + WARM))
        figures = {}
        for mode in ("keyword", "hybrid"):
            run_requests(self.base_url, 1, [self._request(bucket, mode, query) for query in asked[:WARM]], 200)
            requests = [self._request(bucket, mode, query) for query in asked[WARM:]]
            for clients in options.clients:
                before_s = self._processor_s()
                load = run_requests(self.base_url, clients, requests, 200)
                # Of the daemon, for each search: what a busy machine doesn't change much.
                processor_ms = (self._processor_s() - before_s) / len(requests) * 1000
                figures[f"{mode}, {clients} clients"] = load.figures() | {"processor_ms": round(processor_ms, 2)}
        return figures

    def _processor_s(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in process_tree(self.pid))

    def _request(self, bucket: str, mode: str, query: str) -> bytes:
        body = json.dumps({"query": query, "buckets": [bucket], "mode": mode}).encode()
        head = (
            f"POST /v1/search HTTP/1.1\r\nHost: {urlsplit(self.base_url).netloc}\r\n"
            f"Authorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@contextmanager
def _searched(folder: Path) -> Iterator[Bench]:
    resting = folder / "resting"
    with ExitStack() as stack:
        url = stack.enter_context(serving_vectors(resting))
        embedding = {"SVC_EMBED_BASE_URL": url, "SVC_EMBED_MODEL": "random"}
        daemon = stack.enter_context(running_daemon(folder, **embedding))
        yield Bench(stack.enter_context(daemon.client()), daemon.base_url, daemon.key, daemon.pid or 0, resting)


def _is_embedded(client: httpx.Client, bucket: str) -> bool:
    """Whether a search of the bucket by meaning warns of nothing that lacks a vector."""
    page = client.post("/v1/search", json={"query": "a", "buckets": [bucket], "mode": "semantic"}).json()
    return bool(page.get("warnings") == [])


def _fill(client: httpx.Client, bucket: str, chunks: int) -> tuple[float, int]:
    """Upload until so many chunks are indexed; the seconds it took, and how many they are."""
    begin_s = time.perf_counter()
    prose = Prose(bucket, packages=())
    number = stored = 0
    while stored < chunks:
        # About 100 chunks a document: the missing ones, in steps that never overshoot by much.
        for _ in range(max(1, (chunks - stored) // 130)):
            upload(client, bucket, f"{number}.md", _document(prose)).raise_for_status()
            number += 1
        _wait_indexed(client, bucket)
        stored = sum(source["extraction"]["chunks"] for source in list_sources(client, bucket))
        sys.stderr.write(f"{bucket}: {stored} chunks\n")
    return time.perf_counter() - begin_s, stored


def _document(prose: Prose) -> bytes:
    text: list[str] = []
    size_bytes = 0
    while size_bytes < DOCUMENT_BYTES:
        text.append(f"## {prose.heading()}\n\n{prose.paragraph()}\n\n{prose.paragraph()}\n\n")
        size_bytes += len(text[-1])
    return "".join(text).encode()


def _wait_indexed(client: httpx.Client, bucket: str) -> None:
    def indexed() -> bool:
        store = client.get(f"/v1/buckets/{bucket}").json()["bucketStore"]
        return bool(store["pending_member_count"] == 0)

    wait_until(indexed, f"the end of indexing of {bucket}", timeout_s=14_400, every_s=0.5)


def _sample(client: httpx.Client, bucket: str) -> list[str]:
    """Texts of the chunks of some documents."""
    ids = [source["id"] for source in list_sources(client, bucket)]
    answers = [client.get(f"/v1/sources/{source_id}/text").json() for source_id in ids[:: max(1, len(ids) // 40)]]
    return [chunk["text"] for answer in answers for chunk in answer["chunks"]]


def _queries(texts: list[str], count: int) -> Iterator[str]:
    """Queries of 2 to 5 words: one common, the others as rare as the text has them."""
    shares = _shares(texts)
    common = sorted(word for word, share in shares.items() if COMMON[0] <= share <= COMMON[1])
    rare = sorted(word for word, share in shares.items() if 0 < share < COMMON[0])
    random = Random(5)
    for _ in range(count):
        words = [random.choice(common), *random.sample(rare, random.randint(1, 4))]
        random.shuffle(words)
        yield " ".join(words)


def _shares(texts: list[str]) -> dict[str, float]:
    """For each word the share of texts that have it, in any of the forms that stemming makes equal."""
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61')")
        database.executemany("INSERT INTO texts VALUES (?)", ((text,) for text in texts))
        count = "SELECT count(*) FROM texts WHERE texts MATCH ?"
        return {word: database.execute(count, (f'"{word}"',)).fetchone()[0] / len(texts) for word in words}


if __name__ == "__main__":
    main()
