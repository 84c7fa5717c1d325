"""Documents in a wave get the same results as alone, and the end of the child fails at most one of them."""

import asyncio
import errno
import os
import resource
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from svc_daemon.core.text.chunking import ChunkingOptions, Extraction
from svc_daemon.extract.child_limits import ChildProgress
from svc_daemon.extract.documents import (
    WAVE_DOCUMENT_BYTES,
    WAVE_DOCUMENTS,
    ExtractionFailed,
    NeedsOwnChild,
    NotRead,
    StoredDocument,
    may_share_a_child,
)
from svc_daemon.extract.extractors import Extractor
from svc_daemon.extract.fork_server import _Child
from svc_daemon.extract.messages import KillReason
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.conftest import MakeExtractor
from tests.extract.readings import document_at
from tests.extract.test_extractors import CRASHED, OVER_LIMIT, server_of, servers_of, until, until_cleaned_up

pytestmark = pytest.mark.anyio

Result = Extraction | Exception

#: Text that takes a child some hundredths of a second, and chunk sizes so small that it takes seconds.
LONG = b"- a few words\n\n" * 10_000
TINY_PIECES = ChunkingOptions(target=1, min=1, max=1)


def stored(folder: Path, *contents: tuple[str, bytes], chunking: ChunkingOptions | None = None) -> list[StoredDocument]:
    """Store documents with these names and bytes, and return them."""
    documents = []
    for filename, data in contents:
        path = folder / f"{len(list(folder.iterdir()))}-{filename}"
        path.write_bytes(data)
        sizes = chunking or ChunkingOptions()
        documents.append(document_at(path, filename, chunking=sizes))
    return documents


async def alone(extractor: Extractor, document: StoredDocument) -> Result:
    try:
        return await extractor.extract(document)
    except (ExtractionFailed, OSError) as error:
        return error


def shown(results: Sequence[Result]) -> list[object]:
    """Return comparable results: extractions as they are, and exceptions as their type and message."""
    return [result if isinstance(result, Extraction) else (type(result), str(result)) for result in results]


def assert_one_failed(results: Sequence[Result], code: SourceErrorCode, words: str) -> int:
    """Assert that exactly one document failed, those before it were read, and those after it not; return its number."""
    number = [isinstance(result, Extraction) for result in results].index(False)
    failed = results[number]
    assert isinstance(failed, ExtractionFailed), repr(failed)
    assert (failed.code, failed.retryable, words in failed.message) == (code, code == CRASHED, True), failed.message
    assert [type(result) for result in results[number + 1 :]] == [NotRead] * (len(results) - number - 1)
    return number


