"""Vectors a second of the whole daemon beside the bare model on the same cores.

    python -m tests.bench.bench_embedding --model FOLDER_OR_WHEEL --documents 60

The bare model is what the daemon's process runs: the same texts, as many threads as there are cores, all texts at hand.
On a machine with other work the processor times are the ones to trust.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from os import sched_getaffinity

from svc_daemon.embed.installed_models import InstalledModel, ModelFolder
from svc_daemon.embed.installing import install
from svc_daemon.embed.onnx_inference import Runtime
from svc_daemon.embed.origins import DEFAULT
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import wait_until
from tests.acceptance.vectors import wait_embedded
from tests.bench.harness import Row, Side, all_sides, read_options, report
from tests.bench.loads import BUCKET, make_uploads, send
from tests.embed.models import REAL_MODEL


def main() -> None:
    options = read_options(
        __doc__, base=None, documents=60, size_bytes=20_000, model=str(REAL_MODEL or DEFAULT.package)
    )
    with all_sides(options) as (side,):
        with side.client() as client:
            make_bucket(client, BUCKET)
        send([side], 1, map(make_uploads(side.key, options.size_bytes, "texts"), range(options.documents)))
        side.wait_idle()
        side.stop()
        texts, folder = _texts(side), ModelFolder(side.files.models)
        installed = install(folder, options.model, str, lambda _: None).model
        bare = _measure(len(texts), lambda: _embed(folder, installed, texts), time.process_time)
        side.start()
        # From the moment at which the model is in memory to the last vector.
        wait_until(lambda: side.facts()["embedding"]["state"] == "ready", "the model", every_s=0.005)
        daemon = _measure(len(texts), lambda: wait_embedded(side, 3600, every_s=0.05), side.processor_s)
        named = {"model": installed.name, "passages": len(texts)}
        report("embedding", options, [named | {"side": "bare"} | bare, named | {"side": "daemon"} | daemon])


def _texts(side: Side) -> list[str]:
    """What is to be embedded, as the worker is given it."""
    (team,) = (path.stem for path in side.files.index.glob("*.db"))
    with closing(EmbeddedProvider(side.files.index)) as provider:
        return [chunk.text for chunk in provider.list_unembedded(team, "any", 10**9)]


def _embed(folder: ModelFolder, model: InstalledModel, texts: list[str]) -> None:
    runtime = Runtime(folder.folder_of(model), max_tokens=model.max_tokens, pooling=model.pooling)
    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        list(pool.map(runtime.embed, texts))


def _measure(passages: int, act: Callable[[], object], used_s: Callable[[], float]) -> Row:
    began_s, before_s = time.perf_counter(), used_s()
    act()
    took_s, spent_s = time.perf_counter() - began_s, used_s() - before_s
    return {"per_second": round(passages / took_s, 1), "processor_ms": round(spent_s / passages * 1000, 2)}


if __name__ == "__main__":
    main()
