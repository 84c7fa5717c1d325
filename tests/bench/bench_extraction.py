"""Small Markdown files through the cage, a child for each and in waves: processor time of each document by process.

`bare` is the work itself, done in this process: detect the format, read, cut into chunks.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import cast

import psutil

from svc_daemon.core.text.chunking import ChunkingOptions, Extraction, chunk_document
from svc_daemon.core.text.media_types import detect
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import StoredDocument
from svc_daemon.extract.extractors import Extractor
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.waves import WAVE_DOCUMENTS
from svc_daemon.store.blobs import BlobFile
from tests.bench.fillings import make_document
from tests.bench.installations import read_options
from tests.bench.machines import report
from tests.corpus import Prose
from tests.extract.test_extractors import server_of

#: How many children work at the same time.
CORES = 2


def main() -> None:
    options = read_options(__doc__, documents=10_000, alone=500, size_bytes=4096)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        documents = make_documents(Path(folder), options.documents, options.size_bytes)
        bare = documents[: options.alone]
        began_s = time.process_time()
        for document in bare:
            read_bare(document)
        figures: dict[str, object] = {"bare_ms": round((time.process_time() - began_s) / len(bare) * 1000, 3)}
        figures |= asyncio.run(compare(Path(folder, "scratch"), documents, options.alone))
    report("extraction", vars(options), figures)


def make_documents(folder: Path, count: int, size_bytes: int) -> list[StoredDocument]:
    prose, documents = Prose("extraction", packages=()), []
    for number in range(count):
        path = folder / f"{number}.md"
        path.write_bytes(make_document(prose, size_bytes, f"Note {number}"))
        documents.append(
            StoredDocument(content=BlobFile(path), filename=path.name, content_type="", chunking=ChunkingOptions())
        )
    return documents


def read_bare(document: StoredDocument) -> None:
    data = cast("BlobFile", document.content).path.read_bytes()
    content_type = detect(data, document.filename)
    given = Given(data=data, filename=document.filename, content_type=content_type, limits=CageLimits())
    chunk_document(find_reader(content_type)(given), document.chunking)


async def compare(scratch: Path, documents: list[StoredDocument], alone: int) -> dict[str, object]:
    extractor = Extractor(scratch)
    await extractor.extract_wave(documents[:1])
    server = server_of(extractor)
    slots = asyncio.Semaphore(CORES)

    async def read(wave: list[StoredDocument]) -> None:
        async with slots:
            if len(wave) > 1:
                results = await extractor.extract_wave(wave)
                assert all(isinstance(result, Extraction) for result in results)
                return
            await extractor.extract(wave[0])

    async def cost(wave_size: int, chosen: list[StoredDocument]) -> dict[str, float]:
        before = spent(server)
        waves = [chosen[start : start + wave_size] for start in range(0, len(chosen), wave_size)]
        await asyncio.gather(*map(read, waves))
        # The last child is counted once the server has reaped it.
        await asyncio.to_thread(psutil.wait_procs, server.children())
        each = {name: (value - before[name]) / len(chosen) * 1000 for name, value in spent(server).items()}
        return {name: round(value, 3) for name, value in (each | {"all_ms": sum(each.values())}).items()}

    figures = {"alone": await cost(1, documents[:alone]), "waves": await cost(WAVE_DOCUMENTS, documents)}
    await extractor.close()
    return {**figures, "times_cheaper": round(figures["alone"]["all_ms"] / figures["waves"]["all_ms"], 1)}


def spent(server: psutil.Process) -> dict[str, float]:
    """User and system time of this process, of the fork server and of the children that it has reaped, in seconds."""
    times = server.cpu_times()
    return {
        "daemon_ms": time.process_time(),
        "fork_server_ms": times.user + times.system,
        "children_ms": times.children_user + times.children_system,
    }


if __name__ == "__main__":
    main()
