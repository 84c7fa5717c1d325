"""Mixed documents (PDF, Word, HTML, text) by `svc upload` until ready, beside the bare parsers in two processes.

The parsers are the project's own readers, on the same bytes, without the daemon: no cage, no cutting, no index.
"""

import multiprocessing
import shutil
import time
from pathlib import Path

from svc_daemon.core.text.media_types import detect
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.formats import Given, find_reader
from tests.acceptance.calls import take_in
from tests.bench.bench_folders import send_folder
from tests.bench.harness import Row, all_sides, read_options, report, timed
from tests.corpus import Outcome, make_corpus

KINDS = (".pdf", ".docx", ".html", ".txt")
CORES = 2


def main() -> None:
    options = read_options(__doc__, documents=500)
    rows: list[Row] = []
    with all_sides(options) as sides:
        for side in sides:
            paths = _make_documents(side.root, options.documents)
            if not rows:
                took_s, used_s = _read_bare(paths)
                bare = {"ready_s": round(took_s, 2), "processor_ms": round(used_s * 1000 / len(paths), 3)}
                rows.append({"side": "bare parsers"} | bare)
            with side.client() as client:
                # One of each kind has the daemon load its parsers.
                for path in {path.suffix: path for path in paths}.values():
                    take_in(client, "warm", path.name, path.read_bytes())
            rows.append({"side": side.name} | send_folder(side))
    report("mixed", options, rows)


def _make_documents(root: Path, count: int) -> list[Path]:
    """So many documents that can be read, in `files` below the root."""
    # One in two of the corpus is of these kinds and can be read.
    made = make_corpus(root / "corpus", 2 * count + 20)
    whole = [root / "corpus" / each.path for each in made if each.outcome is Outcome.READY]
    (root / "files").mkdir()
    return [Path(shutil.copy(path, root / "files")) for path in whole if path.suffix in KINDS][:count]


def _read_bare(paths: list[Path]) -> tuple[float, float]:
    """Seconds until two processes have read all, and their processor time; both have their parsers loaded."""
    with multiprocessing.get_context("forkserver").Pool(CORES) as pool:
        pool.map(_read, [path for path in paths[:40] for _ in range(CORES)], chunksize=1)
        used_s, took_s = timed(lambda: pool.map(_read, paths, chunksize=1))
    return took_s, sum(used_s)


def _read(path: Path) -> float:
    """Read one document; the processor time that it took."""
    begin_s = time.process_time()
    data = path.read_bytes()
    content_type = detect(data, path.name)
    given = Given(data=data, filename=path.name, content_type=content_type, limits=CageLimits())
    find_reader(content_type)(given)
    return time.process_time() - begin_s


if __name__ == "__main__":
    main()
