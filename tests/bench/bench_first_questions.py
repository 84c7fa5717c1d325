"""Measures the first questions that somebody asks a fresh team with a few short documents.

    python -m tests.bench.bench_first_questions FOLDER

`FOLDER` has one folder for each collection: in it `docs` with its documents, and `questions.json`:

    {"on": [{"q": "How tall is the lamp?", "answer": "It stands 38 centimetres tall"}], "off": ["Who sells it?"]}

What is on the subject has its answer in the documents, word for word; what is off it has none there. Each collection
goes into a fresh daemon through its own door, and the questions to `/v1/responses`. `right` is the share of grounded
answers that have the words which answer the question in a quote. With `--model` the answers go by meaning, too.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import wait_until
from tests.bench.bench_grounding import BUCKET, FILL_TIMEOUT_S, MODEL_HELP, ask, is_full, open_client, share
from tests.bench.machines import report

_WORD = re.compile(r"\w+")


def ask_all(folder: Path, model: str | None) -> list[dict[str, Any]]:
    """Each question of a collection, with its answer."""
    asked = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    questions = [(each["q"], each["answer"]) for each in asked["on"]] + [(each, None) for each in asked["off"]]
    answers = []
    with ExitStack() as stack:
        client = open_client(stack, model)
        make_bucket(client, BUCKET)
        for path in sorted((folder / "docs").iterdir()):
            upload(client, BUCKET, path.name, path.read_bytes()).raise_for_status()
        wait_until(lambda: is_full(client), "the end of indexing", FILL_TIMEOUT_S, every_s=0.1)
        for question, wanted in questions:
            answer = ask(client, question)
            quotes = [source["quote"] for source in answer["sources"]]
            row = {"question": question, "answer": wanted, "grounded": answer["grounded"], "quotes": quotes}
            answers.append(row | {"collection": folder.name})
    return answers


def is_quoted(answer: str, quotes: Sequence[str]) -> bool:
    """Whether a quote has the answer's words in it, or is a part of them; marks and line ends count for nothing."""
    wanted, *quoted = (f" {' '.join(_WORD.findall(text.lower()))} " for text in (answer, *quotes))
    return any(wanted in words or words in wanted for words in quoted)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the first questions to a few short documents.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with a folder for each collection")
    parser.add_argument("--model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument("--each", action="store_true", help="each question with its quotes, too, on standard error")
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.folder.glob("*/questions.json"))
    if not folders:
        parser.error(f"{options.folder} has no collections: no folder in it has questions.json.")
    asked = [each for folder in folders for each in ask_all(folder, options.model)]
    if options.each:
        sys.stderr.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in asked)
    on, off = ([each for each in asked if (each["answer"] is None) is is_off] for is_off in (False, True))
    quotes = [is_quoted(each["answer"], each["quotes"]) for each in on if each["grounded"]]
    results = {
        "on": {"questions": len(on), "grounded": share([each["grounded"] for each in on])},
        "off": {"questions": len(off), "grounded": share([each["grounded"] for each in off])},
        "quotes": {"answers": len(quotes), "right": share(quotes)},
    }
    parameters = {"folder": options.folder.name, "collections": len(folders), "by_meaning": bool(options.model)}
    report("first_questions", parameters, results)


if __name__ == "__main__":
    main()
