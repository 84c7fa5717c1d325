"""Measures nDCG@10 of search on retrieval collections in the BEIR layout; prints one JSON line for each.

    python -m tests.bench.bench_relevance FOLDER [FOLDER ...]
    SVC_BENCH_COLLECTIONS=FOLDER:FOLDER python -m tests.bench.bench_relevance

Each document is one chunk (`whole`), and cut as the service cuts a text file (`chunks`), where a document is as good as
its best chunk. Beside it is plain BM25: a bare FTS5 table of the whole documents, asked for any of the query's
words. The figures of the queries with an even and an odd place show how much of a difference is chance.

With `--embed-url` and `--embed-model` a server makes vectors, and searches by meaning and by both are measured, too:

    python -m tests.bench.bench_relevance FOLDER --embed-url http://127.0.0.1:8080/v1 --embed-model all-minilm-l6-v2
"""

import argparse
import re
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from math import hypot
from pathlib import Path

import httpx

from svc_cli.evals.metrics import mean, ndcg
from svc_daemon.core.text.chunking import Chunk, ChunkingOptions, chunk_document
from svc_daemon.extract.builders import LineDocument
from svc_daemon.provider.contract import IndexDocument, QueryVector, SearchMode, SearchProvider, SearchQuery
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.bench.corpora import Collection, Entry, add_folders, read_collections
from tests.bench.machines import report, spread_ms, timed

TEAM = "team_bench"
DEPTH = 10
#: Chunks asked for, so that ten documents are among them.
MOST_CHUNKS = 50
#: What goes before a document's id where a source's is wanted.
SOURCE = "src_"
#: Texts that are embedded by one call.
BATCH = 32
#: Documents that are put by one call.
WAVE = 64

#: The documents that a query finds, best first.
Find = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class VectorServer:
    """A server that speaks OpenAI's `/v1/embeddings`, and its model."""

    #: As in SVC_EMBED_BASE_URL, such as `http://127.0.0.1:8080/v1`.
    base_url: str
    model: str

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Of length 1 each, in order, as providers take them."""
        body = {"model": self.model, "input": texts}
        answer = httpx.post(f"{self.base_url.rstrip('/')}/embeddings", json=body, timeout=120, trust_env=False)
        rows = sorted(answer.raise_for_status().json()["data"], key=lambda row: row["index"])
        vectors = [[number / hypot(*row["embedding"]) for number in row["embedding"]] for row in rows]
        return [struct.pack(f"<{len(vector)}f", *vector) for vector in vectors]

    def fill(self, provider: SearchProvider) -> None:
        while waiting := provider.list_unembedded(TEAM, self.model, BATCH):
            vectors = self.embed([chunk.text for chunk in waiting])
            ids = [chunk.chunk_id for chunk in waiting]
            provider.put_vectors(TEAM, self.model, list(zip(ids, vectors, strict=True)))


def judge(collection: Collection, find: Find) -> dict[str, float]:
    """nDCG@10 of all queries and of each half, and the time of one search."""
    scores, taken_s = [], []
    for query in collection.queries:
        found, took_s = timed(partial(find, query.text))
        taken_s.append(took_s)
        judged = collection.judgments[query.id]
        scores.append(ndcg([judged.get(name, 0) for name in dict.fromkeys(found)], list(judged.values()), DEPTH))
    halves = {"ndcg_at_10": scores, "even": scores[::2], "odd": scores[1::2]}
    return {name: round(mean(half), 4) for name, half in halves.items()} | {"p50_ms": spread_ms(taken_s)["p50_ms"]}


def find_in(provider: SearchProvider, mode: SearchMode, server: VectorServer | None) -> Find:
    def find(text: str) -> Sequence[str]:
        vector = QueryVector(model=server.model, values=server.embed([text])[0]) if server else None
        page = provider.search(TEAM, SearchQuery(text=text, limit=MOST_CHUNKS, mode=mode, vector=vector))
        return [hit.source_id.removeprefix(SOURCE) for hit in page.hits]

    return find


def index_document(entry: Entry, is_cut: bool) -> IndexDocument:
    """As one chunk, or cut as the service cuts a text file."""
    chunks: tuple[Chunk, ...] = (Chunk(ordinal=0, text=entry.text, char_start=0, char_end=len(entry.text)),)
    if is_cut:
        builder = LineDocument(entry.text)
        builder.add_paragraphs("paragraph", 0, len(builder.lines) - 1)
        chunks = chunk_document(builder.finish(), ChunkingOptions())
    return IndexDocument(
        source_id=SOURCE + entry.id, generation=1, title=entry.title, text=entry.text, chunks=chunks, bucket_ids=()
    )


def measure(
    provider: SearchProvider, collection: Collection, is_cut: bool, server: VectorServer | None
) -> dict[str, dict[str, float]]:
    """Fill the provider, which is empty, and judge what it finds in each mode."""
    documents = [index_document(entry, is_cut) for entry in collection.documents]
    waves = [documents[start : start + WAVE] for start in range(0, len(documents), WAVE)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda wave: provider.put_documents(TEAM, wave), waves))
    figures = {"keyword": judge(collection, find_in(provider, SearchMode.KEYWORD, None))}
    if server:
        server.fill(provider)
        for mode in (SearchMode.SEMANTIC, SearchMode.HYBRID):
            figures[mode.value] = judge(collection, find_in(provider, mode, server))
    return figures


def measure_embedded(collection: Collection, is_cut: bool, server: VectorServer | None) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder, closing(EmbeddedProvider(Path(folder))) as provider:
        return measure(provider, collection, is_cut, server)


def measure_plain(collection: Collection) -> dict[str, float]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE plain USING fts5(id UNINDEXED, title, text)")
        rows = [(entry.id, entry.title, entry.text) for entry in collection.documents]
        connection.executemany("INSERT INTO plain (id, title, text) VALUES (?, ?, ?)", rows)

        def find(text: str) -> Sequence[str]:
            words = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", text.lower())))
            statement = "SELECT id FROM plain WHERE plain MATCH ? ORDER BY bm25(plain), rowid LIMIT ?"
            return [name for (name,) in connection.execute(statement, (words, DEPTH))]

        return judge(collection, find)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures nDCG@10 of search, beside plain BM25.")
    add_folders(parser)
    parser.add_argument("--embed-url", metavar="URL", help="of a server that makes vectors")
    parser.add_argument("--embed-model", metavar="NAME", default="default", help="what it calls its model")
    options = parser.parse_args()
    server = VectorServer(options.embed_url, options.embed_model) if options.embed_url else None
    for collection in read_collections(parser, options):
        parameters = {
            "collection": collection.name,
            "documents": len(collection.documents),
            "queries": len(collection.queries),
            "judgments": sum(map(len, collection.judgments.values())),
        }
        results: dict[str, object] = {
            cut: measure_embedded(collection, cut == "chunks", server) for cut in ("whole", "chunks")
        }
        report("relevance", parameters, {"plain_bm25": measure_plain(collection)} | results)


if __name__ == "__main__":
    main()
