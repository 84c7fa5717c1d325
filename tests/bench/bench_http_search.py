"""Keyword search through the daemon, at the client: buckets of 10,000 and 100,000 chunks of real text.

Each query has two to five words; one of them stands in about 5 % of the chunks, the others are rarer.
"""

import argparse
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.acceptance.calls import list_sources, make_bucket, upload
from tests.acceptance.installations import wait_until
from tests.bench.installations import running_daemon
from tests.bench.machines import report, spread_ms
from tests.corpus import Prose

DOCUMENT_BYTES = 100_000
#: A word is common when it stands in this share of the chunks.
COMMON = (0.04, 0.06)
_WORD = re.compile(r"[a-z]{3,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_daemon(Path(folder)) as daemon, daemon.client() as client:
        results = {str(chunks): _measure(client, chunks, options.queries) for chunks in options.chunks}
        report("http_search", {"queries": options.queries, "words": "2 to 5"}, {"chunks": results})


def _measure(client: httpx.Client, chunks: int, queries: int) -> dict[str, Any]:
    bucket = f"bench-{chunks}"
    make_bucket(client, bucket)
    indexing_s, stored = _fill(client, bucket, chunks)
    asked = list(_queries(_sample(client, bucket), queries + 20))
    answers = [_search(client, bucket, query) for query in asked][20:]
    return {
        "stored": stored,
        "indexing_s": round(indexing_s, 1),
        **spread_ms([duration_s for duration_s, _ in answers]),
        "hits_median": statistics.median(hits for _, hits in answers),
    }


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

    wait_until(indexed, f"the end of indexing of {bucket}", timeout_s=1800, every_s=0.5)


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


def _search(client: httpx.Client, bucket: str, query: str) -> tuple[float, int]:
    """Seconds at the client, and the number of hits on the first page."""
    question = {"query": query, "buckets": [bucket], "mode": "keyword"}
    begin_s = time.perf_counter()
    answer = client.post("/v1/search", json=question)
    duration_s = time.perf_counter() - begin_s
    answer.raise_for_status()
    return duration_s, len(answer.json()["data"])


if __name__ == "__main__":
    main()
