"""Search through the daemon, at the client: buckets of 10,000 and 100,000 chunks, and a small one in a large store.

    python -m tests.bench.bench_http_search
    python -m tests.bench.bench_http_search --chunks --store 1000000

Each query has two to five words; one of them is in about 5 % of the chunks, the others are rarer. Hybrid searches
have their query embedded by a server beside the daemon, whose vectors are random: this is about time alone. `--store`
adds a bucket of 100 chunks among so many.
"""

import argparse
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tests.acceptance.installations import Installation, wait_until
from tests.bench.fillings import fill_bucket, passages
from tests.bench.installations import measured, read_options
from tests.bench.loads import run_requests
from tests.bench.machines import processor_s, report, timed
from tests.bench.vector_servers import serving_vectors

#: A word is common when it is in this share of the chunks.
COMMON = (0.04, 0.06)
#: Searches before those that count.
WARM = 20
_WORD = re.compile(r"[a-z]{3,}")


def main() -> None:
    options = read_options(__doc__, chunks=[10_000, 100_000], store=0, queries=300, clients=[1, 4])
    results: dict[str, Any] = {"chunks": {}}
    with measured(options.folder, is_running=False) as daemon, serving_vectors(daemon.root / "resting") as url:
        daemon.environ |= {"SVC_EMBED_BASE_URL": url, "SVC_EMBED_MODEL": "random"}
        daemon.start()
        bench = Bench(daemon, daemon.root / "resting")
        for chunks in options.chunks:
            filled = bench.fill(f"bench-{chunks}", chunks)
            results["chunks"][str(chunks)] = filled | bench.measure(f"bench-{chunks}", options)
        if options.store:
            filled = bench.fill("hundred", 100)
            # From here on nothing is embedded but queries.
            bench.resting.touch()
            store = bench.fill("rest", options.store - 100)
            results["store"] = {"bucket": filled, "rest": store} | bench.measure("hundred", options)
        report("http_search", vars(options), results)


@dataclass(frozen=True, slots=True)
class Bench:
    daemon: Installation
    #: The file that lets the embeddings server rest.
    resting: Path

    def fill(self, bucket: str, chunks: int) -> dict[str, Any]:
        """Make a bucket of so many chunks, with their vectors unless the server rests."""
        with self.daemon.client() as client:
            semantic = {"query": "a", "buckets": [bucket], "mode": "semantic"}

            def is_embedded() -> bool:
                # A search by meaning warns of what lacks a vector.
                page = client.post("/v1/search", json=semantic).json()
                return self.resting.exists() or page.get("warnings") == []

            stored, indexing_s = timed(lambda: fill_bucket(client, bucket, chunks))
            _, embedding_s = timed(lambda: wait_until(is_embedded, f"the vectors of {bucket}", 14_400, every_s=1))
        return {"stored": stored, "indexing_s": round(indexing_s, 1), "embedding_s": round(embedding_s, 1)}

    def measure(self, bucket: str, options: argparse.Namespace) -> dict[str, Any]:
        with self.daemon.client() as client:
            asked = list(make_queries(passages(client, bucket), options.queries + WARM))
        figures, base_url, pid = {}, self.daemon.base_url, self.daemon.pid or 0
        for mode in ("keyword", "hybrid"):
            requests = [self._request(bucket, mode, query) for query in asked]
            run_requests([base_url], 1, requests[:WARM], 200)
            for clients in options.clients:
                before_s = processor_s(pid)
                load = run_requests([base_url], clients, requests[WARM:], 200)
                # Of the daemon, for each search: what a busy machine doesn't change much.
                processor_ms = (processor_s(pid) - before_s) / options.queries * 1000
                figures[f"{mode}, {clients} clients"] = load.figures() | {"processor_ms": round(processor_ms, 2)}
        return figures

    def _request(self, bucket: str, mode: str, query: str) -> bytes:
        body = json.dumps({"query": query, "buckets": [bucket], "mode": mode}).encode()
        head = (
            f"POST /v1/search HTTP/1.1\r\nHost: {urlsplit(self.daemon.base_url).netloc}\r\n"
            f"Authorization: Bearer {self.daemon.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def make_queries(texts: list[str], count: int) -> Iterator[str]:
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
