"""Articles with questions about them, and how they become a collection."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.corpora import FILES


@dataclass
class Article:
    """One document, and what it answers."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    #: By their ids.
    questions: dict[str, str] = field(default_factory=dict)


def write_collection(folder: Path, articles: Sequence[Article], ending: str = "") -> None:
    """Each document's id is its number with the ending; one such as `.md` says how it is to be read."""
    folder.mkdir(parents=True, exist_ok=True)
    documents, queries, judgments = [], [], ["query-id\tcorpus-id\tscore"]
    for number, article in enumerate(articles):
        name, text = f"d{number}{ending}", "\n\n".join(article.paragraphs)
        documents.append(json.dumps({"_id": name, "title": article.title, "text": text}))
        queries += [json.dumps({"_id": query, "text": asked}) for query, asked in article.questions.items()]
        judgments += [f"{query}\t{name}\t1" for query in article.questions]
    for file, lines in zip(FILES, (documents, queries, judgments), strict=True):
        (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
