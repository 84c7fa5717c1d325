"""Vectors a second of the whole daemon beside the bare model on the same cores, and what uploads feel of it.

    python -m tests.bench.bench_embedding
    python -m tests.bench.bench_embedding --model FOLDER_OR_WHEEL --documents 60

The bare model is what the daemon's process runs: the same texts, as many threads as there are cores, all texts at hand.
On a machine with other work the shares by processor time are the ones to trust.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from os import sched_getaffinity
from typing import Any

from svc_daemon.embed.installed_models import InstalledModel, ModelFolder
from svc_daemon.embed.installing import install
from svc_daemon.embed.onnx_inference import Runtime
from svc_daemon.embed.origins import DEFAULT
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.acceptance.calls import upload, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.vectors import counts, wait_embedded
from tests.bench.bench_ready import BUCKET, begin, document, wait_s
from tests.bench.installations import measured, read_options
from tests.bench.machines import processor_s, report, spread_ms
from tests.embed.real_models import REAL_MODEL


def main() -> None:
    """The uploads are timed alone, and as many while vectors are made."""
    model = str(REAL_MODEL or DEFAULT.package)
    options = read_options(__doc__, documents=60, size_bytes=20_000, uploads=20, model=model)
    size_bytes, number = options.size_bytes, count(2 * options.documents)
    with measured(options.folder) as daemon:
        with daemon.client() as client:
            begin(client)
            alone = [wait_s(client, next(number), size_bytes) for _ in range(options.uploads)]
        _fill(daemon, range(options.documents), size_bytes)
        daemon.stop()
        texts, folder = _texts(daemon), ModelFolder(daemon.files.models)
        installed = install(folder, options.model, str, lambda _: None).model
        bare = _measure_bare(folder, installed, texts)
        daemon.start()
        whole = _measure_daemon(daemon, len(texts))
        _fill(daemon, range(options.documents, 2 * options.documents), size_bytes)
        meanwhile: list[float] = []
        with daemon.client() as client:
            # As long as there are chunks without a vector before each.
            while len(meanwhile) < options.uploads and len(set(counts(daemon))) > 1:
                meanwhile.append(wait_s(client, next(number), size_bytes))
        results = {
            "model": installed.name,
            "chunks": len(texts),
            "bare": bare,
            "daemon": whole,
            "share_of_bare": round(whole["chunks_per_s"] / bare["chunks_per_s"], 3),
            # A clock that counts hundredths of a second sees nothing of a few short texts.
            "share_by_processor": round(bare["processor_ms"] / max(whole["processor_ms"], 0.1), 3),
            "ready_alone": spread_ms(alone),
            "ready_meanwhile": {"uploads": len(meanwhile), **(spread_ms(meanwhile) if meanwhile else {})},
        }
        report("embedding", vars(options), results, daemon.root)


def _fill(daemon: Installation, numbers: range, size_bytes: int) -> None:
    with daemon.client() as client:
        answers = [upload(client, BUCKET, f"{number}.md", document(number, size_bytes)) for number in numbers]
        for answer in answers:
            wait_ended(client, answer.json()["id"])


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
    begin_s, before_s = time.perf_counter(), processor_s(daemon.pid or 0)
    wait_embedded(daemon, 3600, every_s=0.05)
    return _figures(chunks, time.perf_counter() - begin_s, processor_s(daemon.pid or 0) - before_s)


def _figures(chunks: int, wall_s: float, used_s: float) -> dict[str, Any]:
    return {"chunks_per_s": round(chunks / wall_s, 1), "processor_ms": round(used_s / chunks * 1000, 2)}


if __name__ == "__main__":
    main()
