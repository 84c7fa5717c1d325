"""Retrieval collections in the BEIR layout: what is in them, and how they are written.

A folder holds `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. None comes with the project: a benchmark is given where
they are.
"""

import argparse
import csv
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

VARIABLE = "SVC_BENCH_COLLECTIONS"
FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


@dataclass(frozen=True)
class Entry:
    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Collection:
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
    """Let a benchmark take its folders; `read_collections` reads them."""
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


@dataclass
class Article:
    """One document, and what it answers."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    #: By their ids.
    questions: dict[str, str] = field(default_factory=dict)


def write_collection(folder: Path, articles: Sequence[Article], ending: str = "") -> None:
    """Each document's id is its number with the ending; one such as `.md` shows how it is to be read."""
    folder.mkdir(parents=True, exist_ok=True)
    documents, queries, judgments = [], [], ["query-id\tcorpus-id\tscore"]
    for number, article in enumerate(articles):
        name, text = f"d{number}{ending}", "\n\n".join(article.paragraphs)
        documents.append(json.dumps({"_id": name, "title": article.title, "text": text}))
        queries += [json.dumps({"_id": query, "text": asked}) for query, asked in article.questions.items()]
        judgments += [f"{query}\t{name}\t1" for query in article.questions]
    for file, lines in zip(FILES, (documents, queries, judgments), strict=True):
        (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(path: Path) -> Iterator[Entry]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield Entry(id=row["_id"], title=row.get("title", ""), text=row["text"])
