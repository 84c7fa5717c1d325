"""Pages that are pictures are recognised in a confined child, and what can't be read is named."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.TiffImagePlugin import STRIPOFFSETS

from svc_daemon.core.text.chunking import Extraction, RecognizedPage
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed, NeedsRecognition, StoredDocument
from svc_daemon.extract.extractors import Extractor
from svc_daemon.extract.scans.layout import recognize_page
from svc_daemon.extract.scans.recognizers import Line, choose
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests import samples
from tests.extract.conftest import MakeExtractor
from tests.extract.readings import document_at
from tests.scanned_pages import RECOGNIZER, joined, page, pdf, saved, scan

pytestmark = pytest.mark.anyio

BLANK = np.asarray(page())


async def needed(extractor: Extractor, document: StoredDocument) -> Sequence[int]:
    """The pages that must be recognised before the document can be read."""
    with pytest.raises(NeedsRecognition) as asked:
        await extractor.extract(replace(document, awaits_recognition=True))
    return asked.value.pages


async def recognized(extractor: Extractor, document: StoredDocument) -> list[RecognizedPage]:
    pages = await needed(extractor, document)
    return [page async for page in extractor.recognize(document, pages)]


@pytest.fixture(scope="module")
async def scanner(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Extractor]:
    """One extractor with a recogniser for all tests that leave its limits as they are."""
    extractor = Extractor(tmp_path_factory.mktemp("scans") / "scratch", CageLimits(recognizer=RECOGNIZER))
    yield extractor
    await extractor.close()


async def read(extractor: Extractor, path: Path) -> Extraction:
    """Recognise the pages of a file, then read it."""
    document = document_at(path)
    pages = {each.page: each for each in await recognized(extractor, document)}
    return await extractor.extract(replace(document, recognized=pages, awaits_recognition=True))


def stored(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


async def test_scanned_pages_have_their_text_on_their_page(scanner: Extractor, tmp_path: Path) -> None:
    extraction = await read(scanner, stored(tmp_path, "scan.pdf", scan(3)))
    assert [(chunk.page, chunk.text) for chunk in extraction.chunks] == [
        (number, f"The umber quay {number}.") for number in (1, 2, 3)
    ]
    assert (extraction.recognized_pages, extraction.warnings) == ({"1": 0.97, "2": 0.97, "3": 0.97}, ())
    assert (extraction.pages, extraction.pages_without_text) == (3, ())


@pytest.mark.parametrize(
    ("name", "kind"), [("a.png", "PNG"), ("b.webp", "WEBP"), ("c.tiff", "TIFF"), ("d.jpg", "JPEG")]
)
async def test_picture_files_are_read(scanner: Extractor, tmp_path: Path, name: str, kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {"quality": 100} if kind == "JPEG" else {}
    extraction = await read(scanner, stored(tmp_path, name, saved([page("Grey stone.")], kind, **options)))
    assert (extraction.text, extraction.pages, list(extraction.recognized_pages)) == ("Grey stone.", 1, ["1"])


async def test_each_page_of_a_tiff_is_read_whatever_its_depth(scanner: Extractor, tmp_path: Path) -> None:
    depths = {255: np.uint16, 4095: np.uint16, 65535: np.uint16, 2**30: np.int32, 1.0: np.float32}
    pages = [
        Image.fromarray((np.asarray(page(f"Depth {most}.").convert("L")) * (most / 255)).astype(kind))
        for most, kind in depths.items()
    ]
    extraction = await read(scanner, stored(tmp_path, "deep.tiff", saved(pages, "TIFF", compression="tiff_lzw")))
    assert [chunk.text for chunk in extraction.chunks] == [f"Depth {most}." for most in depths]
    assert [chunk.page for chunk in extraction.chunks] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("damage", ["pixels", "entries", "end"])
async def test_a_damaged_page_of_a_tiff_is_named_and_never_read_as_another(
    scanner: Extractor, tmp_path: Path, damage: str
) -> None:
    pages = [page("One.").convert("1"), page("Two.").convert("1")]
    data = bytearray(saved(pages, "TIFF", compression="group4"))
    next_at = (
        (first := int.from_bytes(data[4:8], "little")) + 2 + 12 * int.from_bytes(data[first : first + 2], "little")
    )
    second = int.from_bytes(data[next_at : next_at + 4], "little")
    entry = data.index(STRIPOFFSETS.to_bytes(2, "little"), second)
    places = {"pixels": (entry + 8, b"\0\0\0\x7f"), "entries": (second, b"\xff\xff"), "end": (next_at, b"\0\0\0\x7f")}
    at, wrong = places[damage]
    data[at : at + len(wrong)] = wrong
    extraction = await read(scanner, stored(tmp_path, "fax.tif", bytes(data)))
    assert (extraction.text, extraction.warnings) == ("One.", ("Page 2 was not read: its picture is damaged.",))


async def test_only_pages_without_text_are_recognised(scanner: Extractor, tmp_path: Path) -> None:
    path = stored(tmp_path, "mixed.pdf", joined(samples.make_pdf(["The umber quay.", ""]), scan(1)))
    # The first page has text, and the second nothing at all.
    assert await needed(scanner, document_at(path)) == [3]


async def test_a_page_that_ends_the_recogniser_costs_only_itself(make_extractor: MakeExtractor, tmp_path: Path) -> None:
    pages = [page("One."), page("!SIGSEGV"), page("!eat"), page("!busy"), page("Five.")]
    extractor = await make_extractor(recognizer=RECOGNIZER, ocr_page_seconds=3)
    extraction = await read(extractor, stored(tmp_path, "scan.pdf", pdf(pages)))
    assert (extraction.text, extraction.pages_without_text) == ("One.\n\nFive.", (2, 3, 4))
    *others, busy = extraction.warnings
    assert others == [
        "Page 2 was not read: the recogniser failed on it.",
        "Page 3 was not read: reading took more than 1536 MB of memory.",
    ]
    # On a crowded machine, 15 seconds are over before its child has had three.
    assert re.fullmatch("Page 4 was not read: reading took more than (3 s of processor time|15 s).", busy)


async def test_a_recogniser_that_is_killed_from_outside_may_be_tried_again(
    make_extractor: MakeExtractor, tmp_path: Path
) -> None:
    extractor = await make_extractor(recognizer=RECOGNIZER)
    document = document_at(stored(tmp_path, "scan.pdf", pdf([page("One."), page("!SIGKILL")])))
    read_pages = []
    with pytest.raises(ExtractionFailed) as failed:
        async for each in extractor.recognize(document, [1, 2]):
            read_pages.append(each.text)  # noqa: PERF401 - what was read before the error counts
    assert (read_pages, failed.value.code, failed.value.retryable) == (
        ["One."],
        SourceErrorCode.EXTRACTION_CRASHED,
        True,
    )


async def test_unsure_pages_are_named_and_unreadable_ones_left_out(scanner: Extractor, tmp_path: Path) -> None:
    pages = [page("Sure.", confidence=90), page("Unsure.", confidence=70), page("Rubbish.", confidence=50), page()]
    extraction = await read(scanner, stored(tmp_path, "scan.pdf", pdf(pages)))
    assert (extraction.text, extraction.pages_without_text) == ("Sure.\n\nUnsure.", (3, 4))
    assert extraction.warnings == (
        "Page 3 was not read: its text is too unclear, or in a script that can't be recognised.",
        "Page 4 has no text and can't be found.",
        "Page 2 was recognised with a confidence below 85%; check with the original.",
    )


async def test_a_picture_in_which_nothing_is_read_has_no_text(scanner: Extractor, tmp_path: Path) -> None:
    with pytest.raises(ExtractionFailed, match="None of the 1 pages holds text") as failed:
        await read(scanner, stored(tmp_path, "photo.png", saved([page()], "PNG")))
    assert failed.value.code == SourceErrorCode.NO_EXTRACTABLE_TEXT


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + b"\0" * 99, saved([page("One.")], "PNG")[:2000]])
async def test_a_damaged_picture_is_unreadable_and_ends_nothing(
    scanner: Extractor, tmp_path: Path, data: bytes
) -> None:
    with pytest.raises(ExtractionFailed) as failed:
        await read(scanner, stored(tmp_path, "a.png", data))
    assert failed.value.code in (SourceErrorCode.DOCUMENT_UNREADABLE, SourceErrorCode.NO_EXTRACTABLE_TEXT)


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("scan.pdf", scan(2), SourceErrorCode.NO_EXTRACTABLE_TEXT),
        ("a.png", saved([page("One.")], "PNG"), SourceErrorCode.UNSUPPORTED_FORMAT),
    ],
)
async def test_without_a_recogniser_the_reason_names_the_way_out(
    make_extractor: MakeExtractor, tmp_path: Path, name: str, data: bytes, code: SourceErrorCode
) -> None:
    extractor = await make_extractor(unrecognized="Install the extra.")
    document = document_at(stored(tmp_path, name, data))
    with pytest.raises(ExtractionFailed, match="Install the extra") as failed:
        await extractor.extract(replace(document, awaits_recognition=True))
    assert failed.value.code == code


def test_text_recognition_can_be_off_or_a_function_of_the_operators() -> None:
    assert choose("off") == ("", "Text recognition is turned off (SVC_OCR=off).")
    assert choose(RECOGNIZER) == (RECOGNIZER, "")


def line(text: str, left: float, top: float, *, per_character: float = 8.0, height: float = 20.0) -> Line:
    right = left + per_character * len(text)
    return Line(text, 0.95, [(left, top), (right, top), (right, top + height), (left, top + height)])


def text_of(lines: Sequence[Line]) -> str:
    return recognize_page(BLANK, 1, lambda _: lines).text


LEFT = ["The harbour master keeps", "a register of every ship", "that enters or leaves it."]
RIGHT = ["Fees are due within two", "weeks of the departure, or", "cost more for each month."]


def test_columns_are_read_one_after_another_below_what_goes_across_them() -> None:
    title = line("A heading that goes across both of the columns below it, from side to side", 50, 10)
    columns = [
        line(text, left, 60 + 30 * number)
        for left, texts in ((50, LEFT), (420, RIGHT))
        for number, text in enumerate(texts)
    ]
    in_rows = sorted(columns, key=lambda each: each.box[0][1])
    assert text_of([title, *in_rows]).split("\n") == [title.text, "", *LEFT, "", *RIGHT]


def test_cells_of_a_table_are_read_row_by_row() -> None:
    cells = [("Ship", "Berth", "Tons"), ("Alba", "4", "1200"), ("Borea", "7", "980"), ("Ceres", "2", "1430")]
    lines = [line(text, 50 + 200 * x, 50 + 30 * y) for y, row in enumerate(cells) for x, text in enumerate(row)]
    assert text_of(lines[::-1]).split("\n") == [" | ".join(row) for row in cells]


def test_paragraphs_are_apart_and_broken_words_are_whole() -> None:
    lines = [line("The break-", 50, 50), line("water is new.", 50, 80), line("It is of stone.", 50, 170)]
    assert text_of(lines) == "The breakwater is new.\n\nIt is of stone."


@pytest.mark.parametrize(
    ("per_character", "confidence", "is_read"),
    # It sees few letters in long lines, and is sure of them; or it sees more, and is less sure.
    [(40.0, 0.97, False), (12.5, 0.8, False), (12.5, 0.97, True), (9.0, 0.8, True)],
)
def test_text_in_a_script_that_the_model_does_not_know_is_not_read(
    per_character: float, confidence: float, is_read: bool
) -> None:
    seen = line("A line of letters", 50, 50, per_character=per_character)._replace(confidence=confidence)
    found = recognize_page(BLANK, 1, lambda _: [seen])
    assert (found.text != "", "script" in found.problem) == (is_read, not is_read)


def test_a_page_on_its_side_is_turned() -> None:
    def recognize(picture: Any) -> list[Line]:
        if picture.shape[0] > picture.shape[1]:
            return [Line("sideways", 0.95, [(10, 10), (30, 10), (30, 200), (10, 200)])]
        return [line("Upright.", 50, 50)]

    assert recognize_page(BLANK, 1, recognize).text == "Upright."
