"""Retrieval collections in the BEIR layout: what is in them, and how some are made.

    python -m tests.bench.corpora FOLDER          # of the project's own documents
    python -m tests.bench.corpora FOLDER FILE     # two of a question set about articles

A folder holds `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. None comes with the project: a benchmark is given where
they are. `docs` has this project's documents, with the questions of `docs_questions.txt`, and `docs-others` those of
`docs_others.txt`, asked in the same tone about things that are in no document.

A question set is a `.json` as SQuAD is published, or a `.tsv` as WikiQA. Its articles, in the order of their titles, go
in turn to `NAME-a` and `NAME-b`, with the questions that each answers: those on one half are off the other's subject.

The rule that decides which answers are grounded should hold for questions that nobody has looked at. Which questions
test it was decided before anybody looked at them:

- Cranfield and NPL were used when the rule was chosen. CISI, CACM, WikiQA's development questions, half `a` of SQuAD
  2.0's (its articles against others of the same set) and the project's own documents may be used to choose a rule.
- Half `b` of SQuAD's, and half `a` of WikiQA's test questions with those of half `b` as questions off the subject, test
  the rule, with 300 questions of each kind. Both were measured with the present rule, and once with another that was
  not kept; then WikiQA's were read one by one. So SQuAD's can test the rule until it changes, and WikiQA's no longer.
- Half `b` of WikiQA's test questions, with those of half `a` as questions off the subject, has not been looked at.

The SQuAD articles in the corpus of half `b` are Computational complexity theory, Force, Harvard University, Immune
system, Islamism, Packet switching, Steam engine and Yuan dynasty. The others are on the Black Death, Construction,
Economic inequality, Geology, Jacksonville, Oxygen, Prime numbers, the Rhine, Southern California and Victoria.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import httpx

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import wait_until
from tests.bench.harness import Side, all_sides
from tests.bench.loads import BUCKET, FILL_TIMEOUT_S, is_indexed
from tests.conftest import UNLIMITED

FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
#: Uploads at a time, and questions.
CLIENTS = 8


@dataclass(frozen=True)
class Entry:
    id: str
    title: str
    #: Of a file that may be no text, its bytes as `surrogateescape` decodes them.
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


def read_collections(parser: argparse.ArgumentParser, folders: Sequence[str]) -> list[Collection]:
    """Ends the program with a sentence where something is missing."""
    for folder in map(Path, folders):
        if missing := [name for name in FILES if not (folder / name).is_file()]:
            parser.error(f"{folder} is no collection: it has no {', '.join(missing)}.")
    return [Collection(Path(folder)) for folder in folders]


@contextmanager
def sides_with_model(options: argparse.Namespace) -> Iterator[list[Side]]:
    """Fresh daemons that embed with the options' model or the server that SVC_EMBED_BASE_URL names, if any."""
    embedding = {name: value for name, value in os.environ.items() if name.startswith("SVC_EMBED_")}
    with all_sides(options, UNLIMITED | embedding, is_running=False) as sides:
        for side in sides:
            if options.model:
                command = [side.python, "-m", "svc_daemon", "model", "install", options.model]
                subprocess.run(command, env=side.environ, cwd=side.root, stdout=sys.stderr, check=True)
            side.start()
        yield sides


def is_by_meaning(options: argparse.Namespace) -> bool:
    return bool(options.model or os.environ.get("SVC_EMBED_BASE_URL"))


def fill(client: httpx.Client, documents: Sequence[Entry]) -> dict[str, str]:
    """Upload the documents and wait until a search warns of nothing; the document of each source, by their ids."""
    make_bucket(client, BUCKET)

    def put(entry: Entry) -> str:
        name = entry.id if Path(entry.id).suffix else f"{entry.id}.txt"
        data, fields = entry.text.encode(errors="surrogateescape"), {"title": entry.title} if entry.title else {}
        sent = upload(client, BUCKET, name, data or b"-", **fields)
        return str(sent.raise_for_status().json()["id"])

    def is_full() -> bool:
        body = {"query": "anything", "buckets": [BUCKET]}
        return is_indexed(client, BUCKET) and not client.post("/v1/search", json=body).json()["warnings"]

    with ThreadPoolExecutor(CLIENTS) as pool:
        ids = list(pool.map(put, documents))
    wait_until(is_full, "the end of indexing", FILL_TIMEOUT_S, every_s=0.2)
    return dict(zip(ids, [entry.id for entry in documents], strict=True))


@dataclass
class Article:
    """One document, and what it answers."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    #: By their ids.
    questions: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the collections go")
    parser.add_argument("file", type=Path, metavar="FILE", nargs="?", help="a .json as SQuAD's, or a .tsv as WikiQA's")
    options = parser.parse_args()
    if options.file is None:
        _write_docs(options.folder)
        return
    read = _read_squad if options.file.suffix == ".json" else _read_wikiqa
    ordered = sorted(read(options.file), key=lambda article: article.title)
    for half, articles in (("a", ordered[::2]), ("b", ordered[1::2])):
        _write(options.folder / f"{options.file.stem}-{half}", articles)


def _write_docs(folder: Path) -> None:
    on, off = (
        (ROOT / "tests/bench" / name).read_text(encoding="utf-8").splitlines()
        for name in ("docs_questions.txt", "docs_others.txt")
    )
    asked: dict[str, dict[str, str]] = defaultdict(dict)
    for number, line in enumerate(on):
        name, _, question = line.partition(": ")
        asked[name][f"q{number}"] = question
    pages = sorted((ROOT / "docs").rglob("*.md"))
    articles = [Article(page.name, [page.read_text(encoding="utf-8")], asked[page.name]) for page in pages]
    _write(folder / "docs", articles, ".md")
    _write(folder / "docs-others", [Article("others", ["-"], {f"o{number}": line for number, line in enumerate(off)})])


def _write(folder: Path, articles: Sequence[Article], ending: str = "") -> None:
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


def _read_squad(path: Path) -> Iterator[Article]:
    """Questions are left out that the set itself marks as not answered by the article."""
    for entry in json.loads(path.read_text(encoding="utf-8"))["data"]:
        article = Article(entry["title"].replace("_", " "))
        for paragraph in entry["paragraphs"]:
            article.paragraphs.append(paragraph["context"])
            asked = [question for question in paragraph["qas"] if not question.get("is_impossible")]
            article.questions |= {question["id"]: question["question"] for question in asked}
        yield article


def _read_wikiqa(path: Path) -> Iterator[Article]:
    """One row a sentence and question; a question counts where one of its sentences is marked as its answer."""
    articles: dict[str, Article] = {}
    sentences: dict[str, list[str]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            article = articles.setdefault(row["DocumentID"], Article(row["DocumentTitle"]))
            if row["Sentence"] not in sentences[row["DocumentID"]]:
                sentences[row["DocumentID"]].append(row["Sentence"])
            if row["Label"] == "1":
                article.questions[row["QuestionID"]] = row["Question"]
    for name, article in articles.items():
        article.paragraphs.append(" ".join(sentences[name]))
        yield article


if __name__ == "__main__":
    main()
