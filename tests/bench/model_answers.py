"""Sentences that a model could write about near-twin documents, unchanged and with one thing changed.

A model repeats a sentence, with or without an introduction, or puts a row or a form's line into words. Changed is one
number, sign, unit, name or negation.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.answers.statements import Statement, statements_of
from svc_daemon.core.text.chunking import Chunk
from tests.bench import first_twins, named_twins
from tests.bench.near_twins import make

#: What changes: the pattern of what is replaced, and by what.
_UNITS = {
    "minutes": "hours",
    "hours": "days",
    "days": "weeks",
    "months": "years",
    "euros": "dollars",
    "EUR": "USD",
    "°C": "°F",
    "litres": "millilitres",
    "bar": "psi",
    "pounds": "euros",
    "MB": "GB",
    "€": "$",
    "h": "min",
}
_NAMES = ("Quist", "Varga", "Zeller", "Yilmaz", "Nakata")
_VERB = re.compile(r"\b(is|are|takes|may|must|receives|goes|go|needs|has|costs|travel|reach|moves|stop|granted|took)\b")


class Written(NamedTuple):
    """A sentence about a passage; `change` says what in it was changed, if anything was."""

    passage: Passage
    sentence: str
    change: str = ""


def write_all(count: int) -> list[Written]:
    """Return so many sentences unchanged, and as many that are changed, by each kind of change in turn."""
    rng = random.Random(7)
    fair = [Written(passage, text) for passage in _passages(rng) for text in _say_all(passage)]
    rng.shuffle(fair)
    kinds = [[made for each in fair if (made := _changed(each, change, rng))] for change in CHANGES]
    share = count // len(kinds)
    changed = [each for kind in kinds for each in kind[:share]]
    rest = [each for kind in kinds for each in kind[share:]]
    return fair[:count] + changed + rest[: count - len(changed)]


def _passages(rng: random.Random) -> Iterator[Passage]:
    for kind in (*first_twins.KINDS, *named_twins.KINDS):
        for name, content in make(kind, rng).documents.items():
            if not isinstance(content, str) or not name.endswith((".md", ".txt")):
                continue
            heads: list[str] = []
            for part in re.split(r"\n(?=#)", content):
                mark, _, text = part.partition("\n")
                if mark.startswith("#"):
                    depth = len(mark) - len(mark.lstrip("#"))
                    heads = [*heads[: depth - 1], mark.lstrip("# ")]
                    part = text  # noqa: PLW2901
                if part.strip():
                    chunk = Chunk(ordinal=0, text=part, char_start=0, char_end=len(part), headings=tuple(heads))
                    yield Passage(chunk=chunk, title=name)


def _say_all(passage: Passage) -> Iterator[str]:
    for each in statements_of(passage):
        yield from _say(passage, each)


def _say(passage: Passage, each: Statement) -> Iterator[str]:
    if each.kind == "prose" and each.text.endswith(".") and len(each.text.split()) > 3:
        yield each.text
        subject = (passage.chunk.headings or (passage.title,))[-1]
        yield f"According to {subject}, {each.text[0].lower()}{each.text[1:]}"
    if each.kind == "field":
        key, _, value = each.text.partition(":")
        yield f"The {key.lower()} is {value.strip()}."
    if each.kind == "row" and each.heads:
        heads, cells = each.heads.split(" | "), re.split(r" \| |,", each.text)
        for head, cell in list(zip(heads, cells, strict=False))[1:]:
            yield f"The {head.lower()} of {cells[0]} is {cell}."


def _number(text: str, rng: random.Random) -> str:
    found = list(re.finditer(r"(?<![\w.,-])\d+", text))
    if not found:
        return text
    at = found[-1]
    return f"{text[: at.start()]}{int(at[0]) + rng.choice([1, 2, 10])}{text[at.end() :]}"


def _sign(text: str, _: random.Random) -> str:
    return (
        re.sub(r"[-\u2212](?=\d+ °)", "", text)
        if re.search(r"\u2212\d", text)
        else re.sub(r"(?<![\w.,-])(?=\d+ °)", "-", text)
    )


def _unit(text: str, _: random.Random) -> str:
    for unit, other in _UNITS.items():
        pattern = rf"(?<=\d ){unit}\b" if unit != "€" else unit
        if unit != "°C" and re.search(pattern, text):
            return re.sub(pattern, other, text, count=1)
    return re.sub("°C", "°F", text)


def _name(text: str, rng: random.Random) -> str:
    found = list(re.finditer(r"(?<=[a-z,] )(?:(?:Dr|Mrs|Mr|Ms)\.? )?([A-Z][a-z]{2,})\b", text))
    if not found:
        return text
    at = found[-1]
    return f"{text[: at.start(1)]}{rng.choice(_NAMES)}{text[at.end(1) :]}"


def _negation(text: str, _: random.Random) -> str:
    if " not " in text:
        return text.replace(" not ", " ", 1)
    return _VERB.sub(lambda verb: f"{verb[0]} not", text, count=1)


CHANGES = {"number": _number, "sign": _sign, "unit": _unit, "name": _name, "negation": _negation}


def _changed(written: Written, change: str, rng: random.Random) -> Written | None:
    sentence = CHANGES[change](written.sentence, rng)
    return None if sentence == written.sentence else written._replace(sentence=sentence, change=change)


def count_by_change(written: Sequence[Written]) -> dict[str, list[Written]]:
    """Return the sentences by what was changed in them."""
    kinds: dict[str, list[Written]] = {}
    for each in written:
        kinds.setdefault(each.change or "unchanged", []).append(each)
    return kinds
