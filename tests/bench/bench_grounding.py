"""Measures which answers are grounded: of questions that a collection is about, and of others.

    python -m tests.bench.bench_grounding CRANFIELD --off NPL

The documents of the collection go through the daemon's own door and the questions to `/v1/responses`. Off the subject
are the queries of the collections after `--off` and the everyday questions beside this file. With `--model`, what
`svc-daemon model install` takes, or with an embeddings server in SVC_EMBED_BASE_URL and SVC_EMBED_MODEL, the answers go
by meaning, too, once every passage has its vector.

docs/development.md lists which questions of which set may be looked at.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import wait_until
from tests.bench.corpora import Collection, Entry, add_folders, check_folders, read_collections
from tests.bench.fillings import is_indexed
from tests.bench.installations import measured
from tests.bench.machines import report
from tests.conftest import UNLIMITED

BUCKET = "grounding"
EVERYDAY = Path(__file__).with_name("everyday_questions.txt")
#: Uploads at a time, and questions.
CLIENTS = 8
#: Until all is indexed and has vectors.
FILL_TIMEOUT_S = 3600.0
MODEL_HELP = "a package, wheel, folder or file; answers go by meaning then"


def open_client(stack: ExitStack, model: str | None) -> httpx.Client:
    """A client of a fresh daemon, with this model installed before its first start."""
    embedding = {name: value for name, value in os.environ.items() if name.startswith("SVC_EMBED_")}
    daemon = stack.enter_context(measured(None, UNLIMITED | embedding, is_running=False))
    if model:
        command = [sys.executable, "-m", "svc_daemon", "model", "install", model]
        subprocess.run(command, env=daemon.environ, stdout=sys.stderr, check=True)
    daemon.start()
    client = stack.enter_context(daemon.client())
    client.timeout = httpx.Timeout(60)
    return client


def fill(client: httpx.Client, documents: Sequence[Entry]) -> None:
    """Upload the documents and wait until a search warns of nothing."""
    make_bucket(client, BUCKET)

    def put(entry: Entry) -> None:
        name = entry.id if entry.id.endswith(".md") else f"{entry.id}.txt"
        title = entry.title or entry.id
        upload(client, BUCKET, name, entry.text.encode() or b"-", title=title).raise_for_status()

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(put, documents))
    wait_until(lambda: is_full(client), "the end of indexing", FILL_TIMEOUT_S, every_s=0.5)


def is_full(client: httpx.Client) -> bool:
    body = {"query": "anything", "buckets": [BUCKET]}
    return is_indexed(client, BUCKET) and not client.post("/v1/search", json=body).json()["warnings"]


def ask(client: httpx.Client, question: str) -> dict[str, Any]:
    answer = client.post("/v1/responses", json={"model": "svc-agent", "input": question})
    return dict(answer.raise_for_status().json())


def share(marks: Sequence[bool]) -> float:
    """The part of them, 0 to 1, that is true."""
    return round(sum(marks) / len(marks), 4) if marks else 0.0


def share_grounded(client: httpx.Client, questions: Sequence[str]) -> dict[str, float]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(lambda question: ask(client, question), questions))
    return {"questions": len(questions), "grounded": share([answer["grounded"] for answer in answers])}


def spread(questions: Sequence[str], most: int | None) -> Sequence[str]:
    """So many of them, evenly from beginning to end: a collection may go from subject to subject."""
    if most is None or len(questions) <= most:
        return questions
    return [questions[place * len(questions) // most] for place in range(most)]


def measure(collection: Collection, off: Sequence[Collection], options: argparse.Namespace) -> dict[str, object]:
    own, others, everyday = (
        spread(questions, options.questions)
        for questions in (
            [query.text for query in collection.queries],
            [query.text for each in off for query in each.queries],
            EVERYDAY.read_text(encoding="utf-8").splitlines(),
        )
    )
    with ExitStack() as stack:
        client = open_client(stack, options.model)
        fill(client, collection.documents[: options.documents])
        sys.stderr.write(f"{collection.name}: filled\n")
        return {
            "by_meaning": bool(options.model or os.environ.get("SVC_EMBED_BASE_URL")),
            "on": share_grounded(client, own),
            "off": share_grounded(client, [*others, *everyday]),
            "off_other_collections": share_grounded(client, others),
            "off_everyday": share_grounded(client, everyday),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures which answers are grounded, on and off the subject.")
    add_folders(parser)
    parser.add_argument("--off", nargs="*", type=Path, default=[], metavar="FOLDER", help="whose queries are off it")
    parser.add_argument("--documents", type=int, help="only so many")
    parser.add_argument("--questions", type=int, help="only so many of each kind")
    parser.add_argument("--model", metavar="MODEL", help=MODEL_HELP)
    options = parser.parse_args()
    off = check_folders(parser, options.off)
    for collection in read_collections(parser, options):
        parameters = {"collection": collection.name, "off": [each.name for each in off]}
        report("grounding", parameters, measure(collection, off, options))


if __name__ == "__main__":
    main()
