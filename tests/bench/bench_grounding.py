"""Which answers are grounded: of questions that a collection is about and of others; and whether they quote the answer.

    python -m tests.bench.bench_grounding CRANFIELD --off NPL
    python -m tests.bench.bench_grounding FOLDER

A folder is a collection in the BEIR layout: off its subject are the queries of the collections after `--off`, and the
everyday questions beside this file. Or it has a folder for each of some fresh teams with few documents: in it `docs`,
and `questions.json`, whose answers are in the documents word for word:

    {"on": [{"q": "How tall is the lamp?", "answer": "It stands 38 centimetres tall"}], "off": ["Who sells it?"]}

`right` is the share of grounded answers that quote these words. Where a question names its `source` too, as those of
`near_twins` do, `first` is the share of all questions whose first quote is of this source and has the answer in at most
two lines, `wrong` that of the other grounded ones, and `shown` that of those without an answer whose `related` have it.
The documents are uploaded to a fresh daemon, and the
questions sent to `/v1/responses`. With `--model` (what `svc-daemon model install` takes), or with SVC_EMBED_BASE_URL
and SVC_EMBED_MODEL, the answers go by meaning, too. `corpora` says which questions may be looked at.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.bench.corpora import CLIENTS, Entry, fill, is_by_meaning, read_collections, sides_with_model
from tests.bench.harness import Row, make_parser, report

EVERYDAY = Path(__file__).with_name("everyday_questions.txt")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    #: `on`, `off` or `everyday`.
    kind: str
    text: str
    #: What answers it, if that is known.
    answer: str = ""
    #: The name of the file that answers it, if only one does.
    source: str = ""


@dataclass(frozen=True, slots=True)
class Team:
    documents: Sequence[Entry]
    questions: Sequence[Question]


def main() -> None:
    parser = make_parser(__doc__, model="", documents=0, questions=0, each=False)
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="a collection, or a folder with some")
    parser.add_argument("--off", nargs="*", default=[], metavar="FOLDER", help="collections whose queries are off it")
    options = parser.parse_args()
    rows = []
    for folder in map(Path, options.folders):
        teams = list(_read_small(folder)) or [_read_large(parser, folder, options)]
        asked: dict[tuple[str, str], list[Row]] = {}
        for team in teams:
            with sides_with_model(options) as sides:
                for side in sides:
                    with side.client() as client:
                        for kind, answer in _ask_all(client, team):
                            asked.setdefault((side.name, kind), []).append(answer)
        for (side_name, kind), answers in asked.items():
            named = {"collection": folder.name, "teams": len(teams), "side": side_name, "questions": kind}
            rows.append(named | {"by_meaning": is_by_meaning(options)} | _figures(answers))
            if options.each:
                sys.stderr.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    report("grounding", options, rows)


def _read_small(folder: Path) -> Iterator[Team]:
    for path in sorted(folder.glob("*/questions.json")):
        asked = json.loads(path.read_text(encoding="utf-8"))
        on = [Question("on", each["q"], each["answer"], each.get("source", "")) for each in asked["on"]]
        docs = sorted((path.parent / "docs").iterdir())
        documents = [Entry(doc.name, "", doc.read_bytes().decode(errors="surrogateescape")) for doc in docs]
        yield Team(documents, on + [Question("off", each) for each in asked["off"]])


def _read_large(parser: argparse.ArgumentParser, folder: Path, options: argparse.Namespace) -> Team:
    collection, *others = read_collections(parser, [str(folder), *options.off])
    questions = {
        "on": [query.text for query in collection.queries],
        "off": [query.text for other in others for query in other.queries],
        "everyday": EVERYDAY.read_text(encoding="utf-8").splitlines(),
    }
    asked = [Question(kind, text) for kind, texts in questions.items() for text in _spread(texts, options.questions)]
    return Team(collection.documents[: options.documents or None], asked)


def _spread(texts: Sequence[str], most: int) -> Sequence[str]:
    """So many of them, evenly from beginning to end: a collection may go from subject to subject."""
    if not most or len(texts) <= most:
        return texts
    return [texts[place * len(texts) // most] for place in range(most)]


def _ask_all(client: httpx.Client, team: Team) -> list[tuple[str, Row]]:
    """Each question's kind, and what came of it."""
    client.timeout = httpx.Timeout(60)
    fill(client, team.documents)

    def ask(question: Question) -> tuple[str, Row]:
        sent = client.post("/v1/responses", json={"model": "svc-agent", "input": question.text})
        answer = sent.raise_for_status().json()
        quotes = [source["quote"] for source in answer["sources"]]
        # Older services don't send what is related.
        related = answer.get("related", [])
        return question.kind, {
            "question": question.text,
            "answer": question.answer,
            "grounded": answer["grounded"],
            "quotes": quotes,
            "unmatched": answer.get("unmatched", []),
            "related": [source["quote"] for source in related],
            "right": bool(question.answer and answer["grounded"]) and _is_quoted(question.answer, quotes),
            "source": question.source,
            "first": answer["grounded"] and any(_is_in(question, source) for source in answer["sources"][:1]),
            "shown": not answer["grounded"] and any(_is_in(question, source) for source in related),
        }

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(ask, team.questions))


def _is_quoted(answer: str, quotes: Sequence[str]) -> bool:
    """Whether a quote has the answer's words in it, or is a part of them; marks and line ends count for nothing."""
    wanted, *quoted = (f" {' '.join(_WORD.findall(text.lower()))} " for text in (answer, *quotes))
    return any(wanted in words or words in wanted for words in quoted)


def _is_in(question: Question, source: Row) -> bool:
    """Whether the quote is of the question's source and has the answer, as a whole word, in at most two lines."""
    value = rf"(?<![\w\u2212-])(?<!\d\.){re.escape(question.answer)}(?!\w|\.\d|,\d{{3}}(?!\d))"
    is_brief = source["quote"].count("\n") < 2
    return source["filename"] == question.source and is_brief and bool(re.search(value, source["quote"]))


def _figures(answers: Sequence[Row]) -> Row:
    grounded = [answer for answer in answers if answer["grounded"]]
    figures = {"count": len(answers), "grounded": round(len(grounded) / len(answers), 4)}
    if any(answer["source"] for answer in answers):
        wrong = sum(not answer["first"] for answer in grounded)
        sums = {"first": sum(a["first"] for a in answers), "wrong": wrong, "shown": sum(a["shown"] for a in answers)}
        return figures | {name: round(count / len(answers), 4) for name, count in sums.items()}
    if quoting := [answer for answer in grounded if answer["answer"]]:
        figures["right"] = round(sum(answer["right"] for answer in quoting) / len(quoting), 4)
    return figures


if __name__ == "__main__":
    main()
