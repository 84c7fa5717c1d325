"""Extractors confine their child processes to the limits, clean up after them, and report why a document failed."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from svc_daemon import child_processes
from svc_daemon.core.text.chunking import Extraction
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.extractors import Extractor
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests.acceptance.installations import PATIENCE_S
from tests.extract.conftest import Extract, MakeExtractor
from tests.extract.readings import document_at
from tests.processes import children_of, has_ended
from tests.samples import PROSE, make_endless_pdf, make_pdf

pytestmark = pytest.mark.anyio

OVER_LIMIT, CRASHED = SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED, SourceErrorCode.EXTRACTION_CRASHED
PARSERS = ("lxml", "pypdfium2", "trafilatura", "selectolax", "python_calamine")


async def read(extractor: Extractor, path: Path) -> Extraction:
    return await extractor.extract(document_at(path))


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        await asyncio.sleep(0.01)


def servers_of(extractor: Extractor) -> list[psutil.Process]:
    """Return the running fork server: this process's child with the extractor's scratch folder in its command."""
    return children_of(None, str(extractor.scratch_dir))


def server_of(extractor: Extractor) -> psutil.Process:
    (server,) = servers_of(extractor)
    return server


async def until_cleaned_up(extractor: Extractor) -> None:
    """Wait until the server has no children and their folders are removed."""
    scratch = extractor.scratch_dir
    await until(
        lambda: not server_of(extractor).children() and not any(entry.is_dir() for entry in scratch.iterdir()),
        "the end of the children and their folders",
    )


async def fails(reading: Awaitable[Extraction], code: SourceErrorCode, words: str, *, retryable: bool = False) -> None:
    """Assert that the extraction fails with this code, and a message with these words."""
    with pytest.raises(ExtractionFailed, match=words) as failed:
        await reading
    assert (failed.value.code, failed.value.retryable) == (code, retryable), words


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    path = tmp_path / "endless.pdf"
    path.write_bytes(make_endless_pdf())
    return path


def children(extractor: Extractor) -> list[psutil.Process]:
    """Return the children that run; the server may still be starting."""
    return [child for server in servers_of(extractor) for child in server.children()]


async def begin(extractor: Extractor, path: Path) -> "asyncio.Task[Extraction]":
    """Start the extraction of a document, and wait until its child runs."""
    await until(lambda: not children(extractor), "the end of earlier children")
    reading = asyncio.create_task(read(extractor, path))
    await until(lambda: bool(children(extractor)), "the child")
    return reading


async def test_extraction_has_the_text_and_its_chunks_with_headings_and_lines(
    unlimited: Extractor, prose: Path
) -> None:
    extraction = await read(unlimited, prose)
    assert (extraction.content_type, extraction.title) == ("text/markdown", "The harbour")
    assert extraction.text.endswith(f"{PROSE}\n")
    for ordinal, chunk in enumerate(extraction.chunks):
        place = (chunk.ordinal, chunk.headings, chunk.line_start, chunk.line_end)
        assert place == (ordinal, ("The harbour",), 3, 3)
        assert extraction.text[chunk.char_start : chunk.char_end] == chunk.text


async def test_text_longer_than_one_reply_line_is_returned_completely(extract: Extract) -> None:
    text = "\n".join(f'Line {number} \\ "quoted" ünïcödé 🎉' for number in range(20_000))
    extraction = await extract(text.encode(), "long.txt")
    assert extraction.text == text
    assert extraction.chunks[-1].line_end == 20_000


async def test_killed_fork_server_ends_its_children_and_is_replaced(
    unlimited: Extractor, endless: Path, prose: Path
) -> None:
    reading = await begin(unlimited, endless)
    server = server_of(unlimited)
    (child,) = server.children()
    server.kill()
    await fails(reading, CRASHED, "server ended", retryable=True)
    await until(lambda: has_ended(child), "the child's end")
    assert (await read(unlimited, prose)).chunks
    assert server_of(unlimited).pid != server.pid
    await until_cleaned_up(unlimited)


async def test_server_whose_start_is_cancelled_ends_and_leaves_no_zombie(
    tmp_path: Path, prose: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extractor, before = Extractor(tmp_path / "scratch", CageLimits()), {*psutil.Process().children()}
    begun, start = threading.Event(), child_processes.start_module

    def start_late(*arguments: Any) -> "subprocess.Popen[bytes]":
        begun.set()
        time.sleep(0.1)
        return start(*arguments)

    monkeypatch.setattr("svc_daemon.extract.extractors.start_module", start_late)
    reading = asyncio.create_task(read(extractor, prose))
    assert await asyncio.to_thread(begun.wait, PATIENCE_S)
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert servers_of(extractor) == []
    assert psutil.STATUS_ZOMBIE not in [child.status() for child in {*psutil.Process().children()} - before]


async def test_document_over_a_limit_fails_permanently(extract: Extract) -> None:
    await fails(extract(make_endless_pdf(), "endless.pdf", cpu_seconds=1), OVER_LIMIT, "1 s of processor time")
    await fails(extract(b"# a\n\nb\n" * 51, "crumbs.md", chunks=50), OVER_LIMIT, "more than 50 passages")


async def test_cancelled_extraction_ends_its_child(unlimited: Extractor, endless: Path) -> None:
    reading = await begin(unlimited, endless)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await until_cleaned_up(unlimited)


async def test_twenty_concurrent_extractions_succeed_and_clean_up(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    extractor = await make_extractor(children=20)
    paths = [tmp_path / f"{number}.{'pdf' if number % 2 else 'txt'}" for number in range(20)]
    for number, path in enumerate(paths):
        path.write_bytes(make_pdf([f"Number {number}."]) if number % 2 else f"Number {number}.".encode())
    descriptors = psutil.Process().num_fds()
    extractions = await asyncio.gather(*(read(extractor, path) for path in paths))
    assert [extraction.text for extraction in extractions] == [f"Number {number}." for number in range(20)]
    await until_cleaned_up(extractor)
    # Descriptors of earlier tests may be collected meanwhile.
    await until(lambda: psutil.Process().num_fds() <= descriptors, "the end of all pipes")


async def test_number_of_concurrent_children_is_limited(make_extractor: MakeExtractor, endless: Path) -> None:
    extractor = await make_extractor(children=2)
    readings = [asyncio.create_task(read(extractor, endless)) for _ in range(4)]
    seen: set[psutil.Process] = set()

    def running() -> set[psutil.Process]:
        """Return the children that were not seen before."""
        return {*children(extractor)} - seen

    for left in (2, 0):
        await until(lambda: len(running()) >= 2, "two children")
        for _ in range(10):
            assert len(running()) == 2
            await asyncio.sleep(0.01)
        seen |= running()
        for child in seen:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        await until(lambda: sum(not reading.done() for reading in readings) == left, "the end of two extractions")  # noqa: B023
    ended = await asyncio.gather(*readings, return_exceptions=True)
    assert [type(each) for each in ended] == [ExtractionFailed] * 4


async def test_child_runs_with_low_priority_few_descriptors_and_no_environment(
    make_extractor: MakeExtractor, endless: Path
) -> None:
    extractor = await make_extractor(nice=7)
    reading = await begin(extractor, endless)
    server = server_of(extractor)
    (child,) = server.children()
    await until(lambda: child.nice() == psutil.Process().nice() + 7, "the child's nice value")
    await until(lambda: child.rlimit(psutil.RLIMIT_CORE) == (0, 0), "the last of its limits")
    assert child.environ() == server.environ() == {}
    assert os.getsid(child.pid) == child.pid
    assert os.getsid(server.pid) == server.pid
    await until(lambda: child.cwd().startswith(str(extractor.scratch_dir)), "its folder for scratch files")
    assert child.rlimit(psutil.RLIMIT_AS) == (1024**3, 1024**3)
    assert child.rlimit(psutil.RLIMIT_CPU)[0] == CageLimits().cpu_seconds
    opened = {link.name: str(link.readlink()) for link in Path(f"/proc/{child.pid}/fd").iterdir()}  # noqa: ASYNC240
    assert opened.pop("3").startswith("pipe:")
    assert opened == {"0": str(endless), "1": "/dev/null", "2": "/dev/null"}
    reading.cancel()


async def test_child_that_runs_out_of_descriptors_is_a_retryable_crash(extract: Extract) -> None:
    # The child's four descriptors are in use, so it can't even open its parser.
    reading = extract(b"From: a@b.example\r\nSubject: x\r\n\r\ny", "unnamed", descriptors=4)
    await fails(reading, CRASHED, "exit status 3", retryable=True)


async def test_missing_file_raises_file_not_found_instead_of_a_failed_document(
    unlimited: Extractor, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        await read(unlimited, tmp_path / "gone.txt")


async def test_close_ends_the_fork_server_and_children_and_removes_the_scratch_folder(
    make_extractor: MakeExtractor, endless: Path
) -> None:
    extractor = await make_extractor()
    reading = await begin(extractor, endless)
    family = [server_of(extractor), *server_of(extractor).children()]
    await extractor.close()
    await fails(reading, CRASHED, "server ended", retryable=True)
    assert not any(process.is_running() for process in family)
    assert not extractor.scratch_dir.exists()


async def test_killed_daemon_leaves_no_fork_server_children_or_scratch_folder(endless: Path, tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from svc_daemon.extract.extractors import Extractor;"
        "from tests.extract.readings import document_at;"
        "asyncio.run(Extractor(Path(sys.argv[1])).extract(document_at(Path(sys.argv[2]), 'e.pdf')))"
    )
    with psutil.Popen([sys.executable, "-c", script, str(tmp_path / "scratch"), str(endless)]) as daemon:
        try:
            await until(lambda: len(daemon.children(recursive=True)) == 2, "the server and its child")
            family = daemon.children(recursive=True)
        finally:
            daemon.kill()
    await until(lambda: all(map(has_ended, family)), "the end of all processes")
    assert not (tmp_path / "scratch").exists()


async def test_extractor_starts_while_its_scratch_folder_is_being_removed(tmp_path: Path) -> None:
    scratch, prose, is_over = tmp_path / "scratch", tmp_path / "prose.html", threading.Event()
    prose.write_bytes(b"<p>Some words.</p>")

    def remove_once() -> None:
        while not is_over.is_set():
            with suppress(OSError):
                scratch.rmdir()
                return

    for _ in range(4):
        extractor, removing = Extractor(scratch), asyncio.create_task(asyncio.to_thread(remove_once))
        assert (await read(extractor, prose)).text == "Some words."
        await extractor.close()
        is_over.set()
        await removing
        is_over.clear()


def test_extractors_module_imports_no_parser() -> None:
    script = "import sys, svc_daemon.extract.extractors; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert not set(PARSERS) & set(loaded)
