"""Nodes on PostgreSQL, S3 and Milvus: what they accept and make ready a second, and what a source takes in each engine.

    python -m tests.bench.bench_cluster [--nodes 1 2 3] [--seconds 8] [--size-bytes 2000 20000] [--files 300]

It needs the extra `cluster-test`. PostgreSQL syncs its commits, as an operator's does. All nodes fill one bucket. `run
again` is the share of transactions that ran once more because another one was in the way: PostgreSQL reports each of
them in its log, and the nodes count what they have committed. Several nodes share the machine with all engines here,
so what a source costs in processor time says more than rates.

The index is measured by the values of its rows, since a Milvus stores them in segments of a size that it chooses.
`docs/cluster-arithmetic.md` multiplies the sizes.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil
import psycopg

from svc_daemon.cluster.milvus.schema import equals
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.cluster.s3.stores import open_objects
from tests.acceptance.calls import make_bucket
from tests.bench.harness import Row, Side, processor_s, read_options, report
from tests.bench.loads import BUCKET, for_seconds, make_uploads, send
from tests.cluster.milvus import RunningMilvus, running_milvus
from tests.cluster.object_store import BUCKET as STORE_BUCKET
from tests.cluster.object_store import ObjectStore, object_store
from tests.cluster.postgres import PostgresEngine, running_postgres
from tests.conftest import UNLIMITED

#: By the words of a process's command line: the engine that it belongs to.
_ENGINES = {"postgres": "postgres", "swift": "s3", "milvus_lite": "milvus"}
#: As in an operator's installation, where a test has `fsync` off; and each line of the log begins with its state.
_SETTINGS = {"shared_buffers": "128MB", "max_connections": "200", "log_line_prefix": "%e "}
_CONFLICT = re.compile(r"^(40001|40P01) ERROR", re.MULTILINE)
_TABLES = """\
SELECT relname AS name, pg_table_size(oid) AS rows, pg_indexes_size(oid) AS indexes
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"""

#: By what is measured.
Figures = dict[str, float]


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

    def conflicts(self) -> int:
        """The transactions that PostgreSQL has rolled back so far because of others."""
        log = (self.postgres.folder / "engine.log").read_text(encoding="utf-8", errors="replace")
        return len(_CONFLICT.findall(log))


def main() -> None:
    options = read_options(
        __doc__,
        base=None,
        nodes=[1, 2, 3],
        clients=8,
        seconds=8.0,
        bytes_each=2_000,
        files=300,
        size_bytes=[2_000, 20_000],
    )
    with tempfile.TemporaryDirectory(dir=options.folder or None) as name, ExitStack() as stack:
        folder = Path(name)
        engines = Engines(
            stack.enter_context(running_postgres(settings=_SETTINGS)),
            stack.enter_context(object_store(folder / "store")),
            stack.enter_context(running_milvus(folder / "milvus")),
        )
        measured = {f"{count} nodes": _measure(engines, folder, count, options) for count in options.nodes}
        measured |= {f"{size} bytes": _weigh(engines, folder, size, options) for size in options.size_bytes}
    rows: list[Row] = [
        {"of": of, "figure": figure, "value": round(value, 3)}
        for of, figures in measured.items()
        for figure, value in figures.items()
    ]
    report("cluster", options, rows)


@contextmanager
def _running_nodes(folder: Path, environ: dict[str, str], count: int) -> Iterator[list[Side]]:
    """Nodes of one installation, each with a data directory of its own."""
    with ExitStack() as stack:
        nodes = [Side(folder / uuid4().hex, f"node {n}", sys.executable, **environ) for n in range(count)]
        for node in nodes:
            stack.callback(node.clear)
            node.start()
        with nodes[0].client() as client:
            make_bucket(client, BUCKET)
        yield nodes


def _measure(engines: Engines, folder: Path, count: int, options: argparse.Namespace) -> Figures:
    """Fill one bucket by `count` nodes, and wait until everything is ready."""
    with _running_nodes(folder, engines.environ(), count) as nodes:
        for run, seconds in (("warm", 0.5), ("measured", options.seconds)):
            make = make_uploads(nodes[0].key, options.bytes_each, run)
            before, began_s = _count(engines, nodes), time.perf_counter()
            load = send(nodes, options.clients, for_seconds(seconds, options.clients, make))
            nodes[0].wait_idle(900)
            took_s, after = time.perf_counter() - began_s, _count(engines, nodes)
    sources = len(load.latencies_s)
    spent = {name: value - before[name] for name, value in after.items()}
    commits, conflicts, operations = (spent.pop(name) for name in ("commits", "conflicts", "operations"))
    return {
        "accepted a second": sources / load.seconds,
        "ready a second": sources / took_s,
        "run again": conflicts / (commits + conflicts),
        "operations a commit": operations / commits,
        **{f"processor ms a source, {name}": seconds * 1000 / sources for name, seconds in spent.items()},
    }


def _count(engines: Engines, nodes: Sequence[Side]) -> dict[str, float]:
    """What was counted until now, and the processor time of each engine and of all nodes, in seconds."""
    writers = [node.facts()["writer"] for node in nodes]
    counted = defaultdict[str, float](
        float, {name: sum(writer[name] for writer in writers) for name in ("commits", "operations")}
    )
    counted |= {"conflicts": engines.conflicts(), "nodes": sum(node.processor_s() for node in nodes)}
    for process in psutil.Process().children():
        words = " ".join(process.cmdline()[:4])
        for word, name in _ENGINES.items():
            if word in words:
                counted[name] += processor_s(process.pid)
    return counted


def _weigh(engines: Engines, folder: Path, size_bytes: int, options: argparse.Namespace) -> Figures:
    """Upload documents of one size, wait until they are ready, and divide what the engines have gained."""
    environ, sources = engines.environ(), options.files
    with _running_nodes(folder, environ, 1) as (node,):
        before = _look(environ["SVC_STATE_URL"])
        send([node], options.clients, map(make_uploads(node.key, size_bytes, "sizes"), range(sources)))
        node.wait_idle(900)
        after = _look(environ["SVC_STATE_URL"])
    return {
        **{name: (size - before[name]) / sources for name, size in after.items() if size > before[name]},
        **asyncio.run(_weigh_objects(environ, folder, sources)),
        **_weigh_index(engines.milvus.url, environ["SVC_STATE_URL"], sources),
    }


def _look(url: str) -> dict[str, int]:
    """The database's sizes in bytes."""
    with psycopg.connect(url, autocommit=True) as admin:
        # What was updated or deleted leaves room that a later row takes.
        admin.execute("VACUUM")
        found = admin.execute(_TABLES).fetchall()
        (log,) = admin.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint").fetchone() or (0,)
    indexes = sum(size for *_, size in found)
    sizes = {f"state bytes, rows {name}": int(size) for name, size, _ in sorted(found)}
    total = sum(sizes.values()) + indexes
    return sizes | {"state bytes, indexes": indexes, "state bytes": total, "write-ahead log bytes": log}


