"""Makes a collection of this project's own documents, with questions as users ask them.

    python -m tests.bench.own_docs FOLDER

Writes `FOLDER/docs`, with the questions that `docs_questions.txt` has for each document, and `FOLDER/docs-others`, with
those of `docs_others.txt`, asked in the same tone about things that are in no document.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from tests.acceptance.forks import ROOT
from tests.bench.corpora import Article, write_collection


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes a collection of the project's own documents.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the collections go")
    folder = parser.parse_args().folder
    on, off = (
        (ROOT / "tests/bench" / name).read_text(encoding="utf-8").splitlines()
        for name in ("docs_questions.txt", "docs_others.txt")
    )
    asked: dict[str, dict[str, str]] = defaultdict(dict)
    for number, line in enumerate(on):
        name, _, question = line.partition(": ")
        asked[name][f"q{number}"] = question
    pages = sorted((ROOT / "docs").rglob("*.md"))
    articles = [Article(path.name, [path.read_text(encoding="utf-8")], asked[path.name]) for path in pages]
    write_collection(folder / "docs", articles, ".md")
    others = {f"o{number}": line for number, line in enumerate(off)}
    write_collection(folder / "docs-others", [Article("others", ["-"], others)])


if __name__ == "__main__":
    main()
