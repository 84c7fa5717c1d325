"""Measures keyword search in the embedded provider over real text of this machine; prints one JSON line per size.

    python tests/bench/bench_search.py --chunks 10000 100000

The text is what a machine with Python has anyway: source files and docs. Every query has 2 to 5 words, one of which
stands in about 5 % of the chunks while the others are rare. The bucket `all` holds every chunk.
"""

import argparse
import json
import math
import os
import platform
import random
import re
import sqlite3
import statistics
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from svc_daemon.core.documents import Chunk
from svc_daemon.provider.contract import IndexDocument, SearchMode, SearchQuery
from svc_daemon.provider.embedded.provider import EmbeddedProvider

TEAM = "team_bench"
ROOTS = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "/usr/share/doc", "/usr/share/perl", "/usr/lib")
SUFFIXES = {".py", ".pyi", ".txt", ".md", ".rst", ".html", ".pod", ".pm"}
CHUNK_CHARACTERS = 950
CHUNKS_PER_DOCUMENT = 12
#: As many as the daemon has workers and a few more, so that puts share commits.
PUTTERS = 8
WORD = re.compile(r"[a-z]{4,}")
#: Share of the chunks that have a query's common word.
COMMON_SHARE = (0.045, 0.055)
#: Chunks that have a rare word.
RARE_CHUNKS = (10, 300)


def texts() -> Iterator[tuple[str, str]]:
    """Path and text of each file, for ever: after a round the same text comes again, cut half a chunk later."""
    for offset in (0, CHUNK_CHARACTERS // 2, CHUNK_CHARACTERS // 4):
        for path in sorted({path for root in ROOTS for path in Path(root).rglob("*") if path.suffix in SUFFIXES}):
            if path.is_file() and not path.is_symlink():
                yield str(path), path.read_text(errors="replace")[offset:]


def documents(chunks: int) -> Iterator[IndexDocument]:
    """Documents of up to 12 chunks until there are `chunks` in all."""
    left, number = chunks, 0
    size = CHUNK_CHARACTERS * CHUNKS_PER_DOCUMENT
    for path, text in texts():
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            cut = cut_text(piece)[:left]
            number += 1
            yield IndexDocument(
                source_id=f"src_{number:06}", generation=1, title=Path(path).name, text=piece, chunks=cut
            )
            left -= len(cut)
            if left == 0:
                return
    raise SystemExit(f"This machine has too little text for {chunks} chunks.")


def cut_text(text: str) -> tuple[Chunk, ...]:
    return tuple(
        Chunk(
            ordinal=ordinal,
            text=text[start : start + CHUNK_CHARACTERS],
            char_start=start,
            char_end=min(len(text), start + CHUNK_CHARACTERS),
        )
        for ordinal, start in enumerate(range(0, len(text), CHUNK_CHARACTERS))
    )


def buckets_of(number: int) -> list[str]:
    """Every document is in `all`, half of them in `half`, one of a hundred in `small`."""
    return ["bkt_all", *(["bkt_half"] if number % 2 else []), *(["bkt_small"] if number % 100 == 0 else [])]


class Filler:
    """Puts documents from several threads and counts the words of their chunks."""

    def __init__(self, provider: EmbeddedProvider, folder: Path) -> None:
        self.provider = provider
        self.log = folder / f"{TEAM}.db-wal"
        self.having: Counter[str] = Counter()
        self.documents = 0
        self.log_bytes = 0
        self.put_s: list[float] = []

    def fill(self, chunks: int) -> float:
        """Seconds that the puts took, the preparation of the documents left out."""
        ready = list(documents(chunks))
        for document in ready:
            self.having.update(word for chunk in document.chunks for word in set(WORD.findall(chunk.text.lower())))
        started = time.perf_counter()
        with ThreadPoolExecutor(PUTTERS) as pool:
            list(pool.map(self.put, ready))
        self.documents = len(ready)
        return time.perf_counter() - started

    def put(self, document: IndexDocument) -> None:
        number = int(document.source_id.removeprefix("src_"))
        started = time.perf_counter()
        self.provider.put_document(TEAM, document, buckets_of(number))
        self.put_s.append(time.perf_counter() - started)
        self.log_bytes = max(self.log_bytes, self.log.stat().st_size)


def queries(provider: EmbeddedProvider, having: Counter[str], chunks: int, count: int) -> list[str]:
    """The same queries at every run over the same text."""
    chance = random.Random(2)
    low, high = (share * chunks for share in COMMON_SHARE)
    # The index counts stems, we counted words: ask it what it thinks of the likely ones.
    likely = [word for word, n in having.items() if low / 3 <= n <= high]
    common = [word for word in likely if low <= chunks_having(provider, word, chunks) <= high]
    rare = [word for word, n in having.items() if RARE_CHUNKS[0] <= n <= RARE_CHUNKS[1]]
    return [" ".join([chance.choice(common), *chance.sample(rare, chance.randint(1, 4))]) for _ in range(count)]


def chunks_having(provider: EmbeddedProvider, word: str, chunks: int) -> float:
    """How many chunks have the word, from the weight that a hit shows."""
    page = provider.search(TEAM, SearchQuery(text=word, limit=1, mode=SearchMode.KEYWORD))
    if not page.hits or not page.hits[0].matches:
        return 0
    return (chunks + 1) / math.exp(page.hits[0].matches[0].idf) - 0.5


def timed(run: Callable[[str], object], texts: Sequence[str]) -> dict[str, float]:
    """Milliseconds of one search, at the median and the 95th percentile."""
    taken = []
    for text in texts:
        started = time.perf_counter()
        run(text)
        taken.append((time.perf_counter() - started) * 1000)
    return {"p50_ms": round(statistics.median(taken), 2), "p95_ms": round(statistics.quantiles(taken, n=20)[18], 2)}


def measure(folder: Path, chunks: int, count: int) -> dict[str, object]:
    provider = EmbeddedProvider(folder)
    filler = Filler(provider, folder)
    fill_s = filler.fill(chunks)
    asked = queries(provider, filler.having, chunks, count)
    scopes = {"team": None, "all": ["bkt_all"], "half": ["bkt_half"], "small": ["bkt_small"]}

    def search_in(bucket_ids: Sequence[str] | None) -> Callable[[str], object]:
        return lambda text: provider.search(TEAM, SearchQuery(text=text, bucket_ids=bucket_ids, limit=10))

    latency = {name: timed(search_in(bucket_ids), asked) for name, bucket_ids in scopes.items()}
    provider.close()
    return {
        "search": latency,
        "put_chunks_per_s": round(chunks / fill_s),
        "put_documents_per_s": round(filler.documents / fill_s),
        "put_p50_ms": round(statistics.median(filler.put_s) * 1000, 2),
        "largest_log_mb": round(filler.log_bytes / 1e6, 1),
        "index_mb": round((folder / f"{TEAM}.db").stat().st_size / 1e6, 1),
    }


def machine() -> dict[str, object]:
    return {
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    for chunks in options.chunks:
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(Path(folder), chunks, options.queries)
        parameters = {"chunks": chunks, "queries": options.queries, "chunk_characters": CHUNK_CHARACTERS}
        print(json.dumps({"bench": "search", **parameters, "putters": PUTTERS, **figures, "machine": machine()}))


if __name__ == "__main__":
    main()
