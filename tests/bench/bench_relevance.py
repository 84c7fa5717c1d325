"""How good the ranking is: nDCG@10 of searches in retrieval collections in the BEIR layout, beside plain BM25.

    python -m tests.bench.bench_relevance FOLDER [FOLDER ...]

The documents are uploaded to a fresh daemon, and a document is as good as its best passage. Plain BM25 is a bare FTS5
table of the whole documents, asked for any of the query's words. The figures of the queries with an even and an odd
place show how much of a difference is chance. With `--model` (what `svc-daemon model install` takes), or with
SVC_EMBED_BASE_URL and SVC_EMBED_MODEL, searches by meaning and by both are measured, too.
"""

import argparse
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from statistics import fmean

from svc_cli.evals.evaluations import ndcg
from tests.bench.corpora import Collection, fill, is_by_meaning, read_collections, sides_with_model
from tests.bench.harness import Row, Side, make_parser, report, spread_ms, timed
from tests.bench.loads import BUCKET

DEPTH = 10
#: Passages asked for, so that ten documents are among them.
MOST_PASSAGES = 50


def main() -> None:
    parser = make_parser(__doc__, model="")
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="of a collection")
    options = parser.parse_args()
    rows = []
    for collection in read_collections(parser, options.folders):
        with sides_with_model(options) as sides:
            found = [
                _measure_plain(collection),
                *(row for side in sides for row in _measure(side, collection, options)),
            ]
        rows += [{"collection": collection.name, "documents": len(collection.documents)} | row for row in found]
    report("relevance", options, rows)


def _measure(side: Side, collection: Collection, options: argparse.Namespace) -> Iterator[Row]:
    with side.client() as client:
        documents = fill(client, collection.documents)

        def find(mode: str, text: str) -> Sequence[str]:
            body = {"query": text, "buckets": [BUCKET], "mode": mode, "max_num_results": MOST_PASSAGES}
            hits = client.post("/v1/search", json=body).raise_for_status().json()["data"]
            return [documents[hit["source_id"]] for hit in hits]

        for mode in ("keyword", "semantic", "hybrid") if is_by_meaning(options) else ("keyword",):
            yield {"side": side.name, "mode": mode} | _judge(collection, partial(find, mode))


def _measure_plain(collection: Collection) -> Row:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE plain USING fts5(id UNINDEXED, title, text)")
        rows = [(entry.id, entry.title, entry.text) for entry in collection.documents]
        connection.executemany("INSERT INTO plain (id, title, text) VALUES (?, ?, ?)", rows)

        def find(text: str) -> Sequence[str]:
            words = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", text.lower())))
            statement = "SELECT id FROM plain WHERE plain MATCH ? ORDER BY bm25(plain), rowid LIMIT ?"
            return [name for (name,) in connection.execute(statement, (words, DEPTH))]

        return {"side": "plain BM25", "mode": "keyword"} | _judge(collection, find)


def _judge(collection: Collection, find: Callable[[str], Sequence[str]]) -> Row:
    """nDCG@10 of all queries and of each half, and the time of one search."""
    scores, taken_s = [], []
    for query in collection.queries:
        found, took_s = timed(partial(find, query.text))
        taken_s.append(took_s)
        judged = collection.judgments[query.id]
        scores.append(ndcg([judged.get(name, 0) for name in dict.fromkeys(found)], list(judged.values()), DEPTH))
    halves = {"ndcg_at_10": scores, "even": scores[::2], "odd": scores[1::2]}
    return {name: round(fmean(half or [0.0]), 4) for name, half in halves.items()} | spread_ms(taken_s, "p50")


if __name__ == "__main__":
    main()
