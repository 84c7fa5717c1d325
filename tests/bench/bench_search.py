"""Measures search in the embedded provider over real text of this machine; prints one JSON line per size.

    python -m tests.bench.bench_search --chunks 100000
    python -m tests.bench.bench_search --chunks 1000000

The text is what a machine with Python has anyway: source files and docs. Every query has 2 to 5 words, one of which
is in about 5 % of the chunks while the others are rare. The bucket `all` holds every chunk, `hundred` a hundred.

The vectors are random ones of length 1, put straight into the provider: they show how long a search by meaning takes,
not what it finds, and the making of a query's vector is not in the figures.
"""

import math
import random
import re
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from svc_daemon.core.text.chunking import Chunk
from svc_daemon.provider.contract import IndexDocument, QueryVector, SearchMode, SearchQuery
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.bench.installations import read_options
from tests.bench.machines import report, spread_ms, timed

TEAM = "team_bench"
ROOTS = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "/usr/share/doc", "/usr/share/perl", "/usr/lib")
SUFFIXES = {".py", ".pyi", ".txt", ".md", ".rst", ".html", ".pod", ".pm"}
CHUNK_CHARACTERS = 950
CHUNKS_PER_DOCUMENT = 12
#: As many as the daemon has workers and a few more, so that puts share commits.
PUTTERS = 8
#: Documents that are made ready, and then put, at a time.
BATCH_DOCUMENTS = 2000
WORD = re.compile(r"[a-z]{4,}")
#: Share of the chunks that have a query's common word.
COMMON_SHARE = (0.045, 0.055)
#: Chunks that have a rare word.
RARE_CHUNKS = (10, 300)
MODEL = "random"
#: As MiniLM makes them.
DIMENSION = 384
#: Vectors that are put at a time.
PUT_VECTORS = 500
#: Documents that together have about a hundred chunks.
HUNDRED = 100 // CHUNKS_PER_DOCUMENT
SCOPES = {"team": None, "all": ["bkt_all"], "half": ["bkt_half"], "small": ["bkt_small"], "hundred": ["bkt_hundred"]}
#: What a search of the daemon asks for when ten results are wanted.
HITS = 25


