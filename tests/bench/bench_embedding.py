"""Vectors a second of the whole daemon beside the bare model on the same cores, and what uploads feel of it.

    python -m tests.bench.bench_embedding
    SVC_TEST_MODEL=FOLDER_OR_WHEEL python -m tests.bench.bench_embedding --documents 60

The bare model is what the daemon's process runs: the same texts, as many threads as there are cores, all texts at hand.
On a machine with other work the shares by processor time are the ones to trust.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from os import sched_getaffinity
from pathlib import Path
from typing import Any

import httpx

from svc_daemon.embed.installing import install
from svc_daemon.embed.models import InstalledModel, ModelFolder
from svc_daemon.embed.origins import DEFAULT
from svc_daemon.embed.runtimes import Runtime
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation, process_tree, wait_until
from tests.acceptance.vectors import counts, wait_embedded
from tests.bench.bench_ready import BUCKET, make_document, wait_s
from tests.bench.installations import UNLIMITED
from tests.bench.machines import report, spread_ms
from tests.corpus import phrase_of
from tests.embed.real_models import REAL_MODEL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--size-bytes", type=int, default=20_000)
    parser.add_argument("--uploads", type=int, default=20, help="timed alone, and as many while vectors are made")
    parser.add_argument(
        "--model", default=str(REAL_MODEL or DEFAULT.package), help="the usual package, a folder or a file"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        daemon = Installation(Path(name) / "daemon", **UNLIMITED)
        try:
            results = _measure(daemon, options)
        finally:
            daemon.clear()
        parameters = {"documents": options.documents, "size_bytes": options.size_bytes}
        report("embedding", parameters, results, Path(name))


def _measure(daemon: Installation, options: argparse.Namespace) -> dict[str, Any]:
    number = count(2 * options.documents)
    daemon.start()
    with daemon.client() as client:
        make_bucket(client, BUCKET)
        # The first one starts what reading documents keeps ready from then on.
        wait_ended(client, upload(client, BUCKET, "first.md", b"# First\n\nSome text.").json()["id"])
        alone = [wait_s(client, next(number), options.size_bytes) for _ in range(options.uploads)]
        _fill(client, options, range(options.documents))
    daemon.stop()
    texts = _texts(daemon)
    folder = ModelFolder(daemon.files.models)
    model = install(folder, options.model, str, lambda _: None).model
    bare = _measure_bare(folder, model, texts)
    daemon.start()
    whole = _measure_daemon(daemon, len(texts))
    with daemon.client() as client:
        _fill(client, options, range(options.documents, 2 * options.documents))
        upload_one = lambda: wait_s(client, next(number), options.size_bytes)  # noqa: E731
        meanwhile = _time_meanwhile(daemon, options.uploads, upload_one)
    return {
        "model": model.name,
        "chunks": len(texts),
        "bare": bare,
        "daemon": whole,
        "share_of_bare": round(whole["chunks_per_s"] / bare["chunks_per_s"], 3),
        # A clock that counts hundredths of a second sees nothing of a few short texts.
        "share_by_processor": round(bare["processor_ms"] / max(whole["processor_ms"], 0.1), 3),
        "ready_alone": spread_ms(alone),
        "ready_meanwhile": {"uploads": len(meanwhile), **(spread_ms(meanwhile) if meanwhile else {})},
    }


def _fill(client: httpx.Client, options: argparse.Namespace, numbers: range) -> None:
    documents = ((number, make_document(phrase_of(number), number, options.size_bytes)) for number in numbers)
    ids = [upload(client, BUCKET, f"{number}.md", text).json()["id"] for number, text in documents]
    for source_id in ids:
        wait_ended(client, source_id)


def _texts(daemon: Installation) -> list[str]:
    """What is to be embedded, as the worker is given it."""
    (team,) = (path.stem for path in daemon.files.index.glob("*.db"))
    with closing(EmbeddedProvider(daemon.files.index)) as provider:
        return [chunk.text for chunk in provider.list_unembedded(team, "any", 10**9)]


def _measure_bare(folder: ModelFolder, model: InstalledModel, texts: list[str]) -> dict[str, float]:
    runtime = Runtime(folder.folder_of(model), max_tokens=model.max_tokens, pooling=model.pooling)
    begin_s, before_s = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        list(pool.map(runtime.embed, texts))
    return _figures(len(texts), time.perf_counter() - begin_s, time.process_time() - before_s)


def _measure_daemon(daemon: Installation, chunks: int) -> dict[str, float]:
    """From the moment at which the model is in memory to the last vector."""
    wait_until(lambda: (daemon.health() or {})["embedding"]["state"] == "ready", "the model", every_s=0.005)
    begin_s, before_s = time.perf_counter(), _processor_s(daemon)
    wait_embedded(daemon, 3600, every_s=0.05)
    return _figures(chunks, time.perf_counter() - begin_s, _processor_s(daemon) - before_s)


def _time_meanwhile(daemon: Installation, uploads: int, upload_one: Callable[[], float]) -> list[float]:
    """Uploads, as long as there are chunks without a vector before each."""
    waits_s: list[float] = []
    while len(waits_s) < uploads and len(set(counts(daemon))) > 1:
        waits_s.append(upload_one())
    return waits_s


def _figures(chunks: int, wall_s: float, processor_s: float) -> dict[str, float]:
    return {"chunks_per_s": round(chunks / wall_s, 1), "processor_ms": round(processor_s / chunks * 1000, 2)}


def _processor_s(daemon: Installation) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in process_tree(daemon.pid or 0))


if __name__ == "__main__":
    main()
