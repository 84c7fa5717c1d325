"""Measures nDCG@10 of the index on Milvus beside the embedded one; prints one JSON line for each collection.

    python -m tests.bench.bench_milvus FOLDER [FOLDER ...] [--embed-url URL --embed-model NAME]

It starts the server of milvus-lite, from the extra `cluster-test`. `difference` is Milvus's nDCG@10 minus the embedded
one's, in the same run. Times say nothing: milvus-lite is a small server in Python, made for tests.
"""

import argparse
import secrets
import tempfile
import time
from contextlib import closing
from pathlib import Path

from pymilvus import MilvusClient

from svc_daemon.provider.contract import HitPage, SearchQuery
from svc_daemon.provider.milvus.provider import MilvusProvider
from svc_daemon.provider.milvus.server import MilvusServer
from tests.bench.bench_relevance import VectorServer, measure, measure_embedded
from tests.bench.corpora import Collection, add_folders, read_collections
from tests.bench.machines import report
from tests.cluster.milvus import RunningMilvus, running_milvus


class UncountingServer(MilvusServer):
    """Counts no chunks, for which milvus-lite takes seconds: counts weigh the words of a hit and not its rank."""

    def count(self, collection: str, wanted: str, *, is_estimate: bool = False, deadline_s: float | None = None) -> int:
        return 1 if is_estimate else super().count(collection, wanted, deadline_s=deadline_s)


class FlushingProvider(MilvusProvider):
    """Has milvus-lite put what it holds in memory into files before the first search, which then take a tenth."""

    def __init__(self, milvus: RunningMilvus) -> None:
        server = UncountingServer(milvus.url, partitions=1)
        super().__init__(server, now_ns=time.time_ns, random_bits=lambda: secrets.randbits(32))
        self._milvus = milvus
        self._collections = [spec.name for spec in server.collections.list_fixed()]

    def search(self, team_id: str, query: SearchQuery) -> HitPage:
        if self._collections:
            with closing(MilvusClient(self._milvus.url)) as client:
                for name in self._collections:
                    client.flush(name)
            self._collections = []
        return super().search(team_id, query)


def measure_milvus(collection: Collection, is_cut: bool, server: VectorServer | None) -> dict[str, dict[str, float]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_milvus(Path(folder)) as milvus,
        closing(FlushingProvider(milvus)) as provider,
    ):
        return measure(provider, collection, is_cut, server)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures nDCG@10 of an index on Milvus, beside the embedded one.")
    add_folders(parser)
    parser.add_argument("--embed-url", metavar="URL", help="of a server that makes vectors")
    parser.add_argument("--embed-model", metavar="NAME", default="default", help="what it calls its model")
    options = parser.parse_args()
    server = VectorServer(options.embed_url, options.embed_model) if options.embed_url else None
    for collection in read_collections(parser, options):
        parameters = {"collection": collection.name, "documents": len(collection.documents)}
        results: dict[str, object] = {}
        for cut in ("whole", "chunks"):
            embedded = measure_embedded(collection, cut == "chunks", server)
            milvus = measure_milvus(collection, cut == "chunks", server)
            differences = {
                mode: round(found["ndcg_at_10"] - embedded[mode]["ndcg_at_10"], 4) for mode, found in milvus.items()
            }
            results[cut] = {"embedded": embedded, "milvus": milvus, "difference": differences}
        report("milvus", parameters, results)


if __name__ == "__main__":
    main()
