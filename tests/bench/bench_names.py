"""How often a document that a query names comes first: by its exact title, by its number, and when asked about it.

    python -m tests.bench.bench_names FOLDER

FOLDER has numbered documents with a `Title:` line, such as `pep-0484.rst`; a copy of the Python Enhancement Proposals
(github.com/python/peps, its folder `peps`) does. They are uploaded under their file names to a fresh daemon. With
`--model` (what `svc-daemon model install` takes), or with SVC_EMBED_BASE_URL and SVC_EMBED_MODEL, searches by both
words and meaning are measured, too.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from tests.bench.corpora import Entry, fill, is_by_meaning, sides_with_model
from tests.bench.harness import Row, Side, make_parser, report, spread_ms, timed
from tests.bench.loads import BUCKET

_TITLE = re.compile(r"^Title:\s*(.+(?:\n[ \t]+.+)*)", re.MULTILINE)
#: A name before a number, with its leading zeros.
_NUMBERED = re.compile(r"([a-z]+)-0*(\d+)")


def main() -> None:
    parser = make_parser(__doc__, model="", titles=300, numbers=100)
    parser.add_argument("folder_of_documents", type=Path, metavar="FOLDER", help="of numbered documents with titles")
    options = parser.parse_args()
    texts = {
        path.name: path.read_text(encoding="utf-8", errors="surrogateescape")
        for path in sorted(options.folder_of_documents.iterdir())
        if path.is_file() and _NUMBERED.fullmatch(path.stem)
    }
    titled = {name: " ".join(match[1].split()) for name, text in texts.items() if (match := _TITLE.search(text))}
    if not titled:
        parser.error(f"{options.folder_of_documents} has no numbered documents with a Title line.")
    rows: list[Row] = []
    with sides_with_model(options) as sides:
        for side in sides:
            rows += _measure(side, texts, titled, options)
    options.folder_of_documents = str(options.folder_of_documents)
    report("names", options, rows)


def _measure(side: Side, texts: dict[str, str], titled: dict[str, str], options: argparse.Namespace) -> Iterator[Row]:
    names = [*titled]
    Random(3).shuffle(names)
    spoken = {name: " ".join(_NUMBERED.sub(r"\1 \2", Path(name).stem).split()).upper() for name in names}
    asked = {
        "exact title": [(name, titled[name]) for name in names[: options.titles]],
        "name and number": [(name, spoken[name]) for name in names[: options.numbers]],
        "asked about": [(name, f"who is the author of {spoken[name]}") for name in names[: options.numbers]],
    }
    with side.client() as client:
        documents = fill(client, [Entry(name, "", text) for name, text in texts.items()])

        def find_first(mode: str, query: str) -> str | None:
            body = {"query": query, "buckets": [BUCKET], "mode": mode}
            hits = client.post("/v1/search", json=body).raise_for_status().json()["data"]
            return documents[hits[0]["source_id"]] if hits else None

        for mode in ("keyword", "hybrid") if is_by_meaning(options) else ("keyword",):
            for what, pairs in asked.items():
                yield {"side": side.name, "mode": mode, "asked": what} | _judge(pairs, partial(find_first, mode))


def _judge(pairs: Sequence[tuple[str, str]], find_first: Callable[[str], str | None]) -> Row:
    firsts, taken_s = [], []
    for name, query in pairs:
        first, took_s = timed(partial(find_first, query))
        firsts.append(first == name)
        taken_s.append(took_s)
    return {"queries": len(pairs), "first": round(sum(firsts) / len(firsts), 3)} | spread_ms(taken_s, "p50", "p99")


if __name__ == "__main__":
    main()
