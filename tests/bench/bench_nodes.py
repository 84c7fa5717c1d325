"""What one, two and three nodes on PostgreSQL, S3 and Milvus accept and make ready a second, all in one bucket.

    python -m tests.bench.bench_nodes [--nodes 1 2 3] [--clients 8] [--seconds 8] [--sizes 1000 10000 100000]
        [--workers 1 2] [--pdfs 48]

It needs the extra `cluster-test`. PostgreSQL syncs its commits, as an operator's does. `again` is the share of
transactions that ran once more because another one was in the way: PostgreSQL reports each of them in its log, and the
nodes count what they have committed. Several nodes share the machine with all engines here, so what a source costs in
processor time says more than rates.

`a_source` is what a source asks of each engine until it is ready: sent alone, and with many others. `sizes` is what it
costs in a bucket with so many sources, whose rows are made by SQL, without bytes and text. `workers` is how many PDFs
become ready a second with so many workers beside one node that receives them; each worker reads one PDF at a time, on
one core, so that the engines are not the limit.
"""

import argparse
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import Installation, wait_until
from tests.bench.bench_uploads import BUCKET, make_uploads
from tests.bench.engine_counts import COUNTED_CALLS, CountingProxy, StatementLog, count_calls
from tests.bench.installations import read_options
from tests.bench.loads import Load, run_load, run_requests
from tests.bench.machines import processor_s, report
from tests.bench.many_sources import fill_state
from tests.cluster.milvus import RunningMilvus, running_milvus
from tests.cluster.object_store import BUCKET as STORE_BUCKET
from tests.cluster.object_store import ObjectStore, object_store
from tests.cluster.postgres import PostgresEngine, running_postgres
from tests.conftest import UNLIMITED
from tests.samples import PROSE, make_pdf