def texts() -> Iterator[tuple[str, str]]:
    """Name and text of each file, for ever: after a round the same text comes again, cut half a chunk later."""
    for offset in (0, CHUNK_CHARACTERS // 2, CHUNK_CHARACTERS // 4):
        for path in sorted({path for root in ROOTS for path in Path(root).rglob("*") if path.suffix in SUFFIXES}):
            if path.is_file() and not path.is_symlink():
                yield path.name, path.read_text(errors="replace")[offset:]


def documents(chunks: int) -> Iterator[IndexDocument]:
    """Documents of up to 12 chunks until there are `chunks` in all."""
    left, number = chunks, 0
    size = CHUNK_CHARACTERS * CHUNKS_PER_DOCUMENT
    for name, text in texts():
        for start in range(0, len(text), size):
            piece, number = text[start : start + size], number + 1
            cut = cut_text(piece)[:left]
            yield IndexDocument(
                source_id=f"src_{number:06}",
                generation=1,
                title=name,
                text=piece,
                chunks=cut,
                bucket_ids=buckets_of(number),
            )
            left -= len(cut)
            if left == 0:
                return
    raise SystemExit(f"This machine has too little text for {chunks} chunks.")


def cut_text(text: str) -> tuple[Chunk, ...]:
    pieces = [text[start : start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS)]
    starts = [CHUNK_CHARACTERS * number for number in range(len(pieces))]
    return tuple(
        Chunk(ordinal=number, text=piece, char_start=start, char_end=start + len(piece))
        for number, (start, piece) in enumerate(zip(starts, pieces, strict=True))
    )


def buckets_of(number: int) -> list[str]:
    """Every document is in `all`, half of them in `half`, one of a hundred in `small`, the first in `hundred`."""
    shares = {"bkt_half": number % 2 == 1, "bkt_small": number % 100 == 0, "bkt_hundred": number <= HUNDRED}
    return ["bkt_all", *(name for name, is_in in shares.items() if is_in)]


def fill(provider: EmbeddedProvider, folder: Path, chunks: int) -> tuple[Counter[str], dict[str, object]]:
    """Put documents from several threads; how many chunks have each word, and the figures of the puts."""
    having: Counter[str] = Counter()
    logs: list[int] = []
    taken_s, puts_s, left = 0.0, list[float](), documents(chunks)

    def put(document: IndexDocument) -> None:
        puts_s.append(timed(lambda: provider.put_documents(TEAM, [document]))[1])
        logs.append((folder / f"{TEAM}.db-wal").stat().st_size)

    # The preparation of the documents is left out.
    while ready := list(islice(left, BATCH_DOCUMENTS)):
        for document in ready:
            having.update(word for chunk in document.chunks for word in set(WORD.findall(chunk.text.lower())))
        with ThreadPoolExecutor(PUTTERS) as pool:
            taken_s += timed(lambda: list(pool.map(put, ready)))[1]
    return having, {
        "put_chunks_per_s": round(chunks / taken_s),
        "put_documents_per_s": round(len(puts_s) / taken_s),
        "put_p50_ms": spread_ms(puts_s)["p50_ms"],
        "largest_log_mb": round(max(logs) / 1e6, 1),
    }


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


def random_vectors(count: int, chance: np.random.Generator) -> list[bytes]:
    matrix = chance.standard_normal((count, DIMENSION), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return [row.tobytes() for row in matrix]


def embed(provider: EmbeddedProvider) -> float:
    """Give every chunk a vector; the seconds that the puts took."""
    chance, taken_s = np.random.default_rng(3), 0.0
    while missing := provider.list_unembedded(TEAM, MODEL, PUT_VECTORS):
        vectors = zip([each.chunk_id for each in missing], random_vectors(len(missing), chance), strict=True)
        taken_s += timed(partial(provider.put_vectors, TEAM, MODEL, list(vectors)))[1]
    return taken_s


def spread(run: Callable[[SearchQuery], object], asked: Sequence[SearchQuery], clients: int) -> dict[str, float]:
    """Milliseconds of one search while so many run at a time, and those of its processor."""
    processor_s: list[float] = []

    def one(query: SearchQuery) -> float:
        before_s = time.thread_time()
        took_s = timed(lambda: run(query))[1]
        processor_s.append(time.thread_time() - before_s)
        return took_s

    with ThreadPoolExecutor(clients) as pool:
        taken_s = list(pool.map(one, asked))
    return spread_ms(taken_s) | {"processor_p50_ms": spread_ms(processor_s)["p50_ms"]}


def measure(folder: Path, chunks: int, count: int) -> dict[str, object]:
    provider = EmbeddedProvider(folder)
    having, puts = fill(provider, folder, chunks)
    embed_s = embed(provider)
    asked_for = queries(provider, having, chunks, count)
    vectors = [QueryVector(model=MODEL, values=each) for each in random_vectors(count, np.random.default_rng(5))]

    def asked(mode: SearchMode, scope: str) -> list[SearchQuery]:
        make = partial(SearchQuery, bucket_ids=SCOPES[scope], limit=HITS, mode=mode)
        return [make(text=text, vector=vector) for text, vector in zip(asked_for, vectors, strict=True)]

    search = partial(provider.search, TEAM)
    first = {scope: spread(search, asked(SearchMode.SEMANTIC, scope)[:2], 1)["max_ms"] for scope in SCOPES}
    latency = {
        f"{scope} {mode} {clients}": spread(search, asked(mode, scope), clients)
        for scope in SCOPES
        for mode in (SearchMode.KEYWORD, SearchMode.HYBRID)
        for clients in (1, 4)
    }
    provider.close()
    return {
        "search": latency,
        "first_by_meaning_ms": first,
        **puts,
        "put_vectors_per_s": round(chunks / embed_s),
        "index_mb": round((folder / f"{TEAM}.db").stat().st_size / 1e6, 1),
    }


def main() -> None:
    options = read_options(__doc__, chunks=[10_000, 100_000], queries=200)
    for chunks in options.chunks:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            figures = measure(Path(folder), chunks, options.queries)
        parameters = {"chunks": chunks, "queries": options.queries, "chunk_characters": CHUNK_CHARACTERS}
        report("search", parameters | {"putters": PUTTERS}, figures)


if __name__ == "__main__":
    main()
