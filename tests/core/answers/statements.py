"""Passages, and what a model may make of them: fair sentences, and lies of many kinds.

`statements.txt` has each passage with the sentences that cite it, each marked with what is known of its kind:

* `proved`: fair, and supported by the passage;
* `alarm`: fair, but with digits where the passage has a word, or another number for the same;
* `found`: with a number, a name, a code or a currency that the passage lacks, or with other words altogether;
* `missed`: a lie of the passage's own words and numbers: negations, opposites, other units, numbers in words.
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