#: By the words of a process's command line: the engine that it belongs to.
_ENGINES = {"postgres": "postgres", "swift": "s3", "milvus_lite": "milvus"}
#: As in an operator's installation, where a test has `fsync` off; and each line of the log begins with its state.
_SETTINGS = {"shared_buffers": "128MB", "max_connections": "200", "log_line_prefix": "%e "}
#: Of a PDF that takes a child some time to read.
PDF_PAGES = 40
_CONFLICT = re.compile(r"^(40001|40P01) ERROR", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Engines:
    """The three, running."""

    postgres: PostgresEngine
    store: ObjectStore
    milvus: RunningMilvus

    def environ(self) -> dict[str, str]:
        """The variables of the nodes of a new installation."""
        return {
            "SVC_STATE_URL": self.postgres.make_database(),
            "SVC_BLOBS_URL": f"s3://{STORE_BUCKET}/{uuid4().hex}",
            "SVC_INDEX_URL": self.milvus.url,
            **self.store.environ,
            **UNLIMITED,
        }

    def count_conflicts(self) -> int:
        """The transactions that PostgreSQL has rolled back so far because of others."""
        log = (self.postgres.folder / "engine.log").read_text(encoding="utf-8", errors="replace")
        return len(_CONFLICT.findall(log))


@contextmanager
def running_engines(folder: Path) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield Engines(
            stack.enter_context(running_postgres(settings=_SETTINGS)),
            stack.enter_context(object_store(folder / "store")),
            stack.enter_context(running_milvus(folder / "milvus", COUNTED_CALLS)),
        )


@contextmanager
def running_nodes(folder: Path, environ: dict[str, str], *roles: str) -> Iterator[list[Installation]]:
    """Nodes of one installation, one for each role, each with a data directory of its own."""
    with ExitStack() as stack:
        nodes = []
        for number, role in enumerate(roles):
            node = Installation(folder / f"{role}-{number}", **environ)
            node.options = ("--role", role)
            node.root.mkdir(parents=True)
            stack.callback(node.clear)
            nodes.append(node.start())
        with nodes[0].client() as client:
            make_bucket(client, BUCKET)
        yield nodes


def main() -> None:
    options = read_options(
        __doc__,
        nodes=[1, 2, 3],
        sizes=[1_000, 10_000, 100_000],
        clients=8,
        seconds=8.0,
        size_bytes=2_000,
        files=64,
        workers=[1, 2],
        pdfs=48,
    )
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        with running_engines(folder) as engines:
            results = {
                "nodes": {str(each): _measure(engines, folder / str(each), each, options) for each in options.nodes},
                "a_source": _count(engines, folder / "counted", options),
                "sizes": _grow(engines, folder / "grown", options),
                "workers": {str(each): _share(engines, folder / f"w{each}", each, options) for each in options.workers},
            }
        report("nodes", vars(options), results, folder)


def _measure(engines: Engines, folder: Path, count: int, options: argparse.Namespace) -> dict[str, Any]:
    """Fill one bucket by `count` nodes, and wait until everything is ready."""
    with running_nodes(folder, engines.environ(), *["all"] * count) as nodes:
        _load(nodes, options, "warm", 0.5)
        _wait_idle(nodes)
        before, began_s = _Figures.take(engines, nodes), time.perf_counter()
        load = _load(nodes, options, "measured", options.seconds)
        accepted = _Figures.take(engines, nodes)
        _wait_idle(nodes)
        took_s, ended = time.perf_counter() - began_s, _Figures.take(engines, nodes)
    return {
        "accepts": load.figures(),
        "ready_per_second": round(load.requests / took_s, 1),
        "accepting": before.to(accepted, load.requests),
        "in_all": before.to(ended, load.requests),
    }


def _count(engines: Engines, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Count what a source asks of each engine, sent alone and with others."""
    proxy, log = CountingProxy(engines.store.port), StatementLog(engines.postgres)
    environ = {**engines.environ(), "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
    counted: dict[str, Any] = {}
    with running_nodes(folder, environ, "all") as nodes:
        _fill(nodes, options, "first")
        # One after another, each until it is ready; then all of them at once.
        for name, groups in (("alone", [1] * 8), ("together", [options.files])):
            before, requests = count_calls(engines.milvus.engine.folder), proxy.requests.copy()
            with log.logging():
                for number, files in enumerate(groups):
                    _fill(nodes, options, f"{name}-{number}", files)
            calls = count_calls(engines.milvus.engine.folder) - before
            kinds = {"postgres": log.count(), "s3": proxy.requests - requests, "milvus": calls}
            counted[name] = {
                engine: {kind: round(count / sum(groups), 2) for kind, count in each.most_common()}
                for engine, each in kinds.items()
            }
    proxy.close()
    return counted


def _grow(engines: Engines, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure what a source costs in a bucket of each size."""
    environ, grown, filled = engines.environ(), dict[str, Any](), 0
    with running_nodes(folder, environ, "all") as nodes:
        _fill(nodes, options, "first")
        for size in options.sizes:
            fill_state(environ["SVC_STATE_URL"], filled + 1, size)
            filled = size
            _fill(nodes, options, f"warm-{size}")
            before = _Figures.take(engines, nodes)
            load = _fill(nodes, options, f"measured-{size}", options.files)
            cost = before.to(_Figures.take(engines, nodes), options.files)["processor_ms_per_source"]
            grown[str(size)] = {"processor_ms_per_source": cost, "accept_ms": load.figures()["p50_ms"]}
    return grown


def _share(engines: Engines, folder: Path, count: int, options: argparse.Namespace) -> dict[str, Any]:
    """Upload PDFs to one node, and wait until `count` others have read them."""
    environ = {**engines.environ(), "SVC_LIMIT_EXTRACT_CHILDREN": "1"}
    with running_nodes(folder, environ, "api", *["worker"] * count) as nodes, nodes[0].client() as client:
        pdf, before, began_s = make_pdf([PROSE] * PDF_PAGES), _Figures.take(engines, nodes), time.perf_counter()
        for number in range(options.pdfs):
            upload(client, BUCKET, f"{number}.pdf", pdf).raise_for_status()
        accepted_s = time.perf_counter() - began_s
        _wait_idle(nodes)
        took_s = time.perf_counter() - began_s
        figures = before.to(_Figures.take(engines, nodes), options.pdfs)
    rate = {"accepted_s": round(accepted_s, 2), "ready_per_second": round(options.pdfs / took_s, 2)}
    return rate | {"processor_ms_per_source": figures["processor_ms_per_source"]}


def _fill(nodes: Sequence[Installation], options: argparse.Namespace, name: str, files: int = 8) -> Load:
    """Upload so many files, and wait until they are ready."""
    make_request = make_uploads("127.0.0.1", nodes[0].key, options.size_bytes, name)
    load = run_requests([node.base_url for node in nodes], min(options.clients, files), map(make_request, range(files)))
    _wait_idle(nodes)
    return load


def _load(nodes: Sequence[Installation], options: argparse.Namespace, name: str, seconds: float) -> Load:
    base_urls = [node.base_url for node in nodes]
    make_request = make_uploads("127.0.0.1", nodes[0].key, options.size_bytes, name)
    return run_load(base_urls, options.clients, seconds, make_request, status=201)


@dataclass(frozen=True, slots=True)
class _Figures:
    """What was counted until now."""

    conflicts: int
    commits: int
    operations: int
    #: Processor time by engine; `nodes` is all daemons.
    seconds: dict[str, float]

    @classmethod
    def take(cls, engines: Engines, nodes: Sequence[Installation]) -> "_Figures":
        writers = [_health(node)["writer"] for node in nodes]
        seconds = defaultdict(float, {"nodes": sum(processor_s(node.pid or 0) for node in nodes)})
        for process in psutil.Process().children():
            words = " ".join(process.cmdline()[:4])
            for word, name in _ENGINES.items():
                if word in words:
                    seconds[name] += processor_s(process.pid)
        return cls(
            engines.count_conflicts(),
            sum(writer["commits"] for writer in writers),
            sum(writer["operations"] for writer in writers),
            seconds,
        )

    def to(self, later: "_Figures", sources: int) -> dict[str, Any]:
        """What happened from these figures to the later ones, for so many sources."""
        conflicts, commits = later.conflicts - self.conflicts, later.commits - self.commits
        return {
            "again": round(conflicts / (commits + conflicts), 4),
            "conflicts": conflicts,
            "commits": commits,
            "operations_per_commit": round((later.operations - self.operations) / commits, 2),
            "processor_ms_per_source": {
                name: round((seconds - self.seconds[name]) * 1000 / sources, 2)
                for name, seconds in later.seconds.items()
            },
        }


def _wait_idle(nodes: Sequence[Installation]) -> None:
    wait_until(lambda: not any(_health(nodes[0])["queue"].values()), "the end of indexing", 900, every_s=0.2)


def _health(node: Installation) -> dict[str, Any]:
    if (health := node.health()) is None:
        raise ConnectionError("a node does not answer")
    return health


if __name__ == "__main__":
    main()