async def test_each_document_in_a_wave_gets_the_same_result_as_alone(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    extractor = await make_extractor(chunks=50)
    contents = [
        ("a.md", b"# One\n\nSome *words*.\n"),
        ("blank.txt", b" \n\t\n"),
        ("a.csv", b"name,age\nAnn,3\n"),
        ("a.json", b'{"a": "\\u00e9"}'),
        ("picture.txt", b"GIF89a" + bytes(100)),
        ("a.py", b"def f():\n    return 1\n"),
        ("crumbs.md", b"# a\n\nb\n" * 51),
        ("caf\xe9.txt", b"caf\xe9 au lait"),
        ("two.txt", "Zwei Wörter 🎉\r\n".encode()),
        ("empty.txt", b""),
        ("last.log", b"The last line."),
    ]
    documents = stored(tmp_path, *contents)
    documents.insert(3, document_at(tmp_path / "gone.md", "a.md", chunking=TINY_PIECES))
    together = await extractor.extract_wave(documents)
    assert shown(together) == shown([await alone(extractor, document) for document in documents])
    assert sum(isinstance(result, Extraction) for result in together) == 7
    assert isinstance(together[3], FileNotFoundError)
    await until_cleaned_up(extractor)
    assert await extractor.extract_wave([]) == []


async def test_documents_for_other_parsers_and_large_ones_need_a_child_of_their_own(
    unlimited: Extractor, tmp_path: Path
) -> None:
    documents = stored(
        tmp_path,
        ("before.md", b"Words before."),
        ("a.txt", samples.make_pdf(["Really a PDF."])),
        ("b.txt", samples.make_docx({"A": "b"})),
        ("c.txt", samples.make_html("<p>A page.</p>")),
        ("mail", b"From: a@b.example\r\nSubject: x\r\n\r\ny"),
        ("large.txt", b"a" * (WAVE_DOCUMENT_BYTES + 1)),
        ("after.md", b"Words after."),
    )
    results = await unlimited.extract_wave(documents)
    assert [type(result) for result in results] == [Extraction, *[NeedsOwnChild] * 5, Extraction]
    assert isinstance(await alone(unlimited, documents[1]), Extraction)


async def begin_wave(
    extractor: Extractor, documents: Sequence[StoredDocument]
) -> tuple["asyncio.Task[list[Result]]", psutil.Process]:
    """Start a wave, wait until its child has read some documents, and return its task and the child."""
    reading = asyncio.create_task(extractor.extract_wave(documents))
    await until(lambda: any(server.children() for server in servers_of(extractor)), "the child")
    (child,) = server_of(extractor).children()
    await until(lambda: child.io_counters().write_chars > 3 * len(LONG), "some replies")
    return reading, child


async def test_end_of_a_child_fails_only_the_document_it_was_reading(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    documents = stored(tmp_path, *[("a.md", LONG)] * WAVE_DOCUMENTS)
    ends: list[tuple[Callable[[psutil.Process], None], dict[str, int], SourceErrorCode, str]] = [
        (lambda child: child.kill(), {}, CRASHED, "died on the document (exit status -9)"),
        (lambda child: psutil.Process(child.ppid()).kill(), {}, CRASHED, "server ended"),
        # The limit is for one document, not for the wave.
        (lambda child: child.suspend(), {"wall_seconds": 3}, OVER_LIMIT, "more than 3 s."),
    ]
    for end, limits, code, words in ends:
        extractor = await make_extractor(**limits)
        results: list[Result] = []
        # A child that ends between two documents fails none of them; the test then tries again.
        while not any(isinstance(result, ExtractionFailed) for result in results):
            reading, child = await begin_wave(extractor, documents)
            end(child)
            results = await reading
        number = assert_one_failed(results, code, words)
        assert 0 < number < WAVE_DOCUMENTS - 1
        assert isinstance((await extractor.extract_wave(documents[-1:]))[0], Extraction)
        await until_cleaned_up(extractor)


async def test_document_over_a_limit_fails_and_those_before_it_are_read(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    small = await make_extractor()
    await small.extract_wave(stored(tmp_path, ("a.md", b"a")))
    memory_bytes = server_of(small).memory_info().vms + 16 * 1024**2
    crumbs = b"# a\n\nb\n" * 32_000
    for data, chunking, limits, words in (
        (b"*a" * 125_000, TINY_PIECES, {"cpu_seconds": 1}, "1 s of processor time"),
        (crumbs, None, {"memory_bytes": memory_bytes}, "MB of memory"),
        (crumbs, None, {"output_bytes": 1024**2}, "over 1 MB"),
    ):
        before, after = [stored(tmp_path, *[("a.md", b"Some words.")] * 5) for _ in range(2)]
        extractor = await make_extractor(**limits)
        wave = [*before, *stored(tmp_path, ("slow.md", data), chunking=chunking), *after]
        assert assert_one_failed(await extractor.extract_wave(wave), OVER_LIMIT, words) == 5
        await until_cleaned_up(extractor)


async def test_time_limits_apply_to_each_document_separately(
    make_extractor: MakeExtractor, tmp_path: Path, large: bool
) -> None:
    # Each document takes 25 or 50 ms, and together they exceed the limits for one document, even on an idle
    # machine. A busy machine may stall for seconds.
    sections, limits = (2400, {"cpu_seconds": 2, "wall_seconds": 3}) if large else (1200, {"cpu_seconds": 1})
    extractor = await make_extractor(**limits)
    results = await extractor.extract_wave(stored(tmp_path, *[("a.md", b"# a\n\nb\n" * sections)] * WAVE_DOCUMENTS))
    assert [type(result) for result in results] == [Extraction] * WAVE_DOCUMENTS


async def test_wave_ends_early_when_its_replies_exceed_the_output_limit(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    extractor = await make_extractor(wave_output_bytes=len(LONG))
    results = await extractor.extract_wave(stored(tmp_path, ("a.md", b"a"), *[("b.md", LONG)] * 3))
    assert [type(result) for result in results] == [Extraction, Extraction, NotRead, NotRead]


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux shows the limits and descriptors of another process")
async def test_child_of_a_wave_can_open_few_files_and_write_none(make_extractor: MakeExtractor, tmp_path: Path) -> None:
    extractor = await make_extractor(cpu_seconds=10)
    reading, child = await begin_wave(extractor, stored(tmp_path, *[("a.md", LONG)] * WAVE_DOCUMENTS))
    assert child.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    assert child.rlimit(psutil.RLIMIT_NOFILE) == (64, 64)
    assert child.rlimit(psutil.RLIMIT_CPU) == (640, 641)
    opened = {link.name: str(link.readlink()) for link in Path(f"/proc/{child.pid}/fd").iterdir()}  # noqa: ASYNC240
    assert opened.pop("0").startswith("/memfd:")
    assert opened.pop("3").startswith("pipe:")
    assert opened == {"1": "/dev/null", "2": "/dev/null"}
    assert [entry.name for entry in extractor.scratch_dir.iterdir()] == ["server.log"]
    reading.cancel()


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux sets the limits of another process")
async def test_shortage_of_descriptors_raises_emfile_for_each_document_in_a_wave(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    extractor = await make_extractor()
    documents = stored(tmp_path, *[("a.md", b"Some words.")] * 3)
    assert all(isinstance(result, Extraction) for result in await extractor.extract_wave(documents))
    server = server_of(extractor)
    for pid in (server.pid, 0):
        # Counted here, because descriptors of earlier waves may have been open when the loop began.
        descriptors = server.num_fds() if pid else os.dup(0)
        if not pid:
            os.close(descriptors)
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        # The daemon can open one more descriptor, for a document, but no pipe for the replies.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors + (not pid), limits[1]))
        try:
            results = await extractor.extract_wave(documents)
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert [result.errno for result in results if isinstance(result, OSError)] == [errno.EMFILE] * 3
    assert all(isinstance(result, Extraction) for result in await extractor.extract_wave(documents))


@pytest.mark.parametrize(
    ("filename", "declared", "may"),
    [
        *(
            (f"a.{extension}", "", True)
            for extension in ("txt", "md", "csv", "tsv", "json", "py", "svg", "yaml", "foo")
        ),
        *(
            (f"a.{extension}", "", False)
            for extension in ("html", "pdf", "docx", "xlsx", "eml", "ipynb", "md.gz", "rtf")
        ),
        *(("notes", "text/markdown; charset=utf-8", True), ("notes", "application/pdf", False), ("notes", "", True)),
        *(("a.txt", "Application/PDF", False), ("a.txt", "text/rtf", False), ("a.pdf", "text/plain", False)),
        *(("a.html", "text/x-python", False), ("a.md", "text/html", False), ("a.md", "not a type", True)),
    ],
)
def test_only_small_text_documents_may_share_a_child(filename: str, declared: str, may: bool) -> None:
    assert may_share_a_child(filename, declared, WAVE_DOCUMENT_BYTES) is may
    assert not may_share_a_child(filename, declared, WAVE_DOCUMENT_BYTES + 1)


def test_timeout_blames_no_document_if_the_child_has_just_begun_another() -> None:
    cases: list[tuple[KillReason, int, int]] = [("wall", 0, 0), ("wall", 1, -1), ("asked", 1, 1), ("", 1, 1)]
    for killed, number, blamed in cases:
        progress = ChildProgress()
        progress.note(number)
        child = _Child(1, progress, deadline=0, last_deadline=0, wall_seconds=60, overdue=0, killed=killed)
        assert child.blamed == blamed, (killed, number)
