"""A wave gives each document what it would get alone, and what ends its child costs the document at hand alone."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from svc_daemon.core.text.chunking import ChunkingOptions, Extraction
from svc_daemon.extract.cages import Extractor
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.extract.waves import (
    WAVE_DOCUMENT_BYTES,
    WAVE_DOCUMENTS,
    NeedsOwnChild,
    NotRead,
    StoredDocument,
    may_share_a_child,
)
from svc_daemon.wire.codes import SourceErrorCode
from tests import samples
from tests.extract.conftest import MakeExtractor
from tests.extract.test_cages import CRASHED, server_of, servers_of, until, until_all_is_gone

pytestmark = pytest.mark.anyio

Result = Extraction | Exception

#: Text that takes a child some hundredths of a second, and one in so small pieces that it takes seconds.
LONG = b"- a few words\n\n" * 10_000
TINY_PIECES = ChunkingOptions(target=2, min=2, max=2, overlap=1)


def stored(folder: Path, *contents: tuple[str, bytes], chunking: ChunkingOptions | None = None) -> list[StoredDocument]:
    """Documents of these names and bytes."""
    documents = []
    for filename, data in contents:
        path = folder / f"{len(list(folder.iterdir()))}-{filename}"
        path.write_bytes(data)
        sizes = chunking or ChunkingOptions()
        documents.append(StoredDocument(path=path, filename=filename, content_type="", chunking=sizes))
    return documents


async def alone(extractor: Extractor, document: StoredDocument) -> Result:
    try:
        return await extractor.extract(
            document.path,
            filename=document.filename,
            content_type=document.content_type,
            chunking=document.chunking,
        )
    except (ExtractionFailed, OSError) as error:
        return error


def shown(results: Sequence[Result]) -> list[object]:
    """Results that can be compared: the extractions, and of the exceptions what they say."""
    return [result if isinstance(result, Extraction) else (type(result), str(result)) for result in results]


def only_one_is_to_blame(results: Sequence[Result], code: SourceErrorCode, words: str) -> int:
    """All before the failed document are read, and none after it; return its number."""
    number = next(place for place, result in enumerate(results) if not isinstance(result, Extraction))
    failed = results[number]
    assert isinstance(failed, ExtractionFailed), repr(failed)
    assert (failed.code, words in failed.message) == (code, True), failed.message
    assert [type(result) for result in results[number + 1 :]] == [NotRead] * (len(results) - number - 1)
    return number


async def test_each_document_gets_what_it_gets_alone(make_extractor: MakeExtractor, tmp_path: Path) -> None:
    extractor = await make_extractor(chunks=50)
    contents = [
        ("a.md", b"# One\n\nSome *words*.\n"),
        ("blank.txt", b" \n\t\n"),
        ("a.csv", b"name,age\nAnn,3\n"),
        ("a.json", b'{"a": "\\u00e9"}'),
        ("picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(100)),
        ("a.py", b"def f():\n    return 1\n"),
        ("crumbs.md", b"# a\n\nb\n" * 51),
        ("caf\xe9.txt", b"caf\xe9 au lait"),
        ("two.txt", "Zwei Wörter 🎉\r\n".encode()),
        ("empty.txt", b""),
        ("last.log", b"The last line."),
    ]
    documents = stored(tmp_path, *contents)
    (tmp_path / "gone").mkdir()
    documents.insert(
        3, StoredDocument(path=tmp_path / "gone.md", filename="a.md", content_type="", chunking=TINY_PIECES)
    )
    together = await extractor.extract_wave(documents)
    assert shown(together) == shown([await alone(extractor, document) for document in documents])
    assert sum(isinstance(result, Extraction) for result in together) == 7
    assert isinstance(together[3], FileNotFoundError)
    await until_all_is_gone(extractor)
    assert await extractor.extract_wave([]) == []


async def test_what_a_foreign_parser_reads_is_left_for_a_child_of_its_own(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    extractor = await make_extractor()
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
    results = await extractor.extract_wave(documents)
    assert [type(result) for result in results] == [Extraction, *[NeedsOwnChild] * 5, Extraction]
    assert isinstance(await alone(extractor, documents[1]), Extraction)


async def test_a_document_that_kills_its_child_costs_only_itself(make_extractor: MakeExtractor, tmp_path: Path) -> None:
    extractor = await make_extractor()
    documents = stored(tmp_path, *[("a.md", LONG)] * WAVE_DOCUMENTS)
    reading = asyncio.create_task(extractor.extract_wave(documents))
    await until(lambda: any(server.children() for server in servers_of(extractor)), "the child")
    (child,) = server_of(extractor).children()
    await until(lambda: child.io_counters().write_chars > 5 * len(LONG), "some replies")
    child.kill()
    number = only_one_is_to_blame(await reading, CRASHED, "died on the document (exit status -9)")
    assert 0 < number < WAVE_DOCUMENTS - 1


def test_text_that_is_small_may_share_a_child() -> None:
    for filename, declared, may in [
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
    ]:
        assert may_share_a_child(filename, declared, WAVE_DOCUMENT_BYTES) is may, (filename, declared)
        assert not may_share_a_child(filename, declared, WAVE_DOCUMENT_BYTES + 1)
