"""Measures nDCG@10 of keyword search on retrieval collections in the BEIR layout; prints one JSON line for each.

    python tests/bench/bench_relevance.py FOLDER [FOLDER ...]
    SVC_BENCH_COLLECTIONS=FOLDER:FOLDER python tests/bench/bench_relevance.py

A folder holds `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. Each document is one chunk.
"""

import argparse
import csv
import json
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from svc_daemon.core.documents import Chunk
from svc_daemon.provider.contract import IndexDocument, SearchMode, SearchQuery
from svc_daemon.provider.embedded.provider import EmbeddedProvider

TEAM = "team_bench"
VARIABLE = "SVC_BENCH_COLLECTIONS"
FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
DEPTH = 10

#: Query, then document, then how relevant it was judged.
Judgments = Mapping[str, Mapping[str, int]]


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_judgments(path: Path) -> Judgments:
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            judged[row["query-id"]][row["corpus-id"]] = int(row["score"])
    return judged


def index_document(entry: Mapping[str, str]) -> IndexDocument:
    text = entry["text"]
    chunk = Chunk(ordinal=0, text=text, char_start=0, char_end=len(text))
    return IndexDocument(source_id=entry["_id"], generation=1, title=entry.get("title", ""), text=text, chunks=(chunk,))


def ndcg(found: Sequence[str], judged: Mapping[str, int]) -> float:
    """Normalised discounted cumulative gain of the first ten, 0 to 1."""
    ideal = gain(sorted(judged.values(), reverse=True)[:DEPTH])
    return gain([judged.get(name, 0) for name in found[:DEPTH]]) / ideal if ideal else 0.0


def gain(relevances: Sequence[int]) -> float:
    return sum(relevance / math.log2(place + 1) for place, relevance in enumerate(relevances, start=1))


def measure(collection: Path, folder: Path) -> dict[str, object]:
    provider = EmbeddedProvider(folder)
    documents = [index_document(entry) for entry in read_lines(collection / "corpus.jsonl")]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda document: provider.put_document(TEAM, document, []), documents))
    judgments = read_judgments(collection / "qrels.tsv")
    scores = [
        ndcg(find(provider, entry["text"]), judgments[entry["_id"]])
        for entry in read_lines(collection / "queries.jsonl")
        if entry["_id"] in judgments
    ]
    provider.close()
    return {
        "documents": len(documents),
        "queries": len(scores),
        "judgments": sum(map(len, judgments.values())),
        "ndcg_at_10": round(sum(scores) / len(scores), 3),
    }


def find(provider: EmbeddedProvider, text: str) -> list[str]:
    page = provider.search(TEAM, SearchQuery(text=text, limit=DEPTH, mode=SearchMode.KEYWORD))
    return [hit.source_id for hit in page.hits]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures nDCG@10 of keyword search.")
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    parser.add_argument("folders", nargs="*", type=Path, default=named, metavar="FOLDER")
    folders: list[Path] = parser.parse_args().folders
    if not folders:
        parser.error(f"name the folders of the collections, or set {VARIABLE}.")
    for collection in folders:
        missing = [name for name in FILES if not (collection / name).is_file()]
        if missing:
            parser.error(f"{collection} has no {', '.join(missing)}.")
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(collection, Path(folder))
        print(json.dumps({"bench": "relevance", "collection": collection.name, "mode": "keyword", **figures}))


if __name__ == "__main__":
    main()
