"""Search in stores of several sizes: over HTTP by keyword and hybrid, from several clients, and as `svc search`.

    python -m tests.bench.bench_search --passages 10000 100000 1000000

In each store a bucket of a hundred passages is searched, too. Each query has two to five words, one of them common.
Queries and passages are embedded by a server beside the daemon, whose vectors are random: this is about time alone.
`processor_ms` is the daemon's for each search. `idle` shows its memory, and what it computes with nothing to do.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.acceptance.forks import ROOT
from tests.acceptance.installations import wait_until
from tests.bench.harness import Row, Side, all_sides, read_options, report, spread_ms, timed
from tests.bench.loads import FILL_TIMEOUT_S, fill_bucket, make_queries, make_search, send
from tests.conftest import UNLIMITED

#: Searches before those that count.
WARM = 20
ALL, HUNDRED = "all", "hundred"
#: The length of vectors, as MiniLM makes them.
DIMENSION = 384


def main() -> None:
    options = read_options(
        __doc__, passages=[10_000, 100_000], queries=300, clients=[1, 4], commands=10, idle_seconds=10.0
    )
    rows = []
    with serving_vectors() as url:
        embedding = {"SVC_EMBED_BASE_URL": url, "SVC_EMBED_MODEL": "random"}
        with all_sides(options, UNLIMITED | embedding) as sides:
            for passages in sorted(options.passages):
                measured = []
                for side in sides:
                    _fill(side, HUNDRED, 100)
                    took_s = timed(lambda: _fill(side, ALL, passages - 100))[1]  # noqa: B023
                    measured.append(_measure(side, options))
                    rows.append({"side": side.name, "passages": passages, "what": "fill", "wall_s": round(took_s, 1)})
                # Each figure of one side is followed by the same of the other.
                for pair in zip(*measured, strict=True):
                    rows += [
                        {"side": side.name, "passages": passages} | row for side, row in zip(sides, pair, strict=True)
                    ]
    report("search", options, rows)


@contextmanager
def serving_vectors() -> Iterator[str]:
    """Run an embeddings server in a process of its own; yields what `SVC_EMBED_BASE_URL` takes."""
    command = [sys.executable, "-m", "tests.embed.vector_servers", str(DIMENSION)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def _fill(side: Side, bucket: str, passages: int) -> None:
    """Have so many passages in a bucket, with their vectors."""
    with side.client() as client:
        semantic = {"query": "a", "buckets": [bucket], "mode": "semantic"}

        def is_embedded() -> bool:
            # A search by meaning warns of what lacks a vector.
            return not client.post("/v1/search", json=semantic).raise_for_status().json()["warnings"]

        fill_bucket(client, bucket, passages)
        wait_until(is_embedded, f"the vectors of {bucket}", FILL_TIMEOUT_S, every_s=1)


def _measure(side: Side, options: argparse.Namespace) -> Iterator[Row]:
    yield _idle(side, options.idle_seconds)
    with side.client() as client:
        # What is asked of a bucket has the words of its documents.
        asked = {bucket: make_queries(client, bucket, options.queries + WARM) for bucket in (ALL, HUNDRED)}
    for bucket, queries in asked.items():
        for mode in ("keyword", "hybrid"):
            requests = [make_search(side.key, query=query, buckets=[bucket], mode=mode) for query in queries]
            send([side], 1, requests[:WARM], 200)
            for clients in options.clients:
                before_s = side.processor_s()
                load = send([side], clients, requests[WARM:], 200)
                # What a busy machine doesn't change much.
                used = {"processor_ms": round((side.processor_s() - before_s) / options.queries * 1000, 2)}
                what = {"what": f"{mode}, {bucket}", "clients": clients}
                yield what | load.figures() | used | {"tree_mb": round(side.tree_mb())}
    walls_s = [
        side.run_svc("search", *query.split(), "-b", ALL, "--json").wall_s for query in asked[ALL][: options.commands]
    ]
    yield {"what": f"svc search, {ALL}"} | spread_ms(walls_s)


def _idle(side: Side, seconds: float) -> Row:
    before_s = side.processor_s()
    time.sleep(seconds)
    percent = round(100 * (side.processor_s() - before_s) / seconds, 2)
    return {"what": "idle", "tree_mb": round(side.tree_mb()), "processor_percent": percent}


if __name__ == "__main__":
    main()
