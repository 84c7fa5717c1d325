"""What a source takes in each engine of a cluster: rows and write-ahead log, objects, rows of the search index.

    python -m tests.bench.bench_cluster_sizes [--files 300] [--size-bytes 2000 20000]

It needs the extra `cluster-test`. The index is measured by the values of its rows, since a Milvus stores them in
segments of a size that it chooses. `docs/cluster-arithmetic.md` multiplies these figures.
"""

import argparse
import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from svc_daemon.provider.milvus import editions
from svc_daemon.provider.milvus.schema import equals
from svc_daemon.provider.milvus.server import MilvusServer
from svc_daemon.store.objects.stores import open_objects
from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import Installation, wait_until
from tests.bench.bench_nodes import Engines, running_engines, running_nodes
from tests.bench.bench_uploads import BUCKET, make_uploads
from tests.bench.installations import read_options
from tests.bench.loads import run_requests
from tests.bench.machines import report

CLIENTS = 8
_TABLES = """\
SELECT relname AS name, pg_table_size(oid) AS rows, pg_indexes_size(oid) AS indexes
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"""


def main() -> None:
    options = read_options(__doc__, files=300, size_bytes=[2_000, 20_000])
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        with running_engines(folder) as engines:
            sizes = {str(size): _measure(engines, folder / str(size), size, options) for size in options.size_bytes}
        report("cluster_sizes", vars(options), {"size_bytes": sizes}, folder)


def _measure(engines: Engines, folder: Path, size_bytes: int, options: argparse.Namespace) -> dict[str, Any]:
    """Upload documents of one size, wait until they are ready, and divide what the engines have gained."""
    environ = engines.environ()
    with running_nodes(folder, environ, "all") as (node,):
        with node.client() as client:
            make_bucket(client, BUCKET)
        before = _State.look(environ["SVC_STATE_URL"])
        make_request = make_uploads("127.0.0.1", node.key, size_bytes, "sizes")
        run_requests([node.base_url], CLIENTS, map(make_request, range(options.files)))
        wait_until(lambda: _is_idle(node), "the end of indexing", 900, every_s=0.2)
        after = _State.look(environ["SVC_STATE_URL"])
    return {
        "state_bytes": before.to(after, options.files),
        "objects": asyncio.run(_measure_objects(environ, folder, options.files)),
        "index": _measure_index(engines.milvus.url, after.team_id, options.files),
    }


@dataclass(frozen=True, slots=True)
class _State:
    """The database's sizes in bytes."""

    team_id: str
    tables: dict[str, int]
    indexes: int
    log: int

    @classmethod
    def look(cls, url: str) -> "_State":
        with psycopg.connect(url, autocommit=True) as admin:
            # What was updated or deleted leaves room that a later row takes.
            admin.execute("VACUUM")
            found = admin.execute(_TABLES).fetchall()
            (log,) = admin.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint").fetchone() or (0,)
            (team_id,) = admin.execute("SELECT id FROM teams").fetchone() or ("",)
        return cls(team_id, {name: rows for name, rows, _ in found}, sum(indexes for *_, indexes in found), log)

    def to(self, later: "_State", sources: int) -> dict[str, int]:
        grown = {name: (size - self.tables[name]) // sources for name, size in later.tables.items()}
        return {
            **{f"rows_{name}": each for name, each in sorted(grown.items()) if each >= 1},
            "indexes": (later.indexes - self.indexes) // sources,
            "rows_and_indexes": sum(grown.values()) + (later.indexes - self.indexes) // sources,
            "write_ahead_log": (later.log - self.log) // sources,
        }


async def _measure_objects(environ: dict[str, str], folder: Path, sources: int) -> dict[str, float]:
    with ThreadPoolExecutor(1) as executor:
        client = open_objects(environ["SVC_BLOBS_URL"], environ, folder, executor).blobs.client
        objects = [found for page in ("blobs", "parts") for found in await client.list(page)]
    sizes = [found.size_bytes for found in objects]
    return {"per_source": len(sizes) / sources, "bytes_per_source": sum(sizes) // sources}


def _measure_index(url: str, team_id: str, sources: int) -> dict[str, float]:
    with closing(MilvusServer(url)) as server:
        size = {}
        for name, fields in (
            (server.collections.chunks, ["source_id", "edition", "bucket_ids", "headings", "text", "stems"]),
            (server.collections.documents, ["source_id", "edition", "bucket_ids", "title", "body"]),
        ):
            rows = list(server.list_sorted(name, equals("team_id", team_id), fields))
            size[name] = len(rows), sum(len(str(value).encode()) for row in rows for value in row.values())
        assert sum(1 for _ in editions.list_shown(server, team_id)) == sources
        (chunks, chunk_bytes), (documents, document_bytes) = size.values()
    return {
        "chunks_per_source": round(chunks / sources, 2),
        "bytes_per_chunk": chunk_bytes // chunks,
        "documents_per_source": round(documents / sources, 2),
        "bytes_per_document": document_bytes // documents,
    }


def _is_idle(node: Installation) -> bool:
    health = node.health()
    return health is not None and not any(health["queue"].values())


if __name__ == "__main__":
    main()
