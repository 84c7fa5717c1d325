"""Makes a collection of this project's own documents, with questions as users ask them.

    python -m tests.bench.own_docs FOLDER

Writes `FOLDER/docs`, with the questions that `docs_questions.txt` has for each document, and `FOLDER/docs-others`, with
those of `docs_others.txt`, asked in the same tone about things that no document speaks of.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from tests.acceptance.forks import ROOT
from tests.bench.articles import Article, write_collection

HERE = Path(__file__).parent


def read_docs() -> list[Article]:
    """Every document in the order of their names."""
    asked: dict[str, dict[str, str]] = defaultdict(dict)
    for number, line in enumerate((HERE / "docs_questions.txt").read_text(encoding="utf-8").splitlines()):
        name, _, question = line.partition(": ")
        asked[name][f"q{number}"] = question
    paths = sorted((ROOT / "docs").rglob("*.md"))
    return [Article(path.name, [path.read_text(encoding="utf-8")], asked[path.name]) for path in paths]


def read_others() -> Article:
    lines = (HERE / "docs_others.txt").read_text(encoding="utf-8").splitlines()
    return Article("others", ["-"], {f"o{number}": line for number, line in enumerate(lines)})


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes a collection of the project's own documents.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the collections go")
    folder = parser.parse_args().folder
    write_collection(folder / "docs", read_docs(), ".md")
    write_collection(folder / "docs-others", [read_others()])


if __name__ == "__main__":
    main()
