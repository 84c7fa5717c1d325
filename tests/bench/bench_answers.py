"""How often the first sentence of an answer is right, on documents and questions that people made.

    python -m tests.bench.bench_answers                 # all of `question_sets`
    python -m tests.bench.bench_answers sixteenth --each

Of the questions that the documents answer, `right` is the share whose first sentence has the answer and comes from its
document, `wrong` that of the other grounded ones, and `shown` that of those without an answer whose `related` have it.
Of the other questions, `absent` is the share that is grounded all the same. Each set is a fresh daemon's collection.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.bench.corpora import Entry, fill
from tests.bench.harness import Row, all_sides, make_parser, report

FOLDER = Path(__file__).with_name("question_sets")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    #: What answers it, and the document that does; none if it is about something that isn't there.
    answers: Sequence[str] = ()
    document: str = ""

    def is_answered_by(self, quote: str, document: str) -> bool:
        """Whether a quote of a document has one of the answers, whatever the case and white space."""
        said = " ".join(quote.split()).lower()
        wanted = (re.escape(" ".join(each.split()).lower()) for each in self.answers)
        # 18 is not in 118.
        return document == self.document and any(re.search(rf"(?<!\d){each}(?!\d)", said) for each in wanted)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    documents: Sequence[Entry]
    questions: Sequence[Question]


def read_sets(names: Sequence[str] = ()) -> list[QuestionSet]:
    """The sets with these names, or all."""
    found = [_read(path) for path in sorted(FOLDER.glob("*.json"))]
    return [each for each in found if not names or each.name in names]


def _read(path: Path) -> QuestionSet:
    content = json.loads(path.read_text(encoding="utf-8"))
    documents = [Entry(name, "", text) for name, text in content["documents"].items()]
    questions = [Question(q["question"], q.get("answers", ()), q.get("document", "")) for q in content["questions"]]
    return QuestionSet(path.stem.partition("_")[2], documents, questions)


def main() -> None:
    parser = make_parser(__doc__, each=False)
    parser.add_argument("sets", nargs="*", metavar="SET", help="the sets to ask; default: all")
    options = parser.parse_args()
    rows = []
    for asked in read_sets(options.sets):
        with all_sides(options) as sides:
            for side in sides:
                with side.client() as client:
                    client.timeout = httpx.Timeout(60)
                    fill(client, asked.documents)
                    answers = list(ask_all(client, asked.questions))
                rows.append({"set": asked.name, "side": side.name} | _figures(answers))
                if options.each:
                    sys.stderr.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    report("answers", options, rows)


def ask_all(client: httpx.Client, questions: Sequence[Question]) -> Iterator[Row]:
    """Each question with what came of it: `right`, `wrong` or `silent`; of an absent thing, `grounded` or `silent`."""
    for question in questions:
        sent = client.post("/v1/responses", json={"model": "svc-agent", "input": question.text})
        answer = sent.raise_for_status().json()
        is_right = answer["grounded"] and question.is_answered_by(*_first_of(answer))
        outcome = "silent"
        if answer["grounded"]:
            outcome = "grounded" if not question.answers else "right" if is_right else "wrong"
        shown = [
            each["quote"] for each in answer["related"] if question.is_answered_by(each["quote"], each["filename"])
        ]
        yield {
            "question": question.text,
            "answers": question.answers,
            "outcome": outcome,
            "quotes": [(each["filename"], each["quote"]) for each in answer["sources"]],
            "shown": shown,
        }


def _first_of(answer: Mapping[str, Any]) -> tuple[str, str]:
    """The first sentence with the column's headings that are shown beside it, and the document that it is from."""
    texts = (part.get("text", "") for output in answer["output"] for part in output.get("content", ()))
    return "".join(texts).partition("[1]")[0], answer["sources"][0]["filename"] if answer["sources"] else ""


def _figures(answers: Sequence[Row]) -> Row:
    there = [each for each in answers if each["answers"]]
    absent = [each for each in answers if not each["answers"]]
    shares = {name: sum(each["outcome"] == name for each in there) / len(there) for name in ("right", "wrong")}
    shares["shown"] = sum(bool(each["shown"]) for each in there if each["outcome"] == "silent") / len(there)
    if absent:
        shares["absent"] = sum(each["outcome"] == "grounded" for each in absent) / len(absent)
    return {"questions": len(answers)} | {name: round(share, 4) for name, share in shares.items()}


if __name__ == "__main__":
    main()
