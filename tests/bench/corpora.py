"""Retrieval collections in the BEIR layout: what is in them, and how they go into an index.

A folder holds `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. None comes with the project: a benchmark is told where
they are.
"""

import argparse
import csv
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from svc_daemon.core.text.chunking import Chunk, ChunkingOptions, chunk_document
from svc_daemon.extract.builders import LineDocument
from svc_daemon.provider.contract import IndexDocument, SearchProvider

VARIABLE = "SVC_BENCH_COLLECTIONS"
FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
#: Each document as one chunk, or cut as the service cuts a text file.
Cut = Literal["whole", "chunks"]
#: Stands before a document's id where a source's is wanted.
SOURCE = "src_"
PUTTERS = 8


@dataclass(frozen=True)
class Entry:
    """A document or a query of a collection."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Collection:
    """One folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def documents(self) -> list[Entry]:
        return list(_read(self.folder / "corpus.jsonl"))

    @cached_property
    def queries(self) -> list[Entry]:
        """Those that documents were judged for."""
        return [query for query in _read(self.folder / "queries.jsonl") if query.id in self.judgments]

    @cached_property
    def judgments(self) -> Mapping[str, Mapping[str, int]]:
        """Query, then document, then how relevant it was judged."""
        judged: dict[str, dict[str, int]] = defaultdict(dict)
        with (self.folder / "qrels.tsv").open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                judged[row["query-id"]][row["corpus-id"]] = int(row["score"])
        return dict(judged)


def add_folders(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark be told its folders; `read_collections` reads them."""
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    parser.add_argument(
        "folders", nargs="*", type=Path, default=named, metavar="FOLDER", help=f"of a collection  [{VARIABLE}]"
    )


def read_collections(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Collection]:
    """Ends the program with a sentence where a folder is missing or not named."""
    if not options.folders:
        parser.error(f"name the folders of the collections, or set {VARIABLE}; they don't come with the project.")
    return check_folders(parser, options.folders)


def check_folders(parser: argparse.ArgumentParser, folders: Sequence[Path]) -> list[Collection]:
    """The same for folders that were named in another way."""
    for folder in folders:
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            parser.error(f"{folder} is no collection: it has no {', '.join(missing)}.")
    return [Collection(folder) for folder in folders]


def fill(provider: SearchProvider, team_id: str, collection: Collection, cut: Cut) -> None:
    """Put every document into the team's index; its source id is its own behind `SOURCE`."""
    with ThreadPoolExecutor(PUTTERS) as pool:
        documents = [index_document(entry, cut) for entry in collection.documents]
        list(pool.map(lambda document: provider.put_document(team_id, document, []), documents))


def index_document(entry: Entry, cut: Cut) -> IndexDocument:
    if cut == "whole":
        chunks: tuple[Chunk, ...] = (Chunk(ordinal=0, text=entry.text, char_start=0, char_end=len(entry.text)),)
    else:
        builder = LineDocument(entry.text)
        builder.add_paragraphs("paragraph", 0, len(builder.lines) - 1)
        chunks = chunk_document(builder.finish(), ChunkingOptions())
    return IndexDocument(source_id=SOURCE + entry.id, generation=1, title=entry.title, text=entry.text, chunks=chunks)


def _read(path: Path) -> Iterator[Entry]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield Entry(id=row["_id"], title=row.get("title", ""), text=row["text"])