async def _weigh_objects(environ: dict[str, str], folder: Path, sources: int) -> Figures:
    with ThreadPoolExecutor(1) as executor:
        client = open_objects(environ["SVC_BLOBS_URL"], environ, folder, executor).blobs.client
        sizes = [found.size_bytes for page in ("blobs", "parts") for found in await client.list(page)]
    return {"objects": len(sizes) / sources, "object bytes": sum(sizes) / sources}


def _weigh_index(url: str, state_url: str, sources: int) -> Figures:
    with psycopg.connect(state_url) as admin:
        (team_id,) = admin.execute("SELECT id FROM teams").fetchone() or ("",)
    figures: Figures = {}
    with closing(MilvusServer(url)) as server:
        for kind, name, fields in (
            ("passage", server.collections.chunks, ["source_id", "edition", "bucket_ids", "headings", "text", "stems"]),
            ("document", server.collections.documents, ["source_id", "edition", "bucket_ids", "title", "body"]),
        ):
            rows = list(server.list_sorted(name, equals("team_id", team_id), fields))
            size_bytes = sum(len(str(value).encode()) for row in rows for value in row.values())
            figures |= {f"index rows, {kind}s": len(rows) / sources, f"index bytes a {kind}": size_bytes / len(rows)}
    return figures


if __name__ == "__main__":
    main()
