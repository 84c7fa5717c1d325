"""Makes collections of question sets about articles, so that the questions on one half are off the other's subject.

    python -m tests.bench.halves FILE FOLDER

A `.json` is read as SQuAD is published, a `.tsv` as WikiQA. The articles, in the order of their titles, go in turn to
`FOLDER/<name of the file>-a` and `-b`. Of the questions, those that their article answers go along.
"""

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.corpora import Article, write_collection


def read_squad(path: Path) -> Iterator[Article]:
    """Questions are left out that the set itself marks as not answered by the article."""
    for entry in json.loads(path.read_text(encoding="utf-8"))["data"]:
        article = Article(entry["title"].replace("_", " "))
        for paragraph in entry["paragraphs"]:
            article.paragraphs.append(paragraph["context"])
            asked = [question for question in paragraph["qas"] if not question.get("is_impossible")]
            article.questions |= {question["id"]: question["question"] for question in asked}
        yield article


def read_wikiqa(path: Path) -> Iterator[Article]:
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


def halve(articles: Sequence[Article]) -> Mapping[str, Sequence[Article]]:
    ordered = sorted(articles, key=lambda article: article.title)
    return {"a": ordered[::2], "b": ordered[1::2]}


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes two collections of a question set about articles.")
    parser.add_argument("file", type=Path, metavar="FILE", help="a .json as SQuAD's, or a .tsv as WikiQA's")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where both collections go")
    options = parser.parse_args()
    read = read_squad if options.file.suffix == ".json" else read_wikiqa
    for half, articles in halve(list(read(options.file))).items():
        write_collection(options.folder / f"{options.file.stem}-{half}", articles)


if __name__ == "__main__":
    main()
