"""Makes a collection of near-twin documents, with questions on what is there and on what isn't.

    python -m tests.bench.near_twins FOLDER          # then: python -m tests.bench.bench_grounding FOLDER

Near-twins are what people have: timetables of eight routes, leaflets of one drug in three strengths, minutes of ten
meetings. Each question asks for one value of one of them, in other words than the document's, and names the source.
The kinds of `first_twins` were written before the rules of the daemon, those of `named_twins` while these
were made, and those of `second_twins` afterwards.
"""

import argparse
import importlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

#: How many questions of each sort a set has.
THERE, ABSENT = 200, 60


@dataclass
class Twins:
    """Documents of one kind, and the questions about them."""

    documents: dict[str, str | bytes] = field(default_factory=dict)
    #: Question, value and file name.
    there: list[tuple[str, str, str]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def ask(self, source: str, value: object, question: str) -> None:
        self.there.append((question, str(value), source))


T = TypeVar("T")
#: Adds the documents and questions of one kind.
Kind = Callable[[Twins, random.Random], None]


def make(kind: Kind, rng: random.Random) -> Twins:
    twins = Twins()
    kind(twins, rng)
    return twins


def make_set(kinds: Sequence[Kind], folder: Path, seed: int) -> None:
    """Write the documents of all kinds and their questions, as one team's collection in `folder`."""
    twins = [make(kind, random.Random(f"{seed} {place}")) for place, kind in enumerate(kinds)]
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    for name, content in (item for each in twins for item in each.documents.items()):
        (folder / "docs" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    there = list(_in_turns([each.there for each in twins]))[:THERE]
    absent = list(_in_turns([each.absent for each in twins]))[:ABSENT]
    on = [{"q": question, "answer": value, "source": source} for question, value, source in there]
    (folder / "questions.json").write_text(json.dumps({"on": on, "off": absent}, indent=1, ensure_ascii=False))


def _in_turns(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    longest = max(map(len, lists))
    return (each[place] for place in range(longest) for each in lists if place < len(each))


def make_sets(folder: Path) -> list[Path]:
    """Write all sets, each to a folder of its name, and return where they are."""
    folders = []
    for name, seed in (("first", 32), ("named", 33), ("second", 34)):
        kinds = importlib.import_module(f"tests.bench.{name}_twins").KINDS
        folders.append(folder / name / "twins")
        make_set(kinds, folders[-1], seed)
    return folders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the collection goes")
    make_sets(parser.parse_args().folder)


if __name__ == "__main__":
    main()
