"""Measures the first questions that somebody asks a fresh team with a few short documents.

    python -m tests.bench.bench_first_questions FOLDER

`FOLDER` has one folder for each collection: in it `docs` with its documents, and `questions.json`:

    {"on": [{"q": "How tall is the lamp?", "answer": "It stands 38 centimetres tall"}], "off": ["Who sells it?"]}

What is on the subject has its answer in the documents, word for word; what is off it has none there. Each collection
goes into a fresh daemon through its own door, and the questions to `/v1/responses`. `right` says how many of the
grounded answers have the words that answer the question in a quote. With `--model` the answers go by meaning, too.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import wait_until
from tests.bench.bench_grounding import BUCKET, FILL_TIMEOUT_S, is_full, open_client
from tests.bench.machines import report

_WORD = re.compile(r"\w+")


def ask_all(folder: Path, model: str | None) -> list[dict[str, Any]]:
    """Each question of a collection, with what became of it."""
    asked = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    with ExitStack() as stack:
        client = open_client(stack, model)
        make_bucket(client, BUCKET)
        for path in sorted((folder / "docs").iterdir()):
            upload(client, BUCKET, path.name, path.read_bytes()).raise_for_status()
        wait_until(lambda: is_full(client), "the end of indexing", FILL_TIMEOUT_S, every_s=0.1)
        on = [ask(client, each["q"]) | {"on": True, "answer": each["answer"]} for each in asked["on"]]
        off = [ask(client, question) | {"on": False, "answer": None} for question in asked["off"]]
    return [each | {"collection": folder.name} for each in (*on, *off)]


def ask(client: httpx.Client, question: str) -> dict[str, Any]:
    answer = client.post("/v1/responses", json={"model": "svc-agent", "input": question}).raise_for_status().json()
    quotes = [source["quote"] for source in answer["sources"]]
    return {"question": question, "grounded": bool(answer["grounded"]), "quotes": quotes}


def is_quoted(answer: str, quotes: Sequence[str]) -> bool:
    """Whether a quote has the answer's words in it, or is a part of them; marks and line ends count for nothing."""
    wanted = _words(answer)
    return any(wanted in words or words in wanted for words in map(_words, quotes))


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.lower()))} "


def measure(asked: Sequence[dict[str, Any]]) -> dict[str, object]:
    on, off = [[each for each in asked if each["on"] is kind] for kind in (True, False)]
    grounded = [each for each in on if each["grounded"]]
    right = [each for each in grounded if is_quoted(each["answer"], each["quotes"])]
    return {
        "on": {"questions": len(on), "grounded": _share(len(grounded), len(on))},
        "off": {"questions": len(off), "grounded": _share(sum(each["grounded"] for each in off), len(off))},
        "quotes": {"answers": len(grounded), "right": _share(len(right), len(grounded))},
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the first questions to a few short documents.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with a folder for each collection")
    parser.add_argument("--model", metavar="MODEL", help="a package, wheel, folder or file; answers go by meaning then")
    parser.add_argument("--each", action="store_true", help="each question with its quotes, too, on standard error")
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.folder.glob("*/questions.json"))
    if not folders:
        parser.error(f"{options.folder} has no collections: no folder in it has questions.json.")
    asked = [each for folder in folders for each in ask_all(folder, options.model)]
    if options.each:
        sys.stderr.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in asked)
    parameters = {"folder": options.folder.name, "collections": len(folders), "by_meaning": bool(options.model)}
    report("first_questions", parameters, measure(asked))


if __name__ == "__main__":
    main()
