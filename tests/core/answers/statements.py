"""Reads passages, and sentences about them that a model could write, true and false.

`statements.txt` has passages with the sentences that cite them. The mark of each sentence is its kind:

* `proved`: true, and accepted as supported by the passage;
* `alarm`: true, but refused, because it denies in other words;
* `found`: false, and refused, because of a number, unit, name, code, negation or words that the passage lacks;
* `missed`: false, but accepted: what the passage says of something else, or a word with its opposite in one.
"""

from pathlib import Path
from typing import NamedTuple


class Statement(NamedTuple):
    passage: str
    sentence: str


def _read() -> dict[str, list[Statement]]:
    read: dict[str, list[Statement]] = {kind: [] for kind in ("proved", "alarm", "found", "missed")}
    for block in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n\n"):
        first, *lines = block.splitlines()
        passage = first.removeprefix("passage: ").replace("\\n", "\n")
        for kind, sentence in (line.split(": ", 1) for line in lines):
            read[kind].append(Statement(passage, sentence))
    return read


PROVED, ALARMS, FOUND_OUT, MISSED = _read().values()
