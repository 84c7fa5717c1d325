"""How much of what a document says is in our text: the share of the distinct words of a plain reference.

The reference is the raw XML or HTML, `pdftotext` or `pandoc` (`tests.bench.plain_references`). Files are read by the
daemon's own child processes. A file that can't be read counts as 0, one whose reference has no words is left out.
`--peer PYTHON` reads the same files by markitdown, which that interpreter must have. `--worst 20` lists files.
"""

import asyncio
import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import NamedTuple
from zipfile import BadZipFile

from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.extractors import Extractor
from tests.bench.harness import Row, make_parser, report
from tests.bench.plain_references import list_files, reference_of, words
from tests.extract.readings import document_at

#: Files with a lower share count as misread.
GOOD = 0.8
KINDS = {"htm": "html", "xhtml": "html"}
PEER = """
import json, sys
from markitdown import MarkItDown
reader = MarkItDown()
for line in sys.stdin:
    try:
        text = reader.convert(json.loads(line)).text_content
    except BaseException:
        text = ""
    print(json.dumps(text), flush=True)
"""


class Recall(NamedTuple):
    """One file, and how much of it was found."""

    path: Path
    share: float
    #: Why there is no text.
    failure: str
    #: What the peer found; None without a peer.
    peer: float | None


def main() -> None:
    parser = make_parser(__doc__, base=None, peer="", worst=0)
    parser.add_argument("collection", metavar="FOLDER", type=Path)
    options = parser.parse_args()
    recalls = asyncio.run(_read_all(options.collection, options.peer))
    options.collection = str(options.collection)
    report("recall", options, [*_rows(recalls), *_worst(recalls, options.worst)])


def _rows(recalls: Sequence[Recall]) -> Iterator[Row]:
    kinds = defaultdict(list)
    for each in recalls:
        suffix = each.path.suffix.lower().lstrip(".")
        kinds[KINDS.get(suffix, suffix)].append(each)
    for kind, found in sorted(kinds.items()):
        shares = [each.share for each in found]
        misread = sum(share < GOOD for share in shares)
        row = {"kind": kind, "files": len(found), "share": round(fmean(shares), 3), "misread": misread}
        peers = [each.peer for each in found if each.peer is not None]
        yield row | ({"peer": round(fmean(peers), 3)} if peers else {})


def _worst(recalls: Sequence[Recall], number: int) -> Iterator[Row]:
    for each in sorted(recalls, key=lambda recall: recall.share)[:number]:
        yield {"kind": str(each.path), "share": round(each.share, 3), "failure": each.failure}


async def _read_all(folder: Path, peer: str) -> list[Recall]:
    recalls = []
    with tempfile.TemporaryDirectory() as scratch, _asking(peer) as ask_peer:
        extractor = Extractor(Path(scratch) / "scratch")
        try:
            for path in list_files(folder):
                try:
                    wanted = words(reference_of(path) or "")
                except (OSError, ValueError, KeyError, SyntaxError, BadZipFile, subprocess.SubprocessError):
                    continue
                if not wanted:
                    continue
                failure = text = ""
                try:
                    text = (await extractor.extract(document_at(path))).text
                except ExtractionFailed as error:
                    failure = str(error)
                asked = ask_peer(path)
                found = None if asked is None else len(words(asked) & wanted) / len(wanted)
                recalls.append(Recall(path, len(words(text) & wanted) / len(wanted), failure, found))
        finally:
            await extractor.close()
    return recalls


@contextmanager
def _asking(python: str) -> Iterator[Callable[[Path], str | None]]:
    """Yield a function that returns what the peer finds in a file; without a peer, None."""
    if not python:
        yield lambda _: None
        return
    pipe = subprocess.PIPE
    with subprocess.Popen([python, "-c", PEER], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as peer:

        def ask(path: Path) -> str:
            assert peer.stdin is not None and peer.stdout is not None
            peer.stdin.write(json.dumps(str(path)) + "\n")
            peer.stdin.flush()
            answer: str = json.loads(peer.stdout.readline())
            return answer

        yield ask
        if peer.stdin is not None:
            peer.stdin.close()


if __name__ == "__main__":
    main()
